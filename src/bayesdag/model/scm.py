"""A structural causal model: what it says of rows, and what an intervention does to them.

Rows go in and come out in the original units of the data; the mechanism and the noise
see scaled ones. Everything here is for ONE graph with ONE set of parameters
`{"mechanism": ..., "noise": ...}`; use `jax.vmap` for many draws.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from bayesdag.data import Scaling
from bayesdag.types import (
    Array,
    Graph,
    Heteroscedastic,
    Key,
    Mechanism,
    Noise,
    Params,
    PostNonlinear,
    Rows,
)


@dataclass(frozen=True)
class SCM:
    """h_i(x_i) = f_i(parents of i) + s_i(parents of i) noise_i, after scaling.

    s_i is 1 but for mechanisms that are `Heteroscedastic`, h_i the identity but for those that
    are `PostNonlinear`.
    """

    mechanism: Mechanism
    noise: Noise
    scaling: Scaling

    def log_prob(
        self, params: Params, graph: Graph, x: Rows, interventions: Bool[Array, "n d"]
    ) -> Float[Array, " n"]:
        """Log density of each row, in original units.

        A cell set by an experimenter says nothing of its mechanism: its term is dropped.
        """
        return jnp.where(interventions, 0.0, self.log_terms(params, graph, x)).sum(axis=1)

    def log_terms(self, params: Params, graph: Graph, x: Rows) -> Rows:
        """Log density of each variable given its parents, in original units."""
        residual, spread = self._explained(params, graph, x)
        log_scale = jnp.log(jnp.asarray(self.scaling.scale, residual.dtype))
        terms = self.noise.log_prob(params["noise"], residual)
        return terms + self._log_slope(params, x) - jnp.log(spread) - log_scale[None, :]

    def sample(
        self,
        params: Params,
        key: Key,
        graph: Graph,
        num_rows: int,
        do_mask: Bool[Array, " d"],
        do_values: Rows,
    ) -> Rows:
        """Rows drawn under do(x_i = do_values[:, i]) for every i with do_mask[i]."""
        d = graph.shape[0]
        residuals = self.noise.sample(params["noise"], key, (num_rows, d))
        return self.predict(params, graph, residuals, do_mask, do_values)

    def abduct(self, params: Params, graph: Graph, x: Rows) -> Rows:
        """Noise, in engine units, that explains the observed rows exactly."""
        return self._explained(params, graph, x)[0]

    def predict(
        self,
        params: Params,
        graph: Graph,
        residuals: Rows,
        do_mask: Bool[Array, " d"],
        do_values: Rows,
        visits: Int[Array, " k"] | None = None,
        known: Rows | None = None,
    ) -> Rows:
        """Rows that the given residuals produce under an intervention.

        Args:
            visits: the nodes to compute, parents before children, filled up with -1; all
                by default.
            known: rows that hold the columns which are not computed.
        """
        forced = self._scale(do_values)

        def visit(x: jax.Array, i: Array) -> jax.Array:
            mean = self.mechanism.node(params["mechanism"], x, graph[:, i], i)
            free = mean + self._spread(params, x, graph, i) * residuals[:, i]
            if isinstance(self.mechanism, PostNonlinear):
                free = self.mechanism.unwarp(params["mechanism"], free, i)
            return x.at[:, i].set(jnp.where(do_mask[i], forced[:, i], free))

        start = jnp.asarray(jnp.zeros_like(residuals) if known is None else self._scale(known))
        if visits is None:
            order = _sources_first(graph)
            scaled, _ = jax.lax.scan(lambda x, i: (visit(x, i), None), start, order)
        else:
            count = (visits >= 0).sum()
            scaled = jax.lax.fori_loop(0, count, lambda k, x: visit(x, visits[k]), start)
        return self._unscale(scaled)

    def _explained(self, params: Params, graph: Graph, x: Rows) -> tuple[Rows, Rows]:
        """Noise behind the rows, and its factor."""
        scaled = self._scale(x)
        residual = self._warp(params, scaled) - self.mechanism(params["mechanism"], scaled, graph)
        if not isinstance(self.mechanism, Heteroscedastic):
            return residual, jnp.ones_like(residual)
        params, scaled, graph = jax.tree.map(jnp.asarray, (params, scaled, graph))
        nodes = jnp.arange(graph.shape[0])
        spread = jax.lax.map(lambda i: self._spread(params, scaled, graph, i), nodes).T
        return residual / spread, spread

    def _warp(self, params: Params, scaled: Rows) -> Rows:
        """h of every variable."""
        if not isinstance(self.mechanism, PostNonlinear):
            return scaled
        return _by_column(self.mechanism.warp, params["mechanism"], scaled)

    def _log_slope(self, params: Params, x: Rows) -> Rows | float:
        """log h' of every variable."""
        if not isinstance(self.mechanism, PostNonlinear):
            return 0.0
        return _by_column(self.mechanism.log_slope, params["mechanism"], self._scale(x))

    def _spread(self, params: Params, x: Rows, graph: Graph, i: Array) -> Array:
        if not isinstance(self.mechanism, Heteroscedastic):
            return jnp.ones_like(x[:, 0])
        return self.mechanism.node_scale(params["mechanism"], x, graph[:, i], i)

    def _scale(self, x: Rows) -> Rows:
        # Centred in the precision of the input: a large shift would cancel in float32.
        x = jnp.asarray(x)
        shift = jnp.asarray(self.scaling.shift, x.dtype)
        return (x - shift[None, :]) / jnp.asarray(self.scaling.scale, x.dtype)[None, :]

    def _unscale(self, x: Rows) -> Rows:
        shift = jnp.asarray(self.scaling.shift, x.dtype)
        return x * jnp.asarray(self.scaling.scale, x.dtype)[None, :] + shift[None, :]


def _by_column(function: Callable[..., Array], params: Params, x: Rows) -> Rows:
    """A function of one variable, of every variable."""
    params, columns = jax.tree.map(jnp.asarray, (params, jnp.asarray(x).T))
    nodes = jnp.arange(columns.shape[0])
    return jax.lax.map(lambda at: function(params, at[0], at[1]), (columns, nodes)).T


def _sources_first(graph: Graph) -> Array:
    """A topological order: nodes sorted by their number of ancestors."""
    reach = graph.astype(jnp.float32)
    # Squaring doubles the length of the paths that are seen.
    for _ in range(max(1, graph.shape[0] - 1).bit_length()):
        reach = jnp.minimum(reach + reach @ reach, 1.0)
    return jnp.argsort(reach.sum(axis=0), stable=True)
