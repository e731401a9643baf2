"""Laplace's approximation for many regressions at once, by Newton's method.

A likelihood is anything with `derivatives(theta)`: log likelihood, gradient and negative
Hessian of m regressions at their parameters. Priors are Gaussian with mean zero.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

_MOST_STEPS = 60
# Nats by which the evidence may be off where the last step is taken without looking, at most.
_TOLERANCE = 0.02
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
    """Posterior modes, the precision there, and the log evidence by Laplace's approximation.

    Attributes:
        theta: the modes.
        precision: of the Gaussians around them.
        log_evidence: of each regression.
        derivatives: of the log likelihood at the modes, from which another search may start.
    """

    theta: Float[np.ndarray, "m q"]
    precision: Float[np.ndarray, "m q q"]
    log_evidence: Float[np.ndarray, " m"]
    derivatives: Derivatives


def laplace(
    likelihood: Likelihood,
    prior: Float[np.ndarray, "q q"],
    start: Float[np.ndarray, "m q"],
    known: Derivatives | None = None,
) -> Mode:
    """Modes under a prior of this precision, found from `start`.

    Where a full step does not raise the posterior it is halved, family by family. A step so
    short that the curvature hardly changes along it is the last, and is taken without looking:
    with many rows, looking is what takes the time.

    Args:
        known: derivatives at `start`, where they have been computed.
    """
    theta, step = start.copy(), np.zeros_like(start)
    found = likelihood.derivatives(theta) if known is None else known
    height = found.value - _charge(theta, prior)
    length = np.ones(len(theta))
    fresh = np.ones(len(theta), dtype=bool)  # whose step has to be computed anew
    active = np.ones(len(theta), dtype=bool)
    last = np.zeros_like(start)
    for _ in range(_MOST_STEPS):
        if fresh.any():
            slope = found.gradient[fresh] - theta[fresh] @ prior
            step[fresh] = np.linalg.solve(found.hessian[fresh] + prior, slope[..., None])[..., 0]
            at_end = np.zeros_like(active)
            at_end[fresh] = _is_last(step[fresh], slope, found.hessian[fresh])
            last[at_end] = step[at_end]
            active &= ~at_end
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
    theta, found = theta + last, _along(found, last)
    precision = found.hessian + prior
    volume = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1]
    height = found.value - _charge(theta, prior)
    return Mode(theta, precision, height + 0.5 * volume, found)


def _is_last(
    step: Float[np.ndarray, "m q"],
    slope: Float[np.ndarray, "m q"],
    hessian: Float[np.ndarray, "m q q"],
) -> Bool[np.ndarray, " m"]:
    """Whether steps change predictors, and with them all second derivatives, very little.

    The first parameter is a constant, so that its curvature is the sum of the weights of the
    rows, and predictors change by `change` in the mean over rows. Curvatures change by no more
    than that fraction: the log determinant by as much for every parameter, and the height by
    that part of the gain.
    """
    gain = np.maximum((slope * step).sum(axis=1), 0.0)
    change = np.sqrt(gain / np.maximum(hessian[:, 0, 0], 1e-300))
    return np.maximum(step.shape[1], gain) * change < _TOLERANCE


def _along(found: Derivatives, step: Float[np.ndarray, "m q"]) -> Derivatives:
    """Derivatives at the end of a short step: the curvature stays."""
    bend = (found.hessian @ step[..., None])[..., 0]
    value = found.value + (step * (found.gradient - 0.5 * bend)).sum(axis=1)
    return Derivatives(value, found.gradient - bend, found.hessian)


def draw(rng: np.random.Generator, mode: Mode, which: int) -> Float[np.ndarray, " q"]:
    """Parameters of one regression from the Gaussian around its mode."""
    root = np.linalg.cholesky(mode.precision[which])
    noise = rng.standard_normal(len(root))
    return mode.theta[which] + np.linalg.solve(root.T, noise)


def _charge(theta: Float[np.ndarray, "m q"], prior: Float[np.ndarray, "q q"]) -> np.ndarray:
    return 0.5 * ((theta @ prior) * theta).sum(axis=1)
