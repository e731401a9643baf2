"""Graphs τ(W, p) with W ~ q(W|p), for all chains: with a way back, or as plain draws."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import jax
from jaxtyping import Float

from bayesdag.sgmcmc import dagspace
from bayesdag.sgmcmc.chains import ChainState, DataContext
from bayesdag.types import Array, Edges, Graph, Key, Params, Pytree, Relaxation

STRAIGHT_THROUGH = (
    "the gradient of the order is a straight-through estimate, so edge probabilities are "
    "approximate"
)


@runtime_checkable
class VariationalEngine(Protocol):
    """An engine whose masks come from q(W|p)."""

    @property
    def relaxation(self) -> Relaxation:
        """Supplies the gradient of the order."""
        ...

    @property
    def edges(self) -> Edges:
        """q(W|p)."""
        ...

    @property
    def num_chains(self) -> int:
        """Chains that run side by side."""
        ...

    @property
    def share_edges(self) -> bool:
        """Whether all chains have one network q(W|p)."""
        ...

    @property
    def follow_mask(self) -> bool:
        """Whether the gradient in p runs through q(W|p) too."""
        ...

    def lift(self, coordinates: Array, context: DataContext) -> tuple[Array, Array]:
        """Potentials that agree with what is required, and the log volume of the map."""
        ...


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
    carry: Pytree


def differentiable(
    engine: VariationalEngine, key: Key, state: ChainState, context: DataContext, soft: bool
) -> GraphDraw:
    """One graph per chain; `soft` when the gradient in the potentials is wanted too."""

    def one(key: Key, coordinates: Array, carry: Params, edge_params: Params) -> tuple:
        potentials, _ = engine.lift(coordinates, context)
        order, permutation, carry = _order(engine, key, potentials, carry, soft)
        seen = potentials if engine.follow_mask else jax.lax.stop_gradient(potentials)
        mask = engine.edges.sample(edge_params, key, seen, permutation)
        graph = dagspace.confine(mask, context.support) * order
        return (graph, engine.edges.entropy(edge_params, seen)), carry

    def all_chains(coordinates: Array, edge_params: Params) -> tuple:
        return _per_chain(engine, one, key)(coordinates, state.carry, edge_params)

    (graphs, entropy), pull, carry = jax.vjp(
        all_chains, state.potentials.position, state.learned["edges"], has_aux=True
    )
    return GraphDraw(graphs, entropy, pull, carry)


def sample(
    engine: VariationalEngine, key: Key, state: ChainState, context: DataContext
) -> tuple[Array, Array, Array]:
    """Potentials, mask and graph of every chain."""

    def one(key: Key, coordinates: Array, carry: Params, edge_params: Params) -> tuple:
        del carry  # only gradients need the relaxation
        potentials, _ = engine.lift(coordinates, context)
        mask = dagspace.confine(engine.edges.sample(edge_params, key, potentials), context.support)
        return potentials, mask, dagspace.graph(mask, potentials)

    chains = _per_chain(engine, one, key)
    return chains(state.potentials.position, state.carry, state.learned["edges"])


def _per_chain(engine: VariationalEngine, one: Callable, key: Key) -> Callable:
    """`one` for all chains, each with its own key and, unless it is shared, its own φ."""
    keys = jax.random.split(key, engine.num_chains)
    mapped = jax.vmap(one, in_axes=(0, 0, 0, None if engine.share_edges else 0))
    return lambda *arguments: mapped(keys, *arguments)


def _order(
    engine: VariationalEngine, key: Key, potentials: Array, carry: Params, soft: bool
) -> tuple[Graph, Graph | None, Params]:
    """The order, the rank matrix where its gradient is followed, and the carry."""
    if not soft:
        return dagspace.order(potentials), None, carry
    sorted_ranks = engine.relaxation.permutation(potentials, carry) if engine.follow_mask else None
    if sorted_ranks is not None:
        permutation, carry = sorted_ranks
        return dagspace.order_of(permutation), permutation, carry
    order, carry = engine.relaxation(key, potentials, carry)
    return order, None, carry
