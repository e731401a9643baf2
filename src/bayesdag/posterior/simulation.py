"""Many draws of a structural causal model at once, compiled, in pieces of bounded memory.

Rows are in engine units and float32 here. Units are changed outside, in float64: an effect
on a column of years would otherwise be lost in rounding.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.data import Scaling
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.scm import SCM
from bayesdag.posterior.contexts import Contexts
from bayesdag.posterior.estimates import kish_ess
from bayesdag.posterior.libraries import jnp, lax
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Array, Draws, JaxArray, Key, Params, Weights
from bayesdag.types.late_imports import compiled, jax

DRAWS_A_PIECE = 128
ROWS_A_PIECE = 16_384  # rows times draws
ROWS_AT_ONCE = 1024  # likewise, of those that are worked on together: they fit in a cache
Held = tuple[Array, Array] | None  # which variables are known, and their values
Assignment = tuple[np.ndarray, np.ndarray]  # the same, in the original units


@dataclass(frozen=True)
class Ensemble:
    """Weighted draws of graphs and functions: what questions about interventions need.

    Attributes:
        model: the structural causal model that `params` belong to.
        params: every leaf has leading dimensions (chain, draw).
        graphs: (chain, draw, d, d).
        weights: (chain, draw), with sum 1.
        names: column names.
        contexts: environments that units come from.
    """

    model: SCM
    params: Params
    graphs: Draws
    weights: Weights
    names: tuple[str, ...]
    contexts: Contexts | None = None

    def context_rows(
        self, rng: np.random.Generator, num_rows: int, assigned: Assignment | None = None
    ) -> Held:
        """Which variables are contexts, and their values in so many units; None without any.

        Args:
            assigned: which variables are set, and their values.
        """
        if not self.contexts:
            return None
        nothing = (np.zeros(len(self.names), bool), np.zeros(len(self.names)))
        scaling = self.model.scaling
        rows = self.contexts.rows(rng, num_rows, scaling, *(assigned or nothing))
        return jnp.asarray(self.contexts.mask), jnp.asarray(rows)

    @property
    def engine(self) -> SCM:
        """The model without its scaling."""
        d = len(self.names)
        return dataclasses.replace(self.model, scaling=Scaling(np.zeros(d), np.ones(d)))

    @property
    def is_linear(self) -> bool:
        """Whether effects are the same for every unit."""
        return isinstance(self.model.mechanism, Linear)

    def take(self, which: Int[np.ndarray, " k"]) -> tuple[Params, np.ndarray]:
        """Parameters and graphs of the draws with these flat numbers."""
        return map_leaves(lambda leaf: _flat(leaf)[which], self.params), self.flat_graphs[which]

    @property
    def flat_graphs(self) -> np.ndarray:
        """Graphs of all chains, one after the other."""
        return _flat(self.graphs)


def map_chunks(function: Callable[..., Any], arguments: tuple[Any, ...], num_rows: int = 1) -> Any:
    """`function` of arrays that start with draws, piece by piece, put together again.

    The last piece is filled up with copies: all have the same shape, whatever the number
    of draws, and `function` compiles once. The more rows per draw, the smaller the pieces, so
    that the copies cost little.
    """
    num_draws = len(jax.tree.leaves(arguments)[0])
    size = max(1, min(DRAWS_A_PIECE, ROWS_A_PIECE // num_rows))
    pieces: list[Any] = []
    for start in range(0, num_draws, size):
        which = np.minimum(np.arange(start, start + size), num_draws - 1)
        piece = function(*map_leaves(lambda leaf, w=which: leaf[w], arguments))
        keep = min(size, num_draws - start)
        pieces.append(map_leaves(lambda leaf, k=keep: np.asarray(leaf)[:k], piece))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)


@compiled("model", "num_rows")
def contrasts(
    keys: Array,
    params: Params,
    graphs: Array,
    before: Array,
    after: Array,
    *,
    model: SCM,
    num_rows: int,
    cause: Array | int,
    outcome: Array | int,
    levels: Array,
    given: Held,
    contexts: Held = None,
    level: Array | int = -1,
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Mean of the outcome at the second level of the cause minus that at the first.

    Where `level` is not -1, the probability of that level of the outcome.

    Also returns on how many rows each number rests. Both levels use the same noise, and the
    nodes in `before`, which the cause does not reach, are computed once for both; those in
    `after` are the cause and what follows from it, up to the outcome. Context variables,
    one row of them for each unit, are set to what they are at both levels.
    """
    d = graphs.shape[-1]
    do_mask = jnp.arange(d) == cause
    settings = jnp.broadcast_to(jnp.repeat(levels, num_rows)[:, None], (2 * num_rows, d))
    if contexts is not None:
        is_held = contexts[0] & ~do_mask
        settings = jnp.where(is_held[None, :], jnp.tile(contexts[1], (2, 1)), settings)
        do_mask = do_mask | is_held

    def one(draw: tuple[Key, Params, Array, Array, Array]) -> tuple[Array, Array]:
        key, theta, graph, first, then = draw
        between = jnp.where((then == cause) | (then == outcome), -1, then)
        noisy = jnp.concatenate([first, between])
        residuals, probability = _units(key, model, theta, graph, num_rows, noisy, given, contexts)
        same = model.predict(theta, graph, residuals, do_mask, settings[:num_rows], first)
        same, twice = (jnp.concatenate([x, x]) for x in (same, residuals))
        asked = (jnp.asarray(outcome), jnp.asarray(level))
        reached = model.predict(theta, graph, twice, do_mask, settings, then, same, asked)
        reached = reached[:, outcome]
        difference = ((reached[num_rows:] - reached[:num_rows]) * probability).sum()
        return difference, jnp.asarray(kish_ess(probability))

    return lax.map(one, (keys, params, graphs, before, after), batch_size=_batch(num_rows))


def _units(
    key: Key,
    model: SCM,
    params: Params,
    graph: Array,
    num_rows: int,
    noisy: Int[Array, " k"],
    given: Held,
    contexts: Held,
) -> tuple[Array, Array]:
    """Residuals of simulated units, and the probability of each, among those that are `given`.

    Likelihood weighting: the known variables are held at their values while the others are
    drawn, and each row counts by the density of the noise that those values then need. Where
    nothing is known, only the noise of the nodes in `noisy` is drawn.
    """
    d = graph.shape[0]
    equal = jnp.full(num_rows, 1 / num_rows)
    if isinstance(model.mechanism, Linear):
        return jnp.zeros((num_rows, d)), equal  # the noise cancels exactly
    if given is None:
        return _noise_of(key, model, params["noise"], noisy, jnp.zeros((num_rows, d))), equal
    residuals = model.noise.sample(params["noise"], key, (num_rows, d))
    known, numbers = given
    held, is_held = jnp.broadcast_to(numbers[None, :], residuals.shape), known
    if contexts is not None:
        is_held, held = known | contexts[0], jnp.where(contexts[0][None, :], contexts[1], held)
    x = model.predict(params, graph, residuals, is_held, held)
    residuals = jnp.where(known[None, :], model.abduct(params, graph, x), residuals)
    density = model.log_terms(params, graph, x)
    return residuals, jax.nn.softmax(jnp.where(known[None, :], density, 0.0).sum(axis=1))


def _noise_of(
    key: Key, model: SCM, noise: Params, nodes: Int[Array, " k"], residuals: JaxArray
) -> JaxArray:
    """Noise of the listed nodes (-1: none); `residuals` as they are for the others.

    Drawing noise is most of the work, and an effect needs that of few nodes.
    """
    listed_first = jnp.sort(nodes, descending=True)

    def visit(k: Array, found: JaxArray) -> JaxArray:
        i = listed_first[k]
        own = map_leaves(lambda leaf: jnp.asarray(leaf)[i][None], noise)
        drawn = model.noise.sample(own, jax.random.fold_in(key, i), (len(found), 1))
        return found.at[:, i].set(drawn[:, 0])

    return lax.fori_loop(0, (nodes >= 0).sum(), visit, residuals)


@compiled("model")
def one_row_each(
    keys: Array, params: Params, graphs: Array, do_values: Array, *, model: SCM, do_mask: Array
) -> Float[Array, "k d"]:
    """A row of every draw under an intervention, which may differ from row to row."""

    def one(draw: tuple[Key, Params, Array, Array]) -> Array:
        key, theta, graph, values = draw
        return model.sample(theta, key, graph, 1, do_mask, values[None, :])[0]

    return lax.map(one, (keys, params, graphs, do_values), batch_size=256)


@compiled("model")
def counterfactual_rows(
    keys: Array,
    params: Params,
    graphs: Array,
    *,
    model: SCM,
    x: Array,
    do_mask: Array,
    do_values: Array,
) -> Float[Array, "k n d"]:
    """Given rows under an intervention that leaves their residuals as they were."""

    def one(draw: tuple[Key, Params, Array]) -> Array:
        key, theta, graph = draw
        forced = jnp.broadcast_to(do_values[None, :], x.shape)
        residuals = model.abduct(theta, graph, x)
        return model.predict(theta, graph, residuals, do_mask, forced, coupled=(key, x))

    return lax.map(one, (keys, params, graphs), batch_size=_batch(x.shape[0]))


def held(mask: Bool[np.ndarray, " d"], values: Float[np.ndarray, " d"]) -> Held:
    """Known variables as the compiled functions take them."""
    return (jnp.asarray(mask), jnp.asarray(values, jnp.float32)) if mask.any() else None


def _batch(num_rows: int) -> int:
    return max(1, ROWS_AT_ONCE // num_rows)


def _flat(leaf: Any) -> np.ndarray:
    """Chains and draws as one dimension."""
    array = np.asarray(leaf)
    return array.reshape(-1, *array.shape[2:])
