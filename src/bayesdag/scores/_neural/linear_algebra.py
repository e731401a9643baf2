"""Small dense linear algebra in full precision, of NumPy and JAX arrays alike."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

from bayesdag.model.array_namespace import Array, matmul, namespace

__all__ = [
    "cholesky",
    "columns_first",
    "diagonal_of",
    "dot",
    "lower_inverse",
    "solve",
    "waiting",
    "weighted_gram",
    "with_added_diagonal",
]

dot = matmul
# LAPACK itself: matrices are small, and what NumPy and SciPy do around it takes longer.
_LAPACK = {
    np.dtype(name): get_lapack_funcs(("potrf", "posv", "trtri"), dtype=name)
    for name in ("float32", "float64")
}


def cholesky(matrix: Float[Array, "p p"]) -> Float[Array, "p p"]:
    """Lower triangular factor; NaN where there is none."""
    xp = namespace(matrix)
    if xp is not np:
        return xp.linalg.cholesky(matrix)
    if not len(matrix):
        return matrix
    root, failed = _LAPACK[matrix.dtype][0](matrix.T, lower=True, clean=True)
    return np.full_like(matrix, np.nan) if failed else root


def solve(
    matrix: Float[Array, "p p"], diagonal: Float[Array, " p"], vector: Float[Array, " p"]
) -> Float[Array, " p"]:
    """Solution of a positive definite system, to which a diagonal is added; NaN where it is none.

    The matrix is symmetric: LAPACK is given its transpose, in the order that it computes in.
    """
    total = with_added_diagonal(matrix, diagonal)
    if not isinstance(total, np.ndarray):
        from jax.scipy.linalg import cho_solve

        return cho_solve((cholesky(total), True), vector)
    if not len(vector):
        return vector
    posv = _LAPACK[total.dtype][1]
    _, solution, failed = posv(total.T, vector, lower=True, overwrite_a=True)
    return np.full_like(vector, np.nan) if failed else solution


def lower_inverse(root: Float[Array, "p p"]) -> Float[Array, "p p"]:
    """Inverse of a lower triangular matrix.

    Products with it stand where solving would be usual: two triangular solutions that do not
    wait for one another can block a CPU for ever when JAX computes them (batches of them share
    the threads that they run on, seen with jaxlib 0.10).
    """
    xp = namespace(root)
    if xp is not np:
        from jax.scipy.linalg import solve_triangular

        return solve_triangular(root, xp.eye(len(root)), lower=True)
    if not len(root):
        return root
    inverse, failed = _LAPACK[root.dtype][2](root, lower=True)
    return np.full_like(root, np.nan) if failed else inverse


def waiting(array: Float[Array, "*a"], solved: Float[Array, "*b"]) -> Float[Array, "*a"]:
    """The array, not before something else is solved: see `lower_inverse`."""
    xp, done = namespace(array), solved.sum()
    return array if xp is np else array + 0 * xp.where(xp.isfinite(done), done, 0.0)


def diagonal_of(vector: Float[Array, " p"]) -> Float[Array, "p p"]:
    """The matrix with this diagonal."""
    return namespace(vector).diag(vector)


def with_added_diagonal(
    matrix: Float[Array, "p p"], vector: Float[Array, " p"]
) -> Float[Array, "p p"]:
    """The sum of a matrix and the one with this diagonal."""
    if not isinstance(matrix, np.ndarray):
        return matrix + diagonal_of(vector)
    total = matrix.copy()
    total.reshape(-1)[:: len(total) + 1] += vector  # a view: no matrix of zeros is added
    return total


def weighted_gram(
    table: Float[Array, "n p"], weight: Float[Array, " n"]
) -> tuple[Float[Array, "p p"], Float[Array, "n p"]]:
    """Products of the columns among weighed rows, and the table times the root of the weights.

    The product of a table with itself costs half of that of two; weights of 1 cost nothing.
    """
    if namespace(weight) is not np or (weight != 1).any():
        table = table * namespace(weight).sqrt(weight)[:, None]
    return dot(table.T, table), table


def columns_first(table: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """The same table; NumPy computes faster along columns that lie together in memory."""
    return np.asfortranarray(table) if namespace(table) is np else table
