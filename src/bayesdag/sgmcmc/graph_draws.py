"""Graphs τ(W, p) with W ~ q(W|p), for all chains: with a way back, or as plain draws."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Float

from bayesdag.sgmcmc import dagspace
from bayesdag.sgmcmc.chains import ChainContext, ChainState
from bayesdag.types import Array, Key, Params


class GraphDraw(NamedTuple):
    """Graphs of all chains, and the way back from them.

    Attributes:
        graphs: (chain, d, d).
        entropy: of q(W|p) for each chain.
        pull: gradients in (graphs, entropy) -> gradients in (coordinates, φ).
        carry: of the relaxation.
    """

    graphs: Float[Array, "chain d d"]
    entropy: Float[Array, " chain"]
    pull: Callable
    carry: Any


def differentiable(
    method: Any, key: Key, state: ChainState, context: ChainContext, soft: bool
) -> GraphDraw:
    """One graph a chain; `soft` when the gradient in the potentials is wanted too."""

    def one(key: Key, coordinates: Array, carry: Params, edge_params: Params) -> tuple:
        potentials, _ = method.lift(coordinates, context)
        order, permutation, carry = _order(method, key, potentials, carry, soft)
        seen = potentials if method.follow_mask else jax.lax.stop_gradient(potentials)
        mask = method.edges.sample(edge_params, key, seen, permutation)
        graph = dagspace.confine(mask, context.support) * order
        return (graph, method.edges.entropy(edge_params, seen)), carry

    def all_chains(coordinates: Array, edge_params: Params) -> tuple:
        return _over_chains(method, one, key)(coordinates, state.carry, edge_params)

    (graphs, entropy), pull, carry = jax.vjp(
        all_chains, state.potentials.position, state.learned["edges"], has_aux=True
    )
    return GraphDraw(graphs, entropy, pull, carry)


def sample(
    method: Any, key: Key, state: ChainState, context: ChainContext
) -> tuple[Array, Array, Array]:
    """Potentials, mask and graph of every chain."""

    def one(key: Key, coordinates: Array, carry: Params, edge_params: Params) -> tuple:
        del carry  # only gradients need the relaxation
        potentials, _ = method.lift(coordinates, context)
        mask = dagspace.confine(method.edges.sample(edge_params, key, potentials), context.support)
        return potentials, mask, dagspace.graph(mask, potentials)

    chains = _over_chains(method, one, key)
    return chains(state.potentials.position, state.carry, state.learned["edges"])


def _over_chains(method: Any, one: Callable, key: Key) -> Callable:
    """`one` for all chains, each with its own key and, unless it is shared, its own φ."""
    keys = jax.random.split(key, method.num_chains)
    mapped = jax.vmap(one, in_axes=(0, 0, 0, None if method.share_edges else 0))
    return lambda *arguments: mapped(keys, *arguments)


def _order(method: Any, key: Key, potentials: Array, carry: Params, soft: bool) -> tuple:
    """The order, the rank matrix where its gradient is followed, and the carry."""
    if not soft:
        return dagspace.order(potentials), None, carry
    if method.follow_mask and hasattr(method.relaxation, "permutation"):
        permutation, carry = method.relaxation.permutation(potentials, carry)
        return dagspace.order_of(permutation), permutation, carry
    order, carry = method.relaxation(key, potentials, carry)
    return order, None, carry
