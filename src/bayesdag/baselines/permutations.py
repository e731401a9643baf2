"""Random permutations with gradients: Gumbel–Sinkhorn on full matrices, and Gumbel-Top-k.

A permutation is a matrix P with P[i, r] = 1 where node i has place r in the order. Its value is
hard, its gradient that of a relaxation (straight-through).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float
from optax.assignment import hungarian_algorithm

from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn, assignment
from bayesdag.types import Array, Graph, Key


def gumbel_sinkhorn(key: Key, logits: Graph, sinkhorn: Sinkhorn) -> tuple[Graph, Array]:
    """The best assignment of nodes to places under perturbed scores, and Sinkhorn's sweeps.

    Mena, Belanger, Linderman & Snoek (2018). The assignment is exact (Hungarian algorithm, on
    the device); its gradient is that of the Sinkhorn operator at `sinkhorn.temperature`.
    """
    perturbed = logits + jax.random.gumbel(key, logits.shape, dtype=logits.dtype)
    duals = jnp.zeros(logits.shape[0], logits.dtype)
    found: Any = assignment(sinkhorn, perturbed / sinkhorn.temperature, duals)
    soft, carry = found
    hard = hard_assignment(perturbed)
    return hard + soft - jax.lax.stop_gradient(soft), carry.num_iterations


def hard_assignment(scores: Graph) -> Graph:
    """The permutation matrix with the largest sum of scores."""
    scores = jax.lax.stop_gradient(scores)
    # It mixes whole numbers and floats, which our tests forbid everywhere else.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        nodes, places = hungarian_algorithm(-scores)
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
