"""Which shape has the noise: how heavy are its tails, and to which side does it lean?

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
# The scale is looked for on a grid around what mean sizes suggest, ever finer.
_GRID = (-1.0, -0.5, 0.0, 0.5, 1.0)
_REACH = (0.6, 0.2, 0.06, 0.02)
_LEAST_SCALE = 1e-3  # of a standardised variable; a better fit is rounding


class Shape(NamedTuple):
    """Scale of the residuals, and which of the shapes suits them."""

    scale: Float[Array, "*two"]
    which: Int[Array, "*two"]


def fit(
    residual: Float[Array, " n"], weight: Float[Array, " n"], num_shapes: int = len(SKEW)
) -> tuple[Shape, Float[Array, ""]]:
    """The most likely of the first shapes with its scale, and the log likelihood."""
    count = jnp.maximum(weight.sum(), 1.0)
    size = (weight * jnp.abs(residual)).sum() / count
    grid = jnp.asarray(_GRID, residual.dtype)

    def of(which: Array) -> tuple[Array, Array]:
        def value(log_scale: Array) -> Array:
            density = log_density(residual * jnp.exp(-log_scale), which) - log_scale
            return (weight * density).sum()

        def closer(log_scale: Array, reach: Array) -> tuple[Array, None]:
            tried = log_scale + reach * grid
            return tried[jnp.argmax(jax.vmap(value)(tried))], None

        start = jnp.log(size / jnp.asarray(_mean_sizes(), size.dtype)[which])
        start = jnp.maximum(start, np.log(_LEAST_SCALE))
        log_scale, _ = lax.scan(closer, start, jnp.asarray(_REACH, residual.dtype))
        return jnp.exp(log_scale), value(log_scale)

    scales, values = jax.vmap(of)(jnp.arange(num_shapes))
    best = jnp.argmax(values)
    return Shape(scales[best], best), values[best]


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


@cache
def _mean_sizes() -> np.ndarray:
    """E|r| of each shape at scale 1, by quadrature."""
    u = np.sinh(np.linspace(-12, 12, 4001))[:, None]  # far into the tails
    side = np.where(u > 0, SKEW, 1 / SKEW)
    density = np.exp(_CONSTANT - 0.5 * (DEGREES + 1) * np.log1p((u / side) ** 2 / DEGREES))
    return trapezoid(np.abs(u + MODE) * density, u, axis=0)
