"""Stochastic gradient Langevin dynamics: a gradient step plus noise, nothing else."""

from dataclasses import dataclass
from typing import NamedTuple

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


class SGLDState(NamedTuple):
    """One chain.

    Attributes:
        position: the unknowns, a tree.
        grad_variance: moving average of the variance that mini-batches give the gradient.
        num_steps: steps so far.
    """

    position: Params
    grad_variance: Vector
    num_steps: Int[Array, ""]


@dataclass(frozen=True)
class SGLD:
    """x ← x - ε grad + noise (Welling & Teh, 2011), with a constant step.

    The noise has variance 2 ε s² - ε² Var(grad), at least 0: mini-batch noise is part of it.

    Attributes:
        step_size: ε; stable below 2 divided by the largest curvature of the energy.
        noise_scale: `s`; the chain targets exp(-U / s²).
        moment_decay: of the moving average of the gradient's variance.
    """

    step_size: float = 1e-4
    noise_scale: float = 1.0
    moment_decay: float = 0.99

    def init(self, position: Params) -> SGLDState:
        """A chain at `position`."""
        zeros = jnp.zeros_like(flatten(position)[0])
        return SGLDState(position, zeros, jnp.zeros((), jnp.int32))

    def step(
        self, key: Key, state: SGLDState, grad: Params, grad_variance: Params | None = None
    ) -> SGLDState:
        """State after one update along `grad`, the gradient at `state.position`."""
        position, restore = flatten(state.position)
        count = state.num_steps
        variance = smooth_variance(state.grad_variance, grad_variance, self.moment_decay, count)
        noise = jnp.sqrt(self._noise_variance(variance)) * normal(key, position)
        position = position - self.step_size * flatten(grad)[0] + noise
        return SGLDState(restore(position), variance, count + 1)

    def clipped_share(self, state: SGLDState) -> Array:
        """Fraction of coordinates where mini-batches alone are noisier than the target."""
        return fraction_of_zeros(self._noise_variance(state.grad_variance))

    def _noise_variance(self, grad_variance: Array) -> Array:
        wanted = 2 * self.step_size * self.noise_scale**2
        return jnp.maximum(wanted - self.step_size**2 * grad_variance, 0.0)


build = SGLD
