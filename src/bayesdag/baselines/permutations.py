"""Random permutations with gradients: Gumbel–Sinkhorn on full matrices, and Gumbel-Top-k.

A permutation is a matrix P with P[i, r] = 1 where node i has place r in the order. Its value is
hard, its gradient that of a relaxation (straight-through).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int
from optax.assignment import hungarian_algorithm

from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn, assignment
from bayesdag.types import Array, Graph, Key

_SWEEPS = 5  # before each step of Newton's
_LENGTHS = (0.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # of that step; zero: none
_MOST_ROUNDS = 200


def gumbel_sinkhorn(key: Key, logits: Graph, sinkhorn: Sinkhorn) -> tuple[Graph, Array]:
    """The best assignment of nodes to places under perturbed scores, and Sinkhorn's sweeps.

    Mena, Belanger, Linderman & Snoek (2018). The assignment is exact (Hungarian algorithm, on
    the device); its gradient is that of the Sinkhorn operator at `sinkhorn.temperature`.
    """
    perturbed = logits + jax.random.gumbel(key, logits.shape, dtype=logits.dtype)
    scores = perturbed / sinkhorn.temperature
    duals, num_rounds = newton_duals(jax.lax.stop_gradient(scores), sinkhorn)
    found: Any = assignment(sinkhorn, scores, duals)
    soft, carry = found
    hard = hard_assignment(scores, carry.columns)
    sweeps = _SWEEPS * num_rounds + carry.num_iterations
    return hard + soft - jax.lax.stop_gradient(soft), sweeps


def newton_duals(scores: Graph, sinkhorn: Sinkhorn) -> tuple[Float[Array, " d"], Int[Array, ""]]:
    """Column duals at which rows and columns sum to one, and rounds until then.

    Sweeps alone take thousands where scores have full rank. Sinkhorn's dual problem is smooth and
    convex: a round is a few sweeps and the best of several lengths of Newton's step.
    """
    d = scores.shape[0]
    lengths = jnp.asarray(_LENGTHS, scores.dtype)

    def unfinished(state: tuple) -> Array:
        _, excess, count = state
        # The sweeps that follow stop by row sums, these rounds by those of columns.
        return (jnp.abs(excess).max() > 0.5 * sinkhorn.tolerance) & (count < _MOST_ROUNDS)

    def newton(state: tuple) -> tuple:
        columns, _, count = state
        for _ in range(_SWEEPS):
            rows = jax.nn.logsumexp(scores - columns[None, :], axis=1)
            columns = jax.nn.logsumexp(scores - rows[:, None], axis=0)
        soft = jax.nn.softmax(scores - columns[None, :], axis=1)
        # On a GPU products have three digits unless asked for more; the ridge is smaller.
        product = jnp.matmul(soft.T, soft, precision="highest")
        curvature = jnp.diag(soft.sum(axis=0) + sinkhorn.ridge) - product
        direction = jnp.linalg.solve(curvature, soft.sum(axis=0) - 1)
        candidates = columns[None, :] + lengths[:, None] * direction[None, :]
        excess = jax.vmap(column_excess)(candidates)
        best = jnp.argmin(jnp.abs(excess).sum(axis=1))
        return candidates[best], excess[best], count + 1

    def column_excess(columns: Array) -> Array:
        return jax.nn.softmax(scores - columns[None, :], axis=1).sum(axis=0) - 1

    start = jnp.zeros(d, scores.dtype)
    columns, _, count = jax.lax.while_loop(
        unfinished, newton, (start, jnp.full(d, jnp.inf, scores.dtype), jnp.zeros((), jnp.int32))
    )
    return columns, count


def hard_assignment(scores: Graph, columns: Float[Array, " d"]) -> Graph:
    """The permutation matrix with the largest sum of scores.

    Prices of rows and columns change every sum alike, so any `columns` are right. Sinkhorn's duals
    are nearly those of the assignment itself, under which most rows want different columns: a
    third of the search is left, and the search is what an accelerator waits for.
    """
    cost = jax.lax.stop_gradient(columns[None, :] - scores)
    cost = cost - cost.min(axis=1, keepdims=True)
    # It mixes whole numbers and floats, which our tests forbid everywhere else.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        nodes, places = hungarian_algorithm(cost)
    return jnp.zeros_like(scores).at[nodes, places].set(1.0)


def gumbel_top_k(key: Key, scores: Float[Array, " d"], temperature: float) -> Graph:
    """Nodes by descending perturbed score: a draw without replacement, relaxed by SoftSort."""
    perturbed = scores + jax.random.gumbel(key, scores.shape, dtype=scores.dtype)
    order = jnp.argsort(-jax.lax.stop_gradient(perturbed))
    hard = jax.nn.one_hot(order, len(scores), dtype=scores.dtype, axis=0)
    distance = jnp.abs(perturbed[:, None] - perturbed[order][None, :])
    soft = jax.nn.softmax(-distance / temperature, axis=0)
    return hard + soft - jax.lax.stop_gradient(soft)


def order_of(permutation: Graph) -> Graph:
    """`order[i, j]` is 1 where node i comes before node j."""
    d = permutation.shape[0]
    before = jnp.triu(jnp.ones((d, d), permutation.dtype), k=1)
    return permutation @ before @ permutation.T
