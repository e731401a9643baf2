"""Heteroscedastic noise: a scale that depends on the parents.

Noise whose scale is taken for constant, and is not, makes wrong directions look right: what
the mean cannot explain, a parent that is none may. The logarithm of the scale is therefore
linear in what the network sees, its hidden units and inputs; Laplace's approximation charges
for the weights.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural.linear_algebra import dot
from bayesdag.types import Array

_NUM_STEPS = 7
_STEP_SIZES = (0.25, 1.0)  # of a scoring step; all are tried, and staying where it is
_LEAST_VARIANCE = 1e-6  # of a hidden unit: one that varies less is dead
# Prior deviation of the logarithm of the scale, all features together.
_DEVIATION = 0.5


class ScaleFit(NamedTuple):
    """Log factor of the scale: weights · features, the last of which is constant.

    Attributes:
        weights: of all features.
        log_volume: log prior density at the fit and Laplace's volume, in nats.
    """

    weights: Float[Array, " q"]
    log_volume: Float[Array, ""]


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
    count = jnp.maximum(weight.sum(), 1.0)
    mean = (weight @ features[:, :-1]) / count
    centred = features[:, :-1] - mean[None, :]
    variance = (weight @ centred**2) / count
    alive = variance > _LEAST_VARIANCE
    centred = jnp.where(alive[None, :], centred, 0.0)
    number = jnp.maximum(alive.sum().astype(variance.dtype), 1.0)
    prior = jnp.where(alive, variance, 1.0) * number / _DEVIATION**2
    information = 2 * degrees / (degrees + 3)
    matrix = information * dot((centred * weight[:, None]).T, centred) + jnp.diag(prior)
    root = jnp.linalg.cholesky(matrix)
    sizes = jnp.asarray(_STEP_SIZES, matrix.dtype)

    def loss(weights: Array, shift: Array) -> Array:
        log_scale = log_scale_factor(centred, weights) + shift
        standard = residual * jnp.exp(-log_scale)
        density = -0.5 * (degrees + 1) * jnp.log1p(standard**2 / degrees) - log_scale
        return -(weight * density).sum() + 0.5 * (prior * weights**2).sum()

    def step(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        weights, shift, now = carry
        standard = residual * jnp.exp(-log_scale_factor(centred, weights) - shift)
        slope = weight * (1 - (degrees + 1) * standard**2 / (degrees + standard**2))
        down = jax.scipy.linalg.cho_solve((root, True), dot(slope, centred) + prior * weights)
        shorter = slope.sum() / (information * count)
        tried = jax.vmap(lambda size: (weights - size * down, shift - size * shorter))(sizes)
        losses = jax.vmap(loss)(*tried)
        losses = jnp.where(jnp.isfinite(losses), losses, jnp.inf)
        best = jnp.argmin(losses)
        better = losses[best] < now
        weights = jnp.where(better, tried[0][best], weights)
        shift = jnp.where(better, tried[1][best], shift)
        return (weights, shift, jnp.minimum(losses[best], now)), None

    begin = (jnp.zeros_like(mean), jnp.zeros_like(count))
    (weights, _, _), _ = lax.scan(step, (*begin, loss(*begin)), None, length=_NUM_STEPS)
    volume = jnp.log(jnp.diagonal(root)).sum() - 0.5 * jnp.log(prior).sum()
    log_volume = -0.5 * (prior * weights**2).sum() - volume
    return ScaleFit(jnp.append(weights, -(mean * weights).sum()), log_volume)
