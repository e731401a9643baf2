"""Which way do the potentials of the joint engine have to move, as Algorithm 2 prints it?

The data's gradient in the graph is pulled back through the relaxed order (straight-through),
so it is biased; exchanges of neighbours (`_order_swaps`) need none of this.
"""

from typing import Any

import jax

from bayesdag.model.energy import Batch, Gradient, spread
from bayesdag.sgmcmc import dagspace
from bayesdag.sgmcmc.chains import ChainContext
from bayesdag.types import Array, Key


def gradient(
    method: Any,
    key: Key,
    state: Any,
    graphs: Array,
    slope: Gradient,
    context: ChainContext,
    batch: Batch,
) -> tuple[Array, Array | None, Any]:
    """Gradient of U in p for every chain, its variance, and what the relaxation carries on."""

    def orders(coordinates: Array) -> tuple:
        def one(coordinates: Array, carry: Any) -> tuple:
            return method.relaxation(key, method.lift(coordinates, context)[0], carry)

        return jax.vmap(one)(coordinates, state.carry)

    position, energy = state.potentials.position, method.energy
    _, pull, carry = jax.vjp(orders, position, has_aux=True)
    masks = jax.vmap(dagspace.confine, in_axes=(0, None))(state.masks, context.support)
    structure = jax.vmap(jax.grad(energy.structure), in_axes=(0, None))
    cost = jax.vmap(jax.grad(lambda c: energy.potentials(*method.lift(c, context))))
    by_tile = jax.vmap(lambda at_graph: pull(at_graph * masks)[0], in_axes=1)(slope.graph)
    grad = by_tile.sum(axis=0) + cost(position)
    grad = grad + pull(structure(graphs, context.support.log_odds) * masks)[0]
    variance = None
    if batch.is_noisy:
        squares, num = (by_tile**2).sum(axis=0), by_tile.shape[0]
        variance = spread(by_tile.sum(axis=0), squares, num) * batch.sampling
    return grad, variance, carry
