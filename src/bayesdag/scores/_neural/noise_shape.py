"""Shape of the noise: its tails and its skew, fitted to residuals.

Shapes are skewed Student-t distributions (`model.noises.skewed_student_t`) with a few degrees of
freedom and a few skews; each is tried with its best scale.
"""

from functools import cache, partial
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
from bayesdag.scores._neural.linear_algebra import dot
from bayesdag.types import Array

_TAILS = (3.0, 5.0, 10.0, 1000.0)  # degrees of freedom; the last is as good as Gaussian
_SKEWS = (1.0, 0.4, 0.55, 0.75, 1.35, 1.8, 2.5)
NUM_SYMMETRIC = len(_TAILS)  # shapes without a skew come first
_SKEW, _DEGREES = np.array([*product(_SKEWS, _TAILS)]).T
SHAPES = shape_of(_DEGREES, _SKEW, gammaln((_DEGREES + 1) / 2) - gammaln(_DEGREES / 2))
_NUM_STEPS, _LAST_STEPS = 3, 2  # of Fisher scoring: on the grid, and on the rows
_LEAST_SCALE = 1e-3  # of a standardised variable; a better fit is rounding
# Residuals are counted on a grid that is even in asinh(r): shapes are compared on its points
# instead of the rows, which costs a tenth and moves the scale by a thousandth.
_DIGIT = 8  # the number of grid points is its square
_REACH = 4.8  # asinh of the farthest residual, in units of their mean size
_SPACING = 2 * _REACH / (_DIGIT**2 - 2)


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


class ShapeFits(NamedTuple):
    """The most likely shape without a skew, and the most likely of all."""

    symmetric: ShapeFit
    any: ShapeFit


def fit(residual: Float[Array, " n"], weight: Float[Array, " n"]) -> ShapeFits:
    """The most likely shapes, each with its scale.

    Which shape and scale it is, binned residuals say; how likely it is, the residuals themselves.
    """
    size, each = _compared(residual, weight, len(_SKEW))
    best = [jnp.argmax(each.log_likelihood[:num]) for num in (NUM_SYMMETRIC, len(_SKEW))]
    start = ShapeFit(*(jnp.stack([leaf[k] for k in best]) for leaf in each))
    both = jax.vmap(partial(_on_rows, residual, weight, size))(start)
    return ShapeFits(*(jax.tree.map(lambda leaf, k=k: leaf[k], both) for k in range(2)))


def fit_symmetric(residual: Float[Array, " n"], weight: Float[Array, " n"]) -> ShapeFit:
    """The most likely shape without a skew."""
    size, each = _compared(residual, weight, NUM_SYMMETRIC)
    best = jnp.argmax(each.log_likelihood)
    return _on_rows(residual, weight, size, jax.tree.map(lambda leaf: leaf[best], each))


def _compared(residual: Array, weight: Array, num_shapes: int) -> tuple[Array, ShapeFit]:
    """Mean size of the residuals, and the fits of the first shapes to them in its units."""
    count = jnp.maximum(weight.sum(), 1.0)
    size = jnp.maximum((weight * jnp.abs(residual)).sum() / count, _LEAST_SCALE)
    points = jnp.asarray(np.sinh(_SPACING * np.arange(_DIGIT**2) - _REACH), residual.dtype)
    return size, _fit_each(points, _binned(residual / size, weight), jnp.arange(num_shapes))


def _on_rows(residual: Array, weight: Array, size: Array, binned: ShapeFit) -> ShapeFit:
    """A fit to binned residuals, made one to the residuals themselves."""

    def step(log_scale: Array, _: None) -> tuple[Array, None]:
        return _scoring_step(residual, weight, binned.shape, log_scale), None

    log_scale, _ = lax.scan(step, jnp.log(size * binned.scale), None, length=_LAST_STEPS)
    log_scale = jnp.maximum(log_scale, np.log(_LEAST_SCALE))
    density = log_density(residual * jnp.exp(-log_scale), binned.shape) - log_scale
    return ShapeFit(jnp.exp(log_scale), binned.shape, (weight * density).sum())


def _binned(standard: Float[Array, " n"], weight: Float[Array, " n"]) -> Float[Array, " b"]:
    """Weight of the residuals on each point of the grid, shared by the two nearest ones.

    Products of two digits instead of sums by index: these are slow on CPUs, and on accelerators
    their rounding depends on chance.
    """
    place = (jnp.clip(jnp.arcsinh(standard), -_REACH, _REACH) + _REACH) / _SPACING
    below = jnp.floor(place)
    fraction = place - below
    high = jnp.floor(below / _DIGIT)
    low = below - high * _DIGIT
    digits = jnp.arange(_DIGIT, dtype=standard.dtype)[None, :]
    highs = (high[:, None] == digits).astype(standard.dtype)
    lows = (low[:, None] == digits).astype(standard.dtype)
    here = dot((highs * (weight * (1 - fraction))[:, None]).T, lows).reshape(-1)
    above = dot((highs * (weight * fraction)[:, None]).T, lows).reshape(-1)
    return here + jnp.roll(above, 1)


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
    points: Float[Array, " b"], weight: Float[Array, " b"], shapes: Int[Array, " s"]
) -> ShapeFit:
    """Scale and log likelihood of some shapes, stacked; the mean size of all points is 1."""
    sizes = jnp.asarray(_moments()[0], points.dtype)

    def one(shape: Array) -> ShapeFit:
        def step(log_scale: Array, _: None) -> tuple[Array, None]:
            return _scoring_step(points, weight, shape, log_scale), None

        log_scale, _ = lax.scan(step, -jnp.log(sizes[shape]), None, length=_NUM_STEPS)
        density = log_density(points * jnp.exp(-log_scale), shape) - log_scale
        return ShapeFit(jnp.exp(log_scale), shape, (weight * density).sum())

    return jax.vmap(one)(shapes)


def _scoring_step(residual: Array, weight: Array, shape: Array, log_scale: Array) -> Array:
    """A step of Fisher scoring for the log scale."""
    standard, own = residual * jnp.exp(-log_scale), _shape(shape, residual.dtype)
    pull = influence(standard - own.mode, own)
    slope = (weight * pull * standard).sum() / jnp.maximum(weight.sum(), 1.0) - 1
    information = jnp.asarray(_moments()[1], residual.dtype)[shape]
    return log_scale + jnp.clip(slope / information, -0.7, 0.7)


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
