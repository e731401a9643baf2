"""U taken apart by node: the cost of one column of a graph, for moves of single columns.

Given an order, the functions and the density component of the structure prior, U is a sum
over nodes in which each term depends on one column of the graph. The component is therefore
drawn, not summed out, wherever columns are to move independently of each other.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.model.energy import Batch, Energy, variance_of_sum
from bayesdag.runs.devices import on_cpu
from bayesdag.sgmcmc import dagspace
from bayesdag.sgmcmc.chains import over_chains
from bayesdag.sgmcmc.dagspace import Support
from bayesdag.types import Array, Graph, Key, Mask, Params, Potentials


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


class ChainContext(NamedTuple):
    """Context of one chain while its graph moves.

    Attributes:
        energy: U.
        order: 1 where the potentials allow an edge.
        params: functions and noise scales.
        component: of the structure prior.
        support: what is known.
        batch: the rows that count.
        temperature: of the target.
    """

    energy: Energy
    order: Graph
    params: Params
    component: Int[Array, ""]
    support: Support
    batch: Batch
    temperature: float | Array

    def graph(self, mask: Mask) -> Graph:
        """τ(W, p) with what is known."""
        return dagspace.confine(mask, self.support) * self.order

    def graphs(self, masks: Float[Array, "s d d"]) -> Float[Array, "s d d"]:
        """τ(W, p) of several masks."""
        return jax.vmap(self.graph)(masks)

    def free(self) -> Mask:
        """1 where an entry of the mask decides about an edge."""
        return self.order * self.support.allowed * (1 - self.support.required)

    def evaluate(
        self, graphs: Float[Array, "s d d"], changed: Params | None = None
    ) -> NodeEnergies:
        """Node energies of graphs, and of parameters that differ between them.

        All graphs go through the mechanism together, so that what does not depend on the
        graph (the inner network of a neural mechanism) is computed once.
        """

        def tile(x: Array, counted: Array) -> Array:
            def one(graph: Graph, own: Params) -> Array:
                return _by_node(self.energy, graph, with_changes(self.params, own), x, counted)

            return jax.vmap(one)(graphs, changed or {})

        data = over_chains(tile, one_by_one=on_cpu())(self.batch.x, self.batch.counted)
        structure = jax.vmap(self._structure)(graphs)
        return NodeEnergies(data.swapaxes(0, 1) * self.batch.scale, structure)

    def log_terms(self, masks: Float[Array, "s d d"]) -> Float[Array, "s d"]:
        """log p(x_j | column j of each mask), with what its edges cost."""
        return -self.evaluate(self.graphs(masks)).total

    def slope(self, graph: Graph) -> Graph:
        """Gradient of U in the graph."""
        data = self.energy.data_gradient(graph, self.params, self.batch, ()).graph.sum(axis=0)
        return data + jax.grad(self.energy.structure)(graph, self.support.log_odds)

    def accepted(
        self,
        uniform: Float[Array, " d"],
        energies: NodeEnergies,
        pooled: Float[Array, "d d"] | None = None,
    ) -> Float[Array, " d"]:
        """1 for each node whose proposed column is taken, by Metropolis' rule.

        Mini-batches make the change noisy. Half of its variance on top of it leaves the
        target as it is, as far as the noise is Gaussian (Ceperley & Dewing, 1999).

        Args:
            uniform: random numbers between 0 and 1.
            energies: of the present graph and the proposed one.
            pooled: row j marks the nodes that are accepted together with j, itself
                included; None: every node on its own.
        """
        by_tile = energies.data[1] - energies.data[0]
        structure = energies.structure[1] - energies.structure[0]
        if pooled is not None:
            by_tile, structure = by_tile @ pooled.T, pooled @ structure
            # Nodes that move together have to read the same random number: the first one's.
            uniform = uniform[jnp.argmax(pooled, axis=1)]
        cost = by_tile.sum(axis=0) + structure
        if self.batch.is_noisy:
            squares, num = (by_tile**2).sum(axis=0), by_tile.shape[0]
            variance = variance_of_sum(by_tile.sum(axis=0), squares, num) * self.batch.sampling
            cost = cost + variance / (2 * self.temperature)
        return (jnp.log(uniform) < -cost / self.temperature).astype(cost.dtype)

    def _structure(self, graph: Graph) -> Float[Array, " d"]:
        penalty = jnp.asarray(self.energy.prior.components(graph.shape[0])[1], graph.dtype)
        number = _num_parents(graph)
        beliefs = (self.support.log_odds * graph).sum(axis=0)
        edges = self.energy.sparsity * number.astype(graph.dtype)
        return edges - penalty[self.component][number] - beliefs


def chain_context(
    key: Key,
    energy: Energy,
    potentials: Potentials,
    mask: Mask,
    params: Params,
    support: Support,
    batch: Batch,
    temperature: float | Array = 1.0,
) -> ChainContext:
    """Context of a chain, with the component of the structure prior drawn anew."""
    order = dagspace.order(potentials)
    component = draw_component(key, energy, dagspace.confine(mask, support) * order)
    return ChainContext(energy, order, params, component, support, batch, temperature)


def draw_component(key: Key, energy: Energy, graph: Graph) -> Int[Array, ""]:
    """A component of the structure prior, given the graph."""
    log_weights, penalty = energy.prior.components(graph.shape[0])
    by_node = jnp.asarray(penalty, jnp.float32)[:, _num_parents(graph)]
    log_weights = jnp.asarray(log_weights, jnp.float32)
    return jax.random.categorical(key, log_weights + by_node.sum(axis=1))


def with_changes(params: Params, changed: Params) -> Params:
    """The parameters with some leaves of the mechanism or the noise replaced."""
    return {part: leaves | changed.get(part, {}) for part, leaves in params.items()}


def _by_node(energy: Energy, graph: Graph, params: Params, x: Array, counted: Array) -> Array:
    residual = x - energy.mechanism(params["mechanism"], x, graph)
    return -(counted * energy.noise.log_prob(params["noise"], residual)).sum(axis=0)


def _num_parents(graph: Graph) -> Int[Array, " d"]:
    return graph.sum(axis=0).astype(jnp.int32)
