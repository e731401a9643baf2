"""Metropolis moves of the order that take mask and functions along.

Neighbours in the order are exchanged, half of them at once: only the edge between the two
depends on who comes first, so a pair is accepted or refused by two columns of the graph. Every
other time what belongs to the pair is exchanged as well, so that an edge is turned round
instead of being lost: its two entries in the mask, its two weights where edges have weights,
and, every other time again, the noise scales, since the one below has the smaller residual.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.sgmcmc.dagspace import order
from bayesdag.sgmcmc.node_energies import ChainContext, with_changes
from bayesdag.types import Array, Key, Mask, Params, Potentials

_EDGE_LEAVES = ("weights", "edges")  # parameters of mechanisms that belong to one edge each


class Pairs(NamedTuple):
    """Neighbours in the order, and what is proposed to them.

    Attributes:
        partner: of each node; itself where it has none.
        swapped: [i, j] = 1 where i and j are to change places.
        carried: likewise, where the edge goes along.
        scaled: 1 for nodes that exchange their noise scales too.
    """

    partner: Int[Array, " d"]
    swapped: Float[Array, "d d"]
    carried: Float[Array, "d d"]
    scaled: Float[Array, " d"]


def swap(
    key: Key, potentials: Potentials, mask: Mask, chain: ChainContext
) -> tuple[Potentials, Mask, ChainContext]:
    """Potentials, mask and chain after one proposal to each of about d/2 pairs."""
    params, d = chain.params, mask.shape[0]
    # One draw for everything: each further one would take long to compile.
    uniform = jax.random.uniform(key, (3, d, d), minval=1e-7)
    pairs = _propose(uniform, chain)
    nobody = jnp.zeros_like(potentials)
    there = chain._replace(order=order(potentials[pairs.partner]))
    carried = jnp.where(pairs.carried > 0, mask.T, mask)
    changes = [_exchange(params, pairs, take) for take in (nobody, nobody + 1)]
    energies = chain.evaluate(
        jnp.stack([chain.graph(mask), there.graph(carried)]),
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *changes),
    )
    pooled = pairs.swapped + jnp.eye(d, dtype=mask.dtype)
    take = chain.accepted(uniform[2, 1], energies, pooled)
    potentials = jnp.where(take > 0, potentials[pairs.partner], potentials)
    mask = jnp.where(take[:, None] * pairs.carried > 0, mask.T, mask)
    params = with_changes(params, _exchange(params, pairs, take))
    return potentials, mask, chain._replace(order=order(potentials), params=params)


def _propose(uniform: Float[Array, "3 d d"], chain: ChainContext) -> Pairs:
    """Every second pair of neighbours, save those that a required edge holds in chain."""
    d, dtype = chain.order.shape[0], chain.order.dtype
    rank = chain.order.sum(axis=0).astype(jnp.int32)  # number of nodes above
    offset = (uniform[2, 0, 0] < 0.5).astype(jnp.int32)
    other = ((rank - offset) ^ 1) + offset
    held = chain.support.precedes + chain.support.precedes.T > 0
    swapped = (other[:, None] == rank[None, :]) & ~held
    reversible = chain.support.allowed * chain.support.allowed.T > 0
    carried = swapped & reversible & _symmetric(uniform[0] < 0.5)
    scaled = (carried & _symmetric(uniform[1] < 0.5)).any(axis=1)
    partner = jnp.where(swapped.any(axis=1), jnp.argmax(swapped, axis=1), jnp.arange(d))
    return Pairs(partner, swapped.astype(dtype), carried.astype(dtype), scaled.astype(dtype))


def _exchange(params: Params, pairs: Pairs, take: Float[Array, " d"]) -> Params:
    """The leaves that belong to pairs, exchanged within those that are taken."""
    edges, nodes = take[:, None] * pairs.carried > 0, take * pairs.scaled > 0
    mechanism = {
        name: jnp.where(edges, params["mechanism"][name].T, params["mechanism"][name])
        for name in _EDGE_LEAVES
        if name in params["mechanism"]
    }
    noise = {
        name: jnp.where(nodes, leaf[pairs.partner], leaf) for name, leaf in params["noise"].items()
    }
    return {"mechanism": mechanism, "noise": noise}


def _symmetric(coins: Array) -> Array:
    """The upper half, mirrored: one coin for each unordered pair."""
    upper = jnp.triu(coins, k=1)
    return upper | upper.T
