"""A tree of unknowns as one vector, and what samplers do to it.

One long vector instead of many leaves: a step then compiles several times faster, and a GPU
launches a handful of kernels instead of a hundred.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from bayesdag.types import Array, Key, Params

Vector = Float[Array, " k"]


def flatten(tree: Params) -> tuple[Vector, Any]:
    """All entries in a row, and the function that restores the tree from them."""
    return ravel_pytree(tree)


def normal(key: Key, like: Vector) -> Vector:
    """Independent standard normal draws in the shape of `like`."""
    # Without the barrier every use of the draw would draw it again.
    return jax.lax.optimization_barrier(jax.random.normal(key, like.shape, like.dtype))


def smooth(old: Vector, new: Vector, decay: float, count: Array) -> Vector:
    """Moving average that starts at the first value instead of zero."""
    weight = jnp.where(count == 0, 1.0, 1 - decay)
    return old + weight * (new - old)


def smooth_variance(
    old: Vector, grad_variance: Params | None, decay: float, count: Array
) -> Vector:
    """Moving average of the gradient's variance; as it was where mini-batches add none."""
    return old if grad_variance is None else smooth(old, flatten(grad_variance)[0], decay, count)


def fraction_of_zeros(values: Vector) -> Float[Array, ""]:
    """Fraction of entries that are zero."""
    return (values == 0).mean()
