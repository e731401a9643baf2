"""Shape of the noise: its tails and its skew, fitted to residuals.

Shapes are skewed Student-t distributions (`model.noises.skewed_student_t`) with a few degrees of
freedom and a few skews; each is tried with its best scale.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int
from scipy.integrate import trapezoid
from scipy.special import gammaln

from bayesdag.model.noises.skewed_student_t import (
    SkewedShape,
    influence,
    shape_of,
)
from bayesdag.model.noises.skewed_student_t import log_density as log_density_above_mode
from bayesdag.types import Array

_TAILS = (3.0, 5.0, 10.0, 1000.0)  # degrees of freedom; the last is as good as Gaussian
_SKEWS = (1.0, 0.4, 0.55, 0.75, 1.35, 1.8, 2.5)
NUM_SYMMETRIC = len(_TAILS)  # shapes without a skew come first
_SKEW, _DEGREES = np.array([*product(_SKEWS, _TAILS)]).T
SHAPES = shape_of(_DEGREES, _SKEW, gammaln((_DEGREES + 1) / 2) - gammaln(_DEGREES / 2))
_NUM_STEPS = 3  # of Fisher scoring, for each scale
# Rows and steps with which all shapes are tried, and the number of those that are left.
_FEW_ROWS, _FEW_STEPS, _NUM_KEPT = 512, 1, 4
_LEAST_SCALE = 1e-3  # of a standardised variable; a better fit is rounding


class ShapeFit(NamedTuple):
    """The most likely shape of some residuals.

    Attributes:
        scale: of the residuals.
        shape: its number in `SHAPES`.
        log_likelihood: of the residuals.
    """

    scale: Float[Array, ""]
    shape: Int[Array, ""]
    log_likelihood: Float[Array, ""]


def fit(
    residual: Float[Array, " n"], weight: Float[Array, " n"], num_shapes: int | None = None
) -> ShapeFit:
    """The most likely of the first (or all) shapes, with its scale.

    Few rows and one step say which shapes are worth a closer look.
    """
    shapes = jnp.arange(num_shapes or len(_SKEW))
    if len(shapes) > _NUM_KEPT:
        few = _fit_each(residual[:_FEW_ROWS], weight[:_FEW_ROWS], shapes, _FEW_STEPS).log_likelihood
        shapes = lax.top_k(few, _NUM_KEPT)[1]
    each = _fit_each(residual, weight, shapes)
    best = jnp.argmax(each.log_likelihood)
    return jax.tree.map(lambda leaf: leaf[best], each)


def log_density(standard: Float[Array, "*n"], shape: Int[Array, "*s"]) -> Float[Array, "*n"]:
    """Of residuals in units of the scale."""
    own = _shape(shape, standard.dtype)
    return log_density_above_mode(standard - own.mode, own)


def degrees_of(shape: Int[Array, "*s"]) -> Float[Array, "*s"]:
    """Degrees of freedom."""
    return jnp.asarray(_DEGREES, jnp.float32)[shape]


def tail_weights(residual: Float[Array, " n"], best: ShapeFit) -> Float[Array, " n"]:
    """Weight of each residual in a robust regression under the tails of a shape."""
    degrees = degrees_of(best.shape)
    return (degrees + 1) / (degrees + (residual / best.scale) ** 2)


def _fit_each(
    residual: Array, weight: Array, shapes: Int[Array, " s"], num_steps: int = _NUM_STEPS
) -> ShapeFit:
    """Scale and log likelihood of some shapes, stacked."""
    count = jnp.maximum(weight.sum(), 1.0)
    size = jnp.maximum((weight * jnp.abs(residual)).sum() / count, _LEAST_SCALE)
    sizes, information = (jnp.asarray(table, size.dtype) for table in _moments())

    def one(shape: Array) -> ShapeFit:
        def step(log_scale: Array, _: None) -> tuple[Array, None]:
            standard = residual * jnp.exp(-log_scale)
            own = _shape(shape, standard.dtype)
            pull = influence(standard - own.mode, own)
            slope = (weight * pull * standard).sum() / count - 1
            return log_scale + jnp.clip(slope / information[shape], -0.7, 0.7), None

        log_scale = jnp.log(size / sizes[shape])
        log_scale, _ = lax.scan(step, log_scale, None, length=num_steps)
        log_scale = jnp.maximum(log_scale, np.log(_LEAST_SCALE))
        density = log_density(residual * jnp.exp(-log_scale), shape) - log_scale
        return ShapeFit(jnp.exp(log_scale), shape, (weight * density).sum())

    return jax.vmap(one)(shapes)


def _shape(shape: Int[Array, "*s"], dtype: np.dtype) -> SkewedShape:
    """Entries of `SHAPES`."""
    return SkewedShape(*(jnp.asarray(table, dtype)[shape] for table in SHAPES))


@cache
def _moments() -> tuple[np.ndarray, np.ndarray]:
    """E|r| of each shape at scale 1, and the information on the log scale, by quadrature."""
    above = np.sinh(np.linspace(-12, 12, 4001))[:, None]  # far into the tails
    r = above + SHAPES.mode
    density = np.exp(log_density_above_mode(above, SHAPES))
    score = influence(above, SHAPES) * r - 1
    size = trapezoid(np.abs(r) * density, above, axis=0)
    return size, trapezoid(score**2 * density, above, axis=0)
