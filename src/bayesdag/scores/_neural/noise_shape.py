"""Shape of the noise: its tails and its skew, fitted to residuals.

Shapes are skewed Student-t distributions (`model.noises.skewed_student_t`) with a few degrees of
freedom and a few skews; each is tried with its best scale.
"""

from functools import cache
from itertools import product
from math import log
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.integrate import trapezoid
from scipy.special import gammaln

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.noises.skewed_student_t import (
    SkewedShape,
    influence,
    shape_of,
)
from bayesdag.model.noises.skewed_student_t import log_density as log_density_above_mode
from bayesdag.scores._neural.linear_algebra import dot

_TAILS = (3.0, 5.0, 10.0, 1000.0)  # degrees of freedom; the last is as good as Gaussian
_SKEWS = (1.0, 0.4, 0.55, 0.75, 1.35, 1.8, 2.5)
NUM_SYMMETRIC = len(_TAILS)  # shapes without a skew come first
_SKEW, _DEGREES = np.array([*product(_SKEWS, _TAILS)]).T
_DEGREES_32 = _DEGREES.astype(np.float32)
SHAPES = shape_of(_DEGREES, _SKEW, gammaln((_DEGREES + 1) / 2) - gammaln(_DEGREES / 2))
# Scales that are tried for each shape, and the step from one to the next, in logarithms.
_NUM_SCALES, _SCALE_STEP = 21, 0.1
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

    Which shape it is, binned residuals say; its scale and likelihood, the residuals themselves.
    """
    each = _compared(residual, weight, len(_SKEW))
    binned = [_most_likely(each, num) for num in (NUM_SYMMETRIC, len(_SKEW))]
    symmetric = _on_rows(residual, weight, binned[0])
    if namespace(residual) is np and binned[0].shape == binned[1].shape:
        return ShapeFits(symmetric, symmetric)
    return ShapeFits(symmetric, _on_rows(residual, weight, binned[1]))


def fit_symmetric(residual: Float[Array, " n"], weight: Float[Array, " n"]) -> ShapeFit:
    """The most likely shape without a skew, by binned residuals alone."""
    return _most_likely(_compared(residual, weight, NUM_SYMMETRIC), NUM_SYMMETRIC)


def _most_likely(each: ShapeFit, num: int) -> ShapeFit:
    """Of the first shapes."""
    best = namespace(each.shape).argmax(each.log_likelihood[:num])
    return ShapeFit(*(leaf[best] for leaf in each))


def _compared(residual: Array, weight: Array, num_shapes: int) -> ShapeFit:
    """Fits of the first shapes to binned residuals, stacked: one product with a table."""
    xp = namespace(residual)
    count = xp.maximum(weight.sum(), 1.0)
    size = xp.maximum((weight * xp.abs(residual)).sum() / count, _LEAST_SCALE)
    log_scales, densities = _tables(residual.dtype)
    num = num_shapes * _NUM_SCALES
    likelihood = dot(xp.asarray(densities[:num]), _binned(residual / size, weight))
    # The best scale is where the parabola through the best of the table and its neighbours peaks.
    every = xp.arange(num_shapes)
    inner = likelihood.reshape(num_shapes, _NUM_SCALES)[:, 1:-1]
    at = every * _NUM_SCALES + 1 + xp.argmax(inner, axis=1)
    before, here, after = (likelihood[at + step] for step in (-1, 0, 1))
    bend = xp.minimum(before - 2 * here + after, -1e-6)
    shift = xp.clip(0.5 * (before - after) / bend, -1, 1)
    log_scale = xp.asarray(log_scales)[at] + _SCALE_STEP * shift
    best = here - 0.25 * (before - after) * shift
    return ShapeFit(size * xp.exp(log_scale), every, best - count * xp.log(size))


@cache
def _tables(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Log scales of shape after shape, and log densities on the points of the grid under each."""
    points = np.sinh(_SPACING * np.arange(_DIGIT**2) - _REACH)
    steps = _SCALE_STEP * (np.arange(_NUM_SCALES) - _NUM_SCALES // 2)
    log_scales = -np.log(_moments()[0])[:, None] + steps[None, :]
    shapes = SkewedShape(*(table[:, None, None] for table in SHAPES))
    standard = points[None, None, :] * np.exp(-log_scales)[..., None]
    densities = log_density_above_mode(standard - shapes.mode, shapes) - log_scales[..., None]
    densities = np.asarray(densities, dtype).reshape(-1, len(points))
    return log_scales.astype(dtype).reshape(-1), densities


def _on_rows(residual: Array, weight: Array, binned: ShapeFit) -> ShapeFit:
    """A fit to binned residuals, made one to the residuals themselves."""
    xp, own = namespace(residual), _shape(binned.shape, residual.dtype)
    log_scale = xp.maximum(xp.log(binned.scale), log(_LEAST_SCALE))
    standard = residual * xp.exp(-log_scale)
    pull = influence(standard - own.mode, own)
    slope = dot(weight * pull, standard) / xp.maximum(weight.sum(), 1.0) - 1
    information = xp.asarray(_moments()[1], residual.dtype)[binned.shape]
    log_scale = xp.maximum(log_scale + xp.clip(slope / information, -0.7, 0.7), log(_LEAST_SCALE))
    density = log_density(residual * xp.exp(-log_scale), binned.shape) - log_scale
    return ShapeFit(xp.exp(log_scale), binned.shape, dot(weight, density))


def _binned(standard: Float[Array, " n"], weight: Float[Array, " n"]) -> Float[Array, " b"]:
    """Weight of the residuals on each point of the grid, shared by the two nearest ones.

    Compiled, these are products of two digits instead of sums by index, whose rounding depends on
    chance on accelerators.
    """
    xp = namespace(standard)
    place = (xp.clip(xp.arcsinh(standard), -_REACH, _REACH) + _REACH) / _SPACING
    below = xp.floor(place)
    fraction = place - below
    if xp is np:
        at, above = below.astype(np.intp), weight * fraction
        counts = np.bincount(at, weight - above, _DIGIT**2)
        counts[1:] += np.bincount(at, above, _DIGIT**2)[:-1]
        return counts.astype(standard.dtype)
    high = xp.floor(below / _DIGIT)
    low = below - high * _DIGIT
    digits = xp.arange(_DIGIT, dtype=standard.dtype)[None, :]
    highs = (high[:, None] == digits).astype(standard.dtype)
    lows = (low[:, None] == digits).astype(standard.dtype)
    here = dot((highs * (weight * (1 - fraction))[:, None]).T, lows).reshape(-1)
    above = dot((highs * (weight * fraction)[:, None]).T, lows).reshape(-1)
    return here + xp.roll(above, 1)


def log_density(standard: Float[Array, "*n"], shape: Int[Array, "*s"]) -> Float[Array, "*n"]:
    """Of residuals in units of the scale."""
    own = _shape(shape, standard.dtype)
    return log_density_above_mode(standard - own.mode, own)


def degrees_of(shape: Int[Array, "*s"]) -> Float[Array, "*s"]:
    """Degrees of freedom."""
    return namespace(shape).asarray(_DEGREES_32)[shape]


def tail_weights(residual: Float[Array, " n"], best: ShapeFit) -> Float[Array, " n"]:
    """Weight of each residual in a robust regression under the tails of a shape."""
    degrees = degrees_of(best.shape)
    return (degrees + 1) / (degrees + (residual / best.scale) ** 2)


def _shape(shape: Int[Array, "*s"], dtype: np.dtype) -> SkewedShape:
    """Entries of `SHAPES`."""
    xp = namespace(shape)
    return SkewedShape(*(xp.asarray(table)[shape] for table in _shapes(dtype)))


@cache
def _shapes(dtype: np.dtype) -> SkewedShape:
    return SkewedShape(*(table.astype(dtype) for table in SHAPES))


@cache
def _moments() -> tuple[np.ndarray, np.ndarray]:
    """E|r| of each shape at scale 1, and the information on the log scale, by quadrature."""
    above = np.sinh(np.linspace(-12, 12, 4001))[:, None]  # far into the tails
    r = above + SHAPES.mode
    density = np.exp(log_density_above_mode(above, SHAPES))
    score = influence(above, SHAPES) * r - 1
    size = trapezoid(np.abs(r) * density, above, axis=0)
    return size, trapezoid(score**2 * density, above, axis=0)
