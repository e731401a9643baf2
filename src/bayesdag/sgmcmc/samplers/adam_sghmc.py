"""Preconditioned SG-HMC: momentum, noise, and a gain from the size of recent gradients."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Int

from bayesdag.sgmcmc.samplers._trees import (
    Vector,
    flatten,
    fraction_of_zeros,
    normal,
    smooth_variance,
)
from bayesdag.types import Array, Key, Params


class AdamSGHMCState(NamedTuple):
    """One chain; everything but `position` is a vector with an entry for each unknown.

    Attributes:
        position: the unknowns, a tree.
        momentum: `r`.
        second_moment: `V`, moving average of the squared gradient.
        grad_variance: moving average of the variance that mini-batches give the gradient.
        num_steps: steps so far.
    """

    position: Params
    momentum: Vector
    second_moment: Vector
    grad_variance: Vector
    num_steps: Int[Array, ""]


@dataclass(frozen=True)
class AdamSGHMC:
    """The sampler of the paper's appendix; `grad` is the gradient of U = -log joint.

    With gain G = 1 / √(damping + √(inner_damping + V)),

        V ← β₂ V + (1 - β₂) grad²
        r ← β₁ r - l G grad + noise,   variance of the noise  s² (2 (1 - β₁) - l²) - l² G² Var(grad)
        x ← x + l G r

    so that mini-batch noise is part of the noise, not added to it; where it alone is more
    than the temperature s² allows, none is added and `clipped_share` says so.

    Two deviations from print. The drift correction l ∂G/∂x is left out, as in the published
    code: it is undefined for a moving average and a straight-through gradient. Without it a
    gain that follows the position biases the target, therefore V stops moving after
    `num_adapt` steps (None: never stops, as published).

    The default damping is the printed one: gains stay below 1, so a coordinate without any
    gradient moves by its prior alone. The published code has 1e-8 in both places, where
    such a coordinate moves a hundred times as far.

    Attributes:
        step_size: `l`, the square root of the published learning rate 3e-4.
        noise_scale: `s`; the chain targets exp(-U / s²).
        momentum_decay: β₁.
        moment_decay: β₂.
        damping: 1 in print, 1e-8 in the published code.
        inner_damping: 0 in print, 1e-8 in the published code.
        num_adapt: steps during which the gain adapts.
    """

    step_size: float = 3e-4**0.5
    noise_scale: float = 1.0
    momentum_decay: float = 0.9
    moment_decay: float = 0.99
    damping: float = 1.0
    inner_damping: float = 0.0
    num_adapt: int | None = 1000

    def init(self, position: Params) -> AdamSGHMCState:
        """At rest at `position`."""
        zeros = jnp.zeros_like(flatten(position)[0])
        return AdamSGHMCState(position, zeros, zeros, zeros, jnp.zeros((), jnp.int32))

    def step(
        self, key: Key, state: AdamSGHMCState, grad: Params, grad_variance: Params | None = None
    ) -> AdamSGHMCState:
        """State after one update along `grad`, the gradient at `state.position`."""
        position, restore = flatten(state.position)
        slope = flatten(grad)[0]
        moment = self._second_moment(state, slope)
        gain = self._gain(moment)
        count = state.num_steps
        variance = smooth_variance(state.grad_variance, grad_variance, self.moment_decay, count)
        noise = jnp.sqrt(self._noise_variance(gain, variance)) * normal(key, position)
        momentum = self.momentum_decay * state.momentum - self.step_size * gain * slope + noise
        position = position + self.step_size * gain * momentum
        return AdamSGHMCState(restore(position), momentum, moment, variance, count + 1)

    def clipped_share(self, state: AdamSGHMCState) -> Array:
        """Fraction of coordinates where mini-batches alone are noisier than the target."""
        gain = self._gain(state.second_moment)
        return fraction_of_zeros(self._noise_variance(gain, state.grad_variance))

    def _second_moment(self, state: AdamSGHMCState, slope: Vector) -> Vector:
        decay: float | Array = self.moment_decay
        if self.num_adapt is not None:
            decay = jnp.where(state.num_steps < self.num_adapt, self.moment_decay, 1.0)
        return decay * state.second_moment + (1 - decay) * slope**2

    def _gain(self, second_moment: Array) -> Array:
        inner = jnp.sqrt(self.inner_damping + second_moment)
        return jax.lax.rsqrt(self.damping + inner)

    def _noise_variance(self, gain: Array, grad_variance: Array) -> Array:
        wanted = self.noise_scale**2 * (2 * (1 - self.momentum_decay) - self.step_size**2)
        return jnp.maximum(wanted - self.step_size**2 * gain**2 * grad_variance, 0.0)


build = AdamSGHMC
