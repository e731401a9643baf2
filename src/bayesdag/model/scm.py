"""A structural causal model: what it says of rows, and what an intervention does to them.

Rows go in and come out in the original units of the data; the mechanism and the noise
see scaled ones. Everything here is for ONE graph with ONE set of parameters
`{"mechanism": ..., "noise": ...}`; use `jax.vmap` for many draws.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Bool, Float, Int

from bayesdag.data import Scaling
from bayesdag.types import (
    Array,
    DiscreteNodes,
    Graph,
    Heteroscedastic,
    Key,
    Mechanism,
    Noise,
    Params,
    PostNonlinear,
    Rows,
)
from bayesdag.types.late_imports import jax, jnp

CERTAIN = 1e-6  # probabilities are kept so far from 0 and 1
TINY = 1e-30  # probability of what is impossible


@dataclass(frozen=True)
class SCM:
    """h_i(x_i) = f_i(parents of i) + s_i(parents of i) noise_i, after scaling.

    s_i is 1 but for mechanisms that are `Heteroscedastic`, h_i the identity but for those that
    are `PostNonlinear`. Where a mechanism has `DiscreteNodes`, x_i is the quantile at Φ(noise_i)
    of its distribution given the parents. The noise behind a level is then known up to an
    interval only, and another model with the same distributions would give other
    counterfactuals: no data tell them apart.
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
        terms = terms + self._log_slope(params, x) - jnp.log(spread) - log_scale[None, :]
        return self._discrete_or(self._log_mass, params, graph, self._scale(x), terms)

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
        """Noise, in engine units, that explains the observed rows exactly.

        Of a discrete variable somewhere in the interval that does, drawn evenly.
        """
        residual = self._explained(params, graph, x)[0]
        return self._discrete_or(self._noise_of_level, params, graph, self._scale(x), residual)

    def predict(
        self,
        params: Params,
        graph: Graph,
        residuals: Rows,
        do_mask: Bool[Array, " d"],
        do_values: Rows,
        visits: Int[Array, " k"] | None = None,
        known: Rows | None = None,
        averaged: tuple[Array, Array] | None = None,
        coupled: tuple[Key, Rows] | None = None,
    ) -> Rows:
        """Rows that the given residuals produce under an intervention.

        Args:
            visits: the nodes to compute, parents before children, filled up with -1; all
                by default.
            known: rows that hold the columns which are not computed.
            averaged: a node whose discrete value is replaced by its mean given its parents, and
                the level whose probability is meant instead; -1: the mean of codes and counts.
            coupled: a key, and the rows as they were, to which levels without an order are tied
                by the Gumbel-max trick in place of their residuals, which depend on an order.
        """
        was = None if coupled is None else (coupled[0], self._scale(coupled[1]))
        forced = self._scale(do_values)

        def visit(x: jax.Array, i: Array) -> jax.Array:
            mean = self.mechanism.node(params["mechanism"], x, graph[:, i], i)
            free = mean + self._spread(params, x, graph, i) * residuals[:, i]
            if isinstance(self.mechanism, PostNonlinear):
                free = self.mechanism.unwarp(params["mechanism"], free, i)
            if isinstance(self.mechanism, DiscreteNodes):
                found = self._discrete_value(params, x, graph, i, residuals[:, i])
                found = self._mean_or(found, params, x, graph, i, mean, averaged)
                found = self._coupled_or(found, params, x, graph, i, was)
                free = jnp.where(self.mechanism.is_continuous(i), free, found)
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

    def _discrete_or(
        self,
        function: Callable[..., Array],
        params: Params,
        graph: Graph,
        scaled: Rows,
        otherwise: Rows,
    ) -> Rows:
        """A function of the discrete variables in their columns, `otherwise` in the others."""
        mechanism = self.mechanism
        if not isinstance(mechanism, DiscreteNodes):
            return otherwise
        params, scaled, graph = jax.tree.map(jnp.asarray, (params, scaled, graph))
        nodes = jnp.arange(graph.shape[0])
        found = jax.lax.map(lambda i: function(mechanism, params, scaled, graph, i), nodes).T
        is_continuous = jax.vmap(mechanism.is_continuous)(nodes)
        return jnp.where(is_continuous[None, :], otherwise, found)

    @staticmethod
    def _log_mass(
        mechanism: DiscreteNodes, params: Params, x: Rows, graph: Graph, i: Array
    ) -> Array:
        return mechanism.log_mass(params["mechanism"], x, graph[:, i], i)

    @staticmethod
    def _noise_of_level(
        mechanism: DiscreteNodes, params: Params, x: Rows, graph: Graph, i: Array
    ) -> Array:
        smaller, own = mechanism.below(params["mechanism"], x, graph[:, i], i)
        # Independent of that of every other variable, or residuals of two variables that have
        # nothing to do with one another would seem to depend; the same each time.
        key = jax.random.fold_in(jax.random.key(0), i)
        place = jax.random.uniform(key, smaller.shape, smaller.dtype)
        probability = jnp.clip(smaller + place * own, CERTAIN, 1 - CERTAIN)
        return jax.scipy.special.ndtri(probability)

    def _discrete_value(
        self, params: Params, x: Rows, graph: Graph, i: Array, residual: Array
    ) -> Array:
        """A level or count from its noise."""
        assert isinstance(self.mechanism, DiscreteNodes)
        probability = jax.scipy.special.ndtr(residual)
        return self.mechanism.quantile(params["mechanism"], x, graph[:, i], i, probability)

    def _mean_or(
        self,
        value: Array,
        params: Params,
        x: Rows,
        graph: Graph,
        i: Array,
        mean: Array,
        averaged: tuple[Array, Array] | None,
    ) -> Array:
        """The value; or its mean or the probability of a level, where that is asked for."""
        if averaged is None:
            return value
        assert isinstance(self.mechanism, DiscreteNodes)
        node, level = averaged
        probability = self.mechanism.level_probabilities(params["mechanism"], x, graph[:, i], i)
        chosen = jnp.where(level < 0, mean, probability[:, jnp.maximum(level, 0)])
        return jnp.where(i == node, chosen, value)

    def _coupled_or(
        self,
        value: Array,
        params: Params,
        x: Rows,
        graph: Graph,
        i: Array,
        was: tuple[Key, Rows] | None,
    ) -> Array:
        """The value; or a level that is tied to the one that was, where levels have no order.

        Gumbel-max (Oberst & Sontag, 2019): a level is the largest of log probabilities plus
        Gumbel noise. The noise is drawn given that the level that was is the largest one.
        """
        if was is None:
            return value
        assert isinstance(self.mechanism, DiscreteNodes)
        key, before = was
        given = (params["mechanism"], graph[:, i], i)
        log_p, log_q = (
            jnp.log(jnp.maximum(self.mechanism.level_probabilities(given[0], at, *given[1:]), TINY))
            for at in (before, x)
        )
        own = jax.nn.one_hot(before[:, i].astype(int), log_p.shape[1], dtype=bool)
        free = jax.random.gumbel(jax.random.fold_in(key, i), log_p.shape, log_p.dtype)
        largest = jnp.where(own, free, 0.0).sum(axis=1, keepdims=True)
        below = -jnp.logaddexp(-largest, -(free + log_p))
        noise = jnp.where(own, largest, below) - log_p
        level = jnp.argmax(log_q + noise, axis=1).astype(value.dtype)
        return jnp.where(self.mechanism.is_unordered(i), level, value)

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
