"""Sinkhorn: the doubly stochastic relaxation of a sort, with an implicit gradient.

The paper's choice (section 3.2): P solves an entropy-regularised assignment of nodes to ranks
with scores `p oᵀ / t`. The iterations leave no tape; the gradient follows from the equations
that hold at convergence. Each call starts from the duals of the one before, corrected by one
Newton step: the potentials have moved little since, so that a sweep or two are left to do.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.graphs import rank_matrix
from bayesdag.sgmcmc.relaxations._order import order_of
from bayesdag.types import Array, Graph, Key, Potentials


class Duals(NamedTuple):
    """Dual variables at the end of the last call.

    Attributes:
        columns: log scaling of each rank.
        num_iterations: row-and-column sweeps that call took, and one Newton step.
    """

    columns: Float[Array, " d"]
    num_iterations: Int[Array, ""]


@dataclass(frozen=True)
class Sinkhorn:
    """Doubly stochastic relaxation of the permutation that sorts the potentials.

    Attributes:
        temperature: `t`; smaller is closer to the sort, and takes more iterations.
        spacing: distance between neighbouring entries of `o`; the paper writes 1, its
            published code uses 10, which makes the effective temperature ten times lower.
        tolerance: largest deviation of a row sum from one at which the iteration stops.
        max_iterations: hard stop.
        ridge: added to the singular system of the implicit gradient and of the Newton step.
    """

    temperature: float = 0.2
    spacing: float = 1.0
    tolerance: float = 1e-3
    max_iterations: int = 3000
    ridge: float = 1e-4

    def init(self, d: int) -> Duals:
        """Duals of a cold start."""
        return Duals(jnp.zeros(d), jnp.zeros((), jnp.int32))

    def __call__(self, key: Key, potentials: Potentials, carry: Duals) -> tuple[Graph, Duals]:
        """The hard order with a straight-through gradient, and the new duals.

        The cotangent is taken at the *hard* permutation, then pulled through the soft one.
        """
        del key  # deterministic
        permutation, carry = self.permutation(potentials, carry)
        return order_of(permutation), carry

    def permutation(self, potentials: Potentials, carry: Duals) -> tuple[Graph, Duals]:
        """The hard rank matrix, with the gradient of the soft one."""
        soft, carry = self._soft(potentials, carry)
        return rank_matrix(potentials) + (soft - jax.lax.stop_gradient(soft)), carry

    def relaxed(self, potentials: Potentials, carry: Duals) -> tuple[Graph, Duals]:
        """The soft order P L Pᵀ and its own gradient."""
        soft, carry = self._soft(potentials, carry)
        return order_of(soft), carry

    def _soft(self, potentials: Potentials, carry: Duals) -> tuple[Graph, Duals]:
        d = potentials.shape[0]
        ranks = self.spacing * jnp.arange(1, d + 1, dtype=potentials.dtype)
        scores = potentials[:, None] * ranks[None, :] / self.temperature
        start = jax.lax.stop_gradient(carry.columns)
        return assignment(self, scores, start)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def assignment(
    settings: Sinkhorn, scores: Graph, columns: Float[Array, " d"]
) -> tuple[Graph, Duals]:
    """exp(scores - rows - columns) with unit row and column sums, and the duals."""

    def unfinished(state: tuple) -> Array:
        *_, error, count = state
        return (error > settings.tolerance) & (count < settings.max_iterations)

    def sweep(state: tuple) -> tuple:
        rows, columns, next_rows, _, count = state
        rows = next_rows
        columns = jax.nn.logsumexp(scores - rows[:, None], axis=0)
        # The next row duals also give the present row sums: exp(next_rows - rows).
        next_rows = jax.nn.logsumexp(scores - columns[None, :], axis=1)
        return rows, columns, next_rows, jnp.abs(jnp.expm1(next_rows - rows)).max(), count + 1

    columns = _newton(settings, scores, columns)
    rows = jax.nn.logsumexp(scores - columns[None, :], axis=1)
    error = jnp.full((), jnp.inf, scores.dtype)
    start = (rows, columns, rows, error, jnp.ones((), jnp.int32))
    rows, columns, _, _, count = jax.lax.while_loop(unfinished, sweep, start)
    soft = jnp.exp(scores - rows[:, None] - columns[None, :])
    return soft, Duals(columns, count)


def _newton(settings: Sinkhorn, scores: Graph, columns: Float[Array, " d"]) -> Array:
    """Duals after a Newton step towards unit column sums; as they were if that is no nearer."""

    def error(columns: Array) -> Array:
        return jnp.abs(jax.nn.softmax(scores - columns[None, :], axis=1).sum(axis=0) - 1).max()

    soft = jax.nn.softmax(scores - columns[None, :], axis=1)
    moved = columns + _solve(settings, soft, soft, soft.sum(axis=0) - 1)
    return jnp.where(error(moved) < error(columns), moved, columns)


def _solve(settings: Sinkhorn, soft: Graph, scaled: Graph, right: Float[Array, " d"]) -> Array:
    """Change of the column duals that changes the column sums by `right`.

    Eliminating the row duals leaves a d x d system that is positive semidefinite at any
    tolerance; the 2d x 2d one becomes singular in float32. On a GPU products have three
    digits unless asked for more, and the ridge is smaller than that.
    """
    product = jnp.matmul(soft.T, scaled, precision="highest")
    return jnp.linalg.solve(jnp.diag(soft.sum(axis=0) + settings.ridge) - product, right)


def _forward(settings: Sinkhorn, scores: Graph, columns: Array) -> tuple:
    found: Any = assignment(settings, scores, columns)
    return found, found[0]


def _backward(settings: Sinkhorn, soft: Graph, cotangents: tuple) -> tuple:
    """Gradient in the scores: both sums of dP = P ⊙ (dM - da 1ᵀ - 1 dbᵀ) must vanish.

    The row sums are taken as they are, which is one only up to the tolerance.
    """
    product = soft * cotangents[0]
    rows, columns = product.sum(axis=1), product.sum(axis=0)
    scaled = soft / soft.sum(axis=1, keepdims=True)
    column_dual = _solve(settings, soft, scaled, columns - scaled.T @ rows)
    row_dual = (rows - soft @ column_dual) / soft.sum(axis=1)
    return product - soft * (row_dual[:, None] + column_dual[None, :]), jnp.zeros_like(rows)


assignment.defvjp(_forward, _backward)


build = Sinkhorn
