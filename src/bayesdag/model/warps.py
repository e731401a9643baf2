"""Monotone warps of a variable: piecewise linear tables, in JAX.

In a post-nonlinear model x = g(f(parents) + s(parents) noise) the sum is seen through a
monotone function. Its inverse h = g⁻¹ is given by the values of x at which h takes the values
of an even grid; beyond the grid it goes on straight.
"""

from jaxtyping import Float

from bayesdag.types import Array
from bayesdag.types.late_imports import jax, jnp

Table = Float[Array, "*batch m"]  # increasing values of x, one for each point of the grid


def warped(table: Table, grid: Float[Array, " m"], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """h(x)."""
    return _piecewise(x, table, grid)


def unwarped(table: Table, grid: Float[Array, " m"], z: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """x with h(x) = z."""
    return _piecewise(z, grid, table)


def log_slope(table: Table, grid: Float[Array, " m"], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """log h'(x)."""
    left = _cell(x, table)
    rise = jnp.take(grid, left + 1) - jnp.take(grid, left)
    run = jnp.take(table, left + 1) - jnp.take(table, left)
    return jnp.log(rise) - jnp.log(run)


def _piecewise(
    at: Float[Array, "*n"], places: Float[Array, " m"], heights: Float[Array, " m"]
) -> Float[Array, "*n"]:
    """The line through neighbouring points of the table, at the ends as well."""
    left = _cell(at, places)
    start, low = jnp.take(places, left), jnp.take(heights, left)
    slope = (jnp.take(heights, left + 1) - low) / (jnp.take(places, left + 1) - start)
    return low + slope * (at - start)


def _cell(at: Float[Array, "*n"], places: Float[Array, " m"]) -> Array:
    """Number of the piece that each value lies in."""
    inner = jnp.asarray(places)[1:-1]
    return jax.lax.stop_gradient(jnp.searchsorted(inner, at, side="right", method="compare_all"))
