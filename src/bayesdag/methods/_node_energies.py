"""What does one column of a graph cost? U taken apart by node, for moves of single columns.

Given an order, the functions and the density component of the structure prior, U is a sum
over nodes in which each term depends on one column of the graph. The component is therefore
drawn, not summed out, wherever columns are to move independently of each other.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.energy import Batch, Energy, spread
from bayesdag.types import Array, Graph, Key, Params


class NodeEnergies(NamedTuple):
    """Energy of each node for several graphs.

    Attributes:
        data: by tile of rows.
        structure: of the node's edges, given the component of the prior.
    """

    data: Float[Array, "s t d"]
    structure: Float[Array, "s d"]

    @property
    def total(self) -> Float[Array, "s d"]:
        """Both together."""
        return self.data.sum(axis=1) + self.structure

    def split(self) -> list["NodeEnergies"]:
        """Those of each graph on its own."""
        each = range(self.data.shape[0])
        return [NodeEnergies(self.data[k : k + 1], self.structure[k : k + 1]) for k in each]

    def where(self, take: Float[Array, " d"], other: "NodeEnergies") -> "NodeEnergies":
        """Those of `other` for the nodes marked in `take`."""
        data = jnp.where(take[None, None, :] > 0, other.data, self.data)
        return NodeEnergies(data, jnp.where(take[None, :] > 0, other.structure, self.structure))

    def change(self, since: "NodeEnergies") -> "NodeEnergies":
        """Difference from other graphs."""
        return NodeEnergies(self.data - since.data, self.structure - since.structure)


def draw_component(key: Key, energy: Energy, graph: Graph) -> Int[Array, ""]:
    """A component of the structure prior, given the graph."""
    log_weights, penalty = energy.prior.components(graph.shape[0])
    by_node = jnp.asarray(penalty, jnp.float32)[:, _num_parents(graph)]
    return jax.random.categorical(key, jnp.asarray(log_weights, jnp.float32) + by_node.sum(axis=1))


def evaluator(
    energy: Energy, params: Params, batch: Batch, log_odds: Float[Array, "d d"], component: Array
) -> Callable[..., NodeEnergies]:
    """A function of graphs of one chain, and of parameters that differ between them.

    All graphs go through the mechanism together, so that what does not depend on the graph
    (the inner network of a neural mechanism) is computed once.
    """

    def evaluate(graphs: Float[Array, "s d d"], changed: Params | None = None) -> NodeEnergies:
        def tile(x: Array, counted: Array) -> Array:
            def one(graph: Graph, own: Params) -> Array:
                return _by_node(energy, graph, with_changes(params, own), x, counted)

            return jax.vmap(one)(graphs, changed or {})

        data = jax.lax.map(lambda rows: tile(*rows), (batch.x, batch.counted))
        structure = jax.vmap(lambda graph: _structure(energy, graph, log_odds, component))(graphs)
        return NodeEnergies(data.swapaxes(0, 1) * batch.scale, structure)

    return evaluate


def with_changes(params: Params, changed: Params) -> Params:
    """The parameters with some leaves of the mechanism or the noise replaced."""
    return {part: leaves | changed.get(part, {}) for part, leaves in params.items()}


def accepted(
    key: Key, change: NodeEnergies, pooled: Float[Array, "d d"], batch: Batch, temperature: float
) -> Float[Array, " d"]:
    """1 for each node whose proposed column is taken, by Metropolis' rule.

    Mini-batches make the change noisy. Half of its variance on top of it leaves the target
    as it is, as far as the noise is Gaussian (Ceperley & Dewing, 1999).

    Args:
        key: consumed.
        change: of the energies of one graph, shape (1, ...).
        pooled: row j marks the nodes that are accepted together with j, itself included.
        batch: says how the rows were chosen.
        temperature: the target is exp(-U / temperature).
    """
    by_tile = change.data[0] @ pooled.T
    cost = by_tile.sum(axis=0) + pooled @ change.structure[0]
    variance = jnp.zeros_like(cost)
    if batch.is_noisy:
        num = by_tile.shape[0]
        variance = spread(by_tile.sum(axis=0), (by_tile**2).sum(axis=0), num) * batch.sampling
    uniform = jax.random.uniform(key, cost.shape, minval=jnp.finfo(cost.dtype).tiny)
    # Nodes that move together have to read the same random number: that of the first.
    log_level = jnp.log(uniform)[jnp.argmax(pooled, axis=1)]
    threshold = -cost / temperature - variance / (2 * temperature**2)
    return (log_level < threshold).astype(cost.dtype)


def _by_node(energy: Energy, graph: Graph, params: Params, x: Array, counted: Array) -> Array:
    residual = x - energy.mechanism(params["mechanism"], x, graph)
    return -(counted * energy.noise.log_prob(params["noise"], residual)).sum(axis=0)


def _structure(energy: Energy, graph: Graph, log_odds: Array, component: Array) -> Array:
    penalty = jnp.asarray(energy.prior.components(graph.shape[0])[1], graph.dtype)
    number = _num_parents(graph)
    beliefs = (log_odds * graph).sum(axis=0)
    return energy.sparsity * number.astype(graph.dtype) - penalty[component][number] - beliefs


def _num_parents(graph: Graph) -> Int[Array, " d"]:
    return graph.sum(axis=0).astype(jnp.int32)
