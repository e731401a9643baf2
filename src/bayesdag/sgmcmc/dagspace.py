"""From node potentials and an edge mask to a DAG (section 3 of the paper).

Convention, used everywhere: `graph[i, j] = 1` means i -> j, and an edge may only run from a
higher potential to a lower one. (One proof in the paper's appendix writes the opposite.)
Knowledge acts here too: forbidden edges never leave the mask, and required ones confine the
potentials to the orders that agree with them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag.graphs import rank_matrix, topological_order
from bayesdag.sgmcmc.relaxations._order import order_of
from bayesdag.types import Array, Graph, Mask, Potentials


class Support(NamedTuple):
    """The part of (W, p) space that knowledge leaves.

    Attributes:
        allowed: 0 where an edge is forbidden.
        required: 1 where an edge is in every graph.
        precedes: 1 where a node lies above another in every order: a cause above the effect of
            a required edge, a context above all variables.
        levels: nodes that precede others, deepest first: all followers of the nodes marked in
            row k are free or marked in an earlier row. No rows: every order is possible.
        log_odds: beliefs about single edges.
    """

    allowed: Float[Array, "d d"]
    required: Float[Array, "d d"]
    precedes: Float[Array, "d d"]
    levels: Bool[Array, "depth d"]
    log_odds: Float[Array, "d d"]


def differences(potentials: Potentials) -> Float[Array, "d d"]:
    """grad(p): entry (i, j) is p_i - p_j."""
    return potentials[:, None] - potentials[None, :]


def order(potentials: Potentials) -> Float[Array, "d d"]:
    """step(grad p): 1 where the potentials allow i -> j.

    Equal potentials are ordered by index, so that the answer is a complete order always.
    """
    index = jnp.arange(potentials.shape[0])
    higher = potentials[:, None] > potentials[None, :]
    equal = potentials[:, None] == potentials[None, :]
    return (higher | (equal & (index[:, None] > index[None, :]))).astype(potentials.dtype)


def permuted_order(potentials: Potentials) -> Float[Array, "d d"]:
    """P L Pᵀ, the same order by theorem 3.2; L is *strictly* lower triangular."""
    return order_of(rank_matrix(potentials))


def graph(mask: Mask, potentials: Potentials) -> Graph:
    """τ(W, p) = W ⊙ step(grad p): always a DAG, and every DAG is one of these."""
    return mask * order(potentials).astype(mask.dtype)


def coordinates(graph: Shaped[np.ndarray, "d d"]) -> tuple[np.ndarray, np.ndarray]:
    """A mask and potentials with `τ(W, p) = graph`, which must be a DAG."""
    graph = np.asarray(graph)
    potentials = np.empty(len(graph), dtype=np.float32)
    potentials[topological_order(graph)] = np.arange(len(graph), 0, -1)
    return graph.copy(), potentials


def support(
    required: Bool[np.ndarray, "d d"],
    forbidden: Bool[np.ndarray, "d d"],
    log_odds: Float[np.ndarray, "d d"],
    precedes: Bool[np.ndarray, "d d"] | None = None,
) -> Support:
    """Knowledge about d columns in the form the compiled step needs."""
    precedes = required if precedes is None else precedes
    levels, placed = [], ~precedes.any(axis=1)
    while not placed.all():
        level = ~placed & ~np.any(precedes & ~np.asarray(placed)[None, :], axis=1)
        levels.append(level)
        placed = placed | level
    return Support(
        allowed=jnp.asarray(~forbidden, jnp.float32),
        required=jnp.asarray(required, jnp.float32),
        precedes=jnp.asarray(precedes, jnp.float32),
        levels=jnp.asarray(np.array(levels, dtype=bool).reshape(-1, len(required))),
        log_odds=jnp.asarray(log_odds, jnp.float32),
    )


def lift(
    coordinates: Potentials, support: Support, scale: float
) -> tuple[Potentials, Float[Array, ""]]:
    """Potentials that agree with every required edge, and the log volume of the map.

    A node that precedes others lies above the highest of them by a softplus of its own
    coordinate. The map is one to one onto exactly those potentials, so with its volume in
    the energy the prior is the unconstrained one *given* the required edges: nothing is
    rejected or repaired.

    Args:
        coordinates: any real numbers; without required edges they are the potentials.
        support: what is known.
        scale: where the softplus bends, in units of the potentials.
    """
    potentials, log_volume = coordinates, jnp.zeros((), coordinates.dtype)
    for level in support.levels:
        children = jnp.where(support.precedes > 0, potentials[None, :], -jnp.inf)
        highest = jnp.where(level, children.max(axis=1), 0.0)
        # A lead below the rounding error of the potential itself would be a tie.
        least = 1e-6 * (scale + jnp.abs(highest))
        raised = highest + least + scale * jax.nn.softplus(coordinates / scale)
        potentials = jnp.where(level, raised, potentials)
        log_volume += jnp.where(level, jax.nn.log_sigmoid(coordinates / scale), 0.0).sum()
    return potentials, log_volume


def lower(potentials: Potentials, support: Support, scale: float) -> Potentials:
    """The coordinates that `lift` takes to these potentials, which must agree with `support`."""
    coordinates = potentials
    for level in support.levels:
        children = jnp.where(support.precedes > 0, potentials[None, :], -jnp.inf)
        highest = jnp.where(level, children.max(axis=1), 0.0)
        least = 1e-6 * (scale + jnp.abs(highest))
        # A lead that rounding has swallowed stays a tiny one.
        lead = jnp.where(level, jnp.maximum((potentials - highest - least) / scale, 1e-6), 1.0)
        inverse = lead + jnp.log(-jnp.expm1(-lead))
        coordinates = jnp.where(level, scale * inverse, coordinates)
    return coordinates


def confine(mask: Mask, support: Support) -> Mask:
    """The mask with forbidden edges out and required ones in."""
    return mask * support.allowed * (1 - support.required) + support.required
