"""The one definition of U = -log joint, of its mini-batch scaling and of its gradient noise.

Every gradient engine calls this. The data reach the unknowns through the graph alone, so
the expensive part is differentiated in (graph, functions, noise) and whoever made the graph
pulls its gradient further back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.model import parameter_priors
from bayesdag.types import Array, Graph, Mechanism, Noise, Params, Potentials, StructurePrior


class Batch(NamedTuple):
    """Rows in engine units, cut into tiles.

    Attributes:
        x: the rows; those that only fill the last tile are zero.
        counted: 1 where a cell counts in the likelihood; 0 where an experimenter set it and
            in rows that only fill.
        scale: rows of the whole data set for each row here (N/B).
        sampling: 1 - B/N, the part of the variance that drawing without replacement leaves.
    """

    x: Float[Array, "t m d"]
    counted: Float[Array, "t m d"]
    scale: float
    sampling: float

    @property
    def is_noisy(self) -> bool:
        """Whether the variance of a gradient can and should be measured."""
        return self.sampling > 0 and self.x.shape[0] > 1


class Gradient(NamedTuple):
    """Gradient of the data's part of U, for one chain.

    Attributes:
        energy: its value.
        graph: gradient in the graph, one for each tile; their sum is the gradient.
        params: gradient in what was asked for.
        variance: of `params` due to the choice of rows, or None.
    """

    energy: Float[Array, ""]
    graph: Float[Array, "t d d"]
    params: Params
    variance: Params | None


@dataclass(frozen=True)
class Energy:
    """U of one chain; a frozen dataclass, so that compiled code can depend on it.

    Attributes:
        mechanism: f_i given parents.
        noise: density of the residuals.
        prior: of the graph given its order.
        sparsity: λ_s, a further cost of each edge.
        free_absence: leave λ_s out of the gradient wherever an edge is absent, as the
            published code does; its λ_s then weighs about half as much.
        potential_scale: prior deviation of the potentials.
        noise_shape: of the inverse gamma prior of σ².
        noise_rate: likewise, in engine units.
    """

    mechanism: Mechanism
    noise: Noise
    prior: StructurePrior
    sparsity: float = 0.0
    free_absence: bool = False
    potential_scale: float = 0.1
    noise_shape: float = 1.5
    noise_rate: float = 1.0

    def data(self, graph: Graph, params: Params, batch: Batch) -> Float[Array, ""]:
        """-(N/B) Σ log p(x | graph, params) over the rows of all tiles."""
        by_tile = jax.lax.map(lambda tile: self._tile(graph, params, *tile), batch[:2])
        return by_tile.sum() * batch.scale

    def structure(self, graph: Graph, log_odds: Float[Array, "d d"]) -> Float[Array, ""]:
        """-log p(graph | order), beliefs about single edges included."""
        cost = parameter_priors.structure_energy(graph, self.prior)
        charged = jax.lax.stop_gradient(graph) if self.free_absence else jnp.ones_like(graph)
        return cost + self.sparsity * (charged * graph).sum() - (log_odds * graph).sum()

    def params(self, params: Params) -> Float[Array, ""]:
        """-log p(Θ, σ)."""
        noise = parameter_priors.noise_energy(params["noise"], self.noise_shape, self.noise_rate)
        return parameter_priors.param_energy(params["mechanism"]) + noise

    def potentials(self, potentials: Potentials, log_volume: Float[Array, ""]) -> Float[Array, ""]:
        """-log p(p), in the coordinates whose map to p has this volume."""
        return parameter_priors.potential_energy(potentials, self.potential_scale) - log_volume

    def data_gradient(self, graph: Graph, params: Params, batch: Batch, wanted: Any) -> Gradient:
        """Gradient of `data`, tile by tile, with the noise that the choice of rows gives it.

        Args:
            graph: of this chain.
            params: `{"mechanism": ..., "noise": ...}`.
            batch: the rows.
            wanted: names of the parts of `params` to differentiate; the graph always is.
        """
        moved = {name: params[name] for name in wanted}

        def visit(x: Array, counted: Array) -> tuple:
            at = jax.value_and_grad(
                lambda g, p: self._tile(g, params | p, x, counted) * batch.scale, argnums=(0, 1)
            )
            return at(graph, moved)

        energies, at_graph, first, second = _visit_tiles(visit, batch, moved)
        variance = None
        if batch.is_noisy:
            num = batch.x.shape[0]
            variance = jax.tree.map(
                lambda s, q: variance_of_sum(s, q, num) * batch.sampling, first, second
            )
        return Gradient(energies.sum(), at_graph, first, variance)

    def _tile(self, graph: Graph, params: Params, x: Array, counted: Array) -> Array:
        residual = x - self.mechanism(params["mechanism"], x, graph)
        return -(counted * self.noise.log_prob(params["noise"], residual)).sum()


def variance_of_sum(total: Array, squares: Array, num: int) -> Array:
    """Variance of a sum of `num` independent terms, from their sum and sum of squares."""
    return jnp.maximum(squares - total**2 / num, 0.0) * num / (num - 1)


def _visit_tiles(visit: Callable, batch: Batch, moved: Params) -> tuple:
    """Energies and graph gradients by tile; sum and sum of squares of the others.

    On a CPU one tile after the other, so that its activations stay in cache; elsewhere all
    at once, because launching is what costs.
    """
    if jax.default_backend() != "cpu" or batch.x.shape[0] == 1:
        energies, (at_graph, each) = jax.vmap(visit)(batch.x, batch.counted)
        first = jax.tree.map(lambda g: g.sum(axis=0), each)
        return energies, at_graph, first, jax.tree.map(lambda g: (g**2).sum(axis=0), each)

    def add(sums: tuple, tile: tuple) -> tuple:
        energy, (at_graph, at_params) = visit(*tile)
        first = jax.tree.map(jnp.add, sums[0], at_params)
        second = jax.tree.map(lambda s, g: s + g**2, sums[1], at_params)
        return (first, second), (energy, at_graph)

    zeros = jax.tree.map(jnp.zeros_like, moved)
    (first, second), (energies, at_graph) = jax.lax.scan(
        add, (zeros, zeros), (batch.x, batch.counted)
    )
    return energies, at_graph, first, second
