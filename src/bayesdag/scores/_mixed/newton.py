"""Laplace's approximation for many regressions at once, by Newton's method.

A likelihood is anything with `derivatives(theta)`: log likelihood, gradient and negative
Hessian of m regressions at their parameters. Priors are Gaussian with mean zero.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

_MOST_STEPS = 60
_DECREMENT = 1e-7  # nats that the next step would still gain
_SMALLEST_STEP = 2.0**-12


class Derivatives(NamedTuple):
    """Of log likelihoods: values, gradients, and Hessians with the sign changed."""

    value: Float[np.ndarray, " m"]
    gradient: Float[np.ndarray, "m q"]
    hessian: Float[np.ndarray, "m q q"]


@runtime_checkable
class Likelihood(Protocol):
    """A concave log likelihood of m regressions, each with q parameters."""

    def derivatives(self, theta: Float[np.ndarray, "m q"]) -> Derivatives:
        """Value, gradient and negative Hessian; -inf where parameters are impossible."""
        ...


class Mode(NamedTuple):
    """Posterior modes, the precision there, and the log evidence by Laplace's approximation."""

    theta: Float[np.ndarray, "m q"]
    precision: Float[np.ndarray, "m q q"]
    log_evidence: Float[np.ndarray, " m"]


def laplace(
    likelihood: Likelihood, prior: Float[np.ndarray, "q q"], start: Float[np.ndarray, "m q"]
) -> Mode:
    """Modes under a prior of this precision, found from `start`.

    Where a full step does not raise the posterior it is halved, family by family.
    """
    theta, step = start.copy(), np.zeros_like(start)
    found = likelihood.derivatives(theta)
    height = found.value - _charge(theta, prior)
    length = np.ones(len(theta))
    fresh = np.ones(len(theta), dtype=bool)  # whose step has to be computed anew
    active = np.ones(len(theta), dtype=bool)
    for _ in range(_MOST_STEPS):
        if fresh.any():
            slope = found.gradient[fresh] - theta[fresh] @ prior
            step[fresh] = np.linalg.solve(found.hessian[fresh] + prior, slope[..., None])[..., 0]
            active[fresh] &= (slope * step[fresh]).sum(axis=1) > 2 * _DECREMENT
            length[fresh] = 1.0
        active &= length > _SMALLEST_STEP
        if not active.any():
            break
        trial = theta + np.where(active, length, 0.0)[:, None] * step
        there = likelihood.derivatives(trial)
        value = there.value - _charge(trial, prior)
        fresh = active & (value >= height)
        length = np.where(active & ~fresh, length / 2, length)
        theta = np.where(fresh[:, None], trial, theta)
        height = np.where(fresh, value, height)
        found = Derivatives(
            np.where(fresh, there.value, found.value),
            np.where(fresh[:, None], there.gradient, found.gradient),
            np.where(fresh[:, None, None], there.hessian, found.hessian),
        )
    precision = found.hessian + prior
    volume = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1]
    return Mode(theta, precision, height + 0.5 * volume)


def draw(rng: np.random.Generator, mode: Mode, which: int) -> Float[np.ndarray, " q"]:
    """Parameters of one regression from the Gaussian around its mode."""
    root = np.linalg.cholesky(mode.precision[which])
    noise = rng.standard_normal(len(root))
    return mode.theta[which] + np.linalg.solve(root.T, noise)


def _charge(theta: Float[np.ndarray, "m q"], prior: Float[np.ndarray, "q q"]) -> np.ndarray:
    return 0.5 * ((theta @ prior) * theta).sum(axis=1)
