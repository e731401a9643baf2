"""The gradient of the potentials in the joint engine, as Algorithm 2 prints it.

The data's gradient in the graph is pulled back through the relaxed order (straight-through),
so it is biased; exchanges of neighbours (`order_moves`) need none of this.
"""

from typing import NamedTuple

import jax
from jaxtyping import Float

from bayesdag.model.energy import Batch, Gradient, variance_of_sum
from bayesdag.sgmcmc import dagspace
from bayesdag.sgmcmc.chains import DataContext
from bayesdag.sgmcmc.engine import Engine
from bayesdag.types import Array, Key, Pytree


class OrderPoint(NamedTuple):
    """Point of the chains at which the gradient in p is taken.

    Attributes:
        coordinates: of the potentials, before `lift`.
        masks: W of each chain.
        graphs: τ(W, p).
        carry: of the relaxation.
    """

    coordinates: Float[Array, "chain d"]
    masks: Float[Array, "chain d d"]
    graphs: Float[Array, "chain d d"]
    carry: Pytree


class OrderGradient(NamedTuple):
    """Gradient of U in p for every chain.

    Attributes:
        value: the gradient.
        variance: what the choice of rows adds to it, or None.
        carry: what the relaxation carries on.
    """

    value: Float[Array, "chain d"]
    variance: Float[Array, "chain d"] | None
    carry: Pytree


def gradient(
    engine: Engine,
    key: Key,
    at: OrderPoint,
    slope: Gradient,
    context: DataContext,
    batch: Batch,
) -> OrderGradient:
    """Gradient of U in p for every chain, from that of the data in the graphs."""

    def orders(coordinates: Array) -> tuple:
        def one(coordinates: Array, carry: Pytree) -> tuple:
            return engine.relaxation(key, engine.lift(coordinates, context)[0], carry)

        return jax.vmap(one)(coordinates, at.carry)

    energy = engine.energy
    _, pull, carry = jax.vjp(orders, at.coordinates, has_aux=True)
    masks = jax.vmap(dagspace.confine, in_axes=(0, None))(at.masks, context.support)
    structure = jax.vmap(jax.grad(energy.structure), in_axes=(0, None))
    cost = jax.vmap(jax.grad(lambda c: energy.potentials(*engine.lift(c, context))))
    by_tile = jax.vmap(lambda at_graph: pull(at_graph * masks)[0], in_axes=1)(slope.graph)
    grad = by_tile.sum(axis=0) + cost(at.coordinates)
    grad = grad + pull(structure(at.graphs, context.support.log_odds) * masks)[0]
    variance = None
    if batch.is_noisy:
        squares, num = (by_tile**2).sum(axis=0), by_tile.shape[0]
        variance = variance_of_sum(by_tile.sum(axis=0), squares, num) * batch.sampling
    return OrderGradient(grad, variance, carry)
