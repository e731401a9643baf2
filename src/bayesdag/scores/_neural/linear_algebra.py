"""Small dense linear algebra in full precision, as batches of networks need it."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from bayesdag.types import Array


def dot(a: Array, b: Array) -> Array:
    """Matrix product in full precision."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def solve(matrix: Float[Array, "p p"], vector: Float[Array, " p"]) -> Float[Array, " p"]:
    """Solution of a positive definite system."""
    root = jnp.linalg.cholesky(matrix)
    return jax.scipy.linalg.cho_solve((root, True), vector)


def lower_inverse(root: Float[Array, "p p"]) -> Float[Array, "p p"]:
    """Inverse of a lower triangular matrix.

    Products with it stand where solving would be usual: two triangular solutions that do not
    wait for one another can block a CPU for ever (batches of them share the threads that
    they run on, seen with jaxlib 0.10).
    """
    return jax.scipy.linalg.solve_triangular(root, jnp.eye(len(root)), lower=True)
