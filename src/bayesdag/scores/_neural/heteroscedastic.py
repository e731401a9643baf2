"""Heteroscedastic noise: a scale that depends on the parents.

Noise whose scale is taken for constant, and is not, makes wrong directions look right: what
the mean cannot explain, a parent that is none may. The logarithm of the scale is therefore
linear in what the network sees, its hidden units and inputs; Laplace's approximation charges
for the weights.
"""

from typing import Any, NamedTuple

from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural.control_flow import best_of, choose, repeat
from bayesdag.scores._neural.linear_algebra import (
    cholesky,
    dot,
    lower_inverse,
    weighted_gram,
    with_added_diagonal,
)

_NUM_STEPS = 7
_STEP_SIZES = (1.0, 0.25)  # of a scoring step; where none helps, the weights stay
_LEAST_GAIN = 0.05  # nats of a step, below which more of them change nothing
_LEAST_VARIANCE = 1e-6  # of a hidden unit: one that varies less is dead
# Prior deviation of the logarithm of the scale, all features together.
_DEVIATION = 0.5


class ScaleFit(NamedTuple):
    """Log factor of the scale: weights · features, the last of which is constant.

    Attributes:
        weights: of all features.
        log_volume: log prior density at the fit and Laplace's volume, in nats.
        gain: of the log likelihood over one scale for all rows.
    """

    weights: Float[Array, " q"]
    log_volume: Float[Array, ""]
    gain: Float[Array, ""]


class _Scale(NamedTuple):
    """Weights and common factor on the way.

    Attributes:
        weights: of the features.
        shift: log of the common factor.
        squares: of the residuals, in units of their scales and of the degrees of freedom.
        loss: penalised, minus log likelihood.
        gain: of the last step.
    """

    weights: Float[Array, " q"]
    shift: Float[Array, ""]
    squares: Float[Array, " n"]
    loss: Float[Array, ""]
    gain: Float[Array, ""]


def fit(
    features: Float[Array, "n q"],
    residual: Float[Array, " n"],
    weight: Float[Array, " n"],
    degrees: Float[Array, ""],
) -> ScaleFit:
    """Fisher scoring: the curvature does not depend on the weights, so it is factored once.

    Args:
        features: of the rows, the last constant.
        residual: in units of the scale that all rows share.
        weight: of each row.
        degrees: of freedom of the residuals' Student-t distribution.
    """
    xp = namespace(features)
    count = xp.maximum(weight.sum(), 1.0)
    mean = (weight @ features[:, :-1]) / count
    centred = features[:, :-1] - mean[None, :]
    gram, _ = weighted_gram(centred, weight)
    variance = xp.diagonal(gram) / count
    alive = (variance > _LEAST_VARIANCE).astype(variance.dtype)
    prior = xp.where(alive > 0, variance, 1.0) * xp.maximum(alive.sum(), 1.0) / _DEVIATION**2
    information = 2 * degrees / (degrees + 3)
    gram = information * gram * alive[:, None] * alive[None, :]
    root = cholesky(with_added_diagonal(gram, prior))
    inverse = lower_inverse(root)
    sizes, raw_squares = xp.asarray(_STEP_SIZES, gram.dtype), residual**2 / degrees

    def moved_to(weights: Array, shift: Array) -> tuple[_Scale, Array]:
        log_scale = log_scale_factor(centred, weights) + shift
        squares = raw_squares * xp.exp(-2 * log_scale)
        tails = 0.5 * (degrees + 1) * dot(weight, xp.log1p(squares))
        loss = 0.5 * dot(prior * weights, weights) + tails + dot(weight, log_scale)
        return _Scale(weights, shift, squares, loss, loss), loss

    def step(now: _Scale, _: Any) -> _Scale:
        slope = weight * ((degrees + 1) / (1 + now.squares) - degrees)
        gradient = alive * dot(slope, centred) + prior * now.weights
        down = dot(inverse.T, dot(inverse, gradient))
        shorter = slope.sum() / (information * count)
        best, loss, _ = best_of(
            lambda size: moved_to(now.weights - size * down, now.shift - size * shorter),
            sizes,
            now.loss,
        )
        return choose(loss < now.loss, best, now)._replace(gain=now.loss - loss)

    start, loss = moved_to(xp.zeros_like(mean), xp.zeros_like(count))
    found = repeat(features, _NUM_STEPS, step, start, lambda now: not now.gain >= _LEAST_GAIN)
    weights = found.weights
    volume = xp.log(xp.diagonal(root)).sum() - 0.5 * xp.log(prior).sum()
    log_volume = -0.5 * (prior * weights**2).sum() - volume
    constant = -(mean * weights).sum()
    gain = loss - found.loss + 0.5 * (prior * weights**2).sum()
    return ScaleFit(xp.concatenate([weights, constant[None]]), log_volume, gain)
