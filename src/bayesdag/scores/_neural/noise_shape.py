"""Shape of the noise: its tails and its skew, fitted to residuals.

Two halves of Student-t distributions, one wider than the other, moved so that the mean is
zero: with u = r / scale - mode, the density is that of u / skew above the mode and of u · skew
below it. A few tails and a few skews are tried, each with its best scale.
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

from bayesdag.types import Array

_TAILS = (3.0, 5.0, 10.0, 1000.0)  # degrees of freedom; the last is as good as Gaussian
_SKEWS = (1.0, 0.4, 0.55, 0.75, 1.35, 1.8, 2.5)
NUM_EVEN = len(_TAILS)  # shapes without a skew come first
SKEW, DEGREES = np.array([*product(_SKEWS, _TAILS)]).T
_LOG_RATIO = gammaln((DEGREES + 1) / 2) - gammaln(DEGREES / 2)
_CONSTANT = _LOG_RATIO - 0.5 * np.log(DEGREES * np.pi) + np.log(2 / (SKEW + 1 / SKEW))
# E|t|, with which the mean of the two halves lies (skew - 1 / skew) E|t| above the mode.
_MEAN_SIZE = 2 * np.sqrt(DEGREES / np.pi) * np.exp(_LOG_RATIO) / (DEGREES - 1)
MODE = -(SKEW - 1 / SKEW) * _MEAN_SIZE
_NUM_STEPS = 6  # of Fisher scoring, for each scale
_FEW_ROWS, _NUM_KEPT = 512, 4  # rows on which all shapes are tried, and those that are left
_LEAST_SCALE = 1e-3  # of a standardised variable; a better fit is rounding


class Shape(NamedTuple):
    """Scale of the residuals, and which of the shapes suits them."""

    scale: Float[Array, "*two"]
    which: Int[Array, "*two"]


def fit(
    residual: Float[Array, " n"], weight: Float[Array, " n"], num_shapes: int | None = None
) -> tuple[Shape, Float[Array, ""]]:
    """The most likely of the first (or all) shapes with its scale, and the log likelihood.

    Few rows say which shapes are worth a closer look.
    """
    shapes = jnp.arange(num_shapes or len(SKEW))
    if len(shapes) > _NUM_KEPT and len(residual) > _FEW_ROWS:
        few = _each(residual[:_FEW_ROWS], weight[:_FEW_ROWS], shapes)[1]
        shapes = lax.top_k(few, _NUM_KEPT)[1]
    scales, values = _each(residual, weight, shapes)
    best = jnp.argmax(values)
    return Shape(scales[best], shapes[best]), values[best]


def _each(residual: Array, weight: Array, shapes: Int[Array, " s"]) -> tuple[Array, Array]:
    """Scale and log likelihood of some shapes."""
    count = jnp.maximum(weight.sum(), 1.0)
    size = jnp.maximum((weight * jnp.abs(residual)).sum() / count, _LEAST_SCALE)
    sizes, information = (jnp.asarray(table, size.dtype) for table in _moments())

    def of(which: Array) -> tuple[Array, Array]:
        def step(log_scale: Array, _: None) -> tuple[Array, None]:
            standard = residual * jnp.exp(-log_scale)
            slope = (weight * _pull(standard, which) * standard).sum() / count - 1
            return log_scale + jnp.clip(slope / information[which], -0.7, 0.7), None

        log_scale = jnp.log(size / sizes[which])
        log_scale, _ = lax.scan(step, log_scale, None, length=_NUM_STEPS)
        log_scale = jnp.maximum(log_scale, np.log(_LEAST_SCALE))
        density = log_density(residual * jnp.exp(-log_scale), which) - log_scale
        return jnp.exp(log_scale), (weight * density).sum()

    return jax.vmap(of)(shapes)


def log_density(standard: Float[Array, "*n"], which: Array) -> Float[Array, "*n"]:
    """Of residuals in units of the scale."""
    halves = _halves(standard, which)[0]
    degrees, constant = (jnp.asarray(t, standard.dtype)[which] for t in (DEGREES, _CONSTANT))
    return constant - 0.5 * (degrees + 1) * jnp.log1p(halves**2 / degrees)


def degrees_of(which: Array) -> Array:
    """Degrees of freedom."""
    return jnp.asarray(DEGREES, jnp.float32)[which]


def _halves(standard: Array, which: Array) -> tuple[Array, Array]:
    """Distance from the mode in units of its side, and that unit."""
    mode, skew = (jnp.asarray(table, standard.dtype)[which] for table in (MODE, SKEW))
    above = standard - mode
    side = jnp.where(above > 0, skew, 1 / skew)
    return above / side, side


def _pull(standard: Array, which: Array) -> Array:
    """Minus the derivative of the log density."""
    halves, side = _halves(standard, which)
    degrees = jnp.asarray(DEGREES, standard.dtype)[which]
    return (degrees + 1) * halves / (degrees + halves**2) / side


@cache
def _moments() -> tuple[np.ndarray, np.ndarray]:
    """E|r| of each shape at scale 1, and the information on the log scale, by quadrature."""
    u = np.sinh(np.linspace(-12, 12, 4001))[:, None]  # far into the tails
    side = np.where(u > 0, SKEW, 1 / SKEW)
    halves, r = u / side, u + MODE
    density = np.exp(_CONSTANT - 0.5 * (DEGREES + 1) * np.log1p(halves**2 / DEGREES))
    score = (DEGREES + 1) * halves / (DEGREES + halves**2) / side * r - 1
    return trapezoid(np.abs(r) * density, u, axis=0), trapezoid(score**2 * density, u, axis=0)
