"""Cells that were not measured, drawn from one draw of the model given the rest of their rows.

Metropolis steps within Gibbs sweeps, all rows at once: each column with gaps in turn gets a
proposal, and the density of the row under the graph and its functions decides. Values of levels
and counts stay levels and counts.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag.data import Dataset
from bayesdag.data.kinds import Kind
from bayesdag.model.scm import SCM
from bayesdag.posterior.libraries import jnp, lax
from bayesdag.posterior.posterior import Posterior
from bayesdag.random import generator, jax_key
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Array, Key, Params
from bayesdag.types.late_imports import compiled, jax

# With half of these, cells of small tables stay near where another graph left them, and bring it
# back.
NUM_SWEEPS = 40
# Proposals are this much wider than the regression that they come from.
_WIDER = 1.2
_RIDGE = 1e-3
_CONTINUOUS, _LEVELS, _COUNT = 0, 1, 2
# Steps of a random walk, as fractions of what the other columns leave unexplained.
_SMALLEST_STEP, _LARGEST_STEP = 0.1, 2.5


class Proposals(NamedTuple):
    """What candidates for missing cells are drawn from, column by column, in engine units.

    Attributes:
        weights: `weights[i, j]` of column i in a linear regression of column j.
        intercepts: of these regressions.
        spread: their residual deviation.
        kind: 0 for measurements, 1 for levels, 2 for counts.
        log_frequency: of each level among the measured cells.
        shift: of the engine's units.
        scale: of the engine's units.
    """

    weights: Float[np.ndarray, "d d"]
    intercepts: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]
    kind: Int[np.ndarray, " d"]
    log_frequency: Float[np.ndarray, "d k"]
    shift: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]


class Completion(NamedTuple):
    """A table without gaps, and the fraction of proposals that were accepted."""

    data: Dataset
    acceptance: float


def complete(key: Key, posterior: Posterior, gappy: Dataset, start: Dataset) -> Completion:
    """Missing cells of `gappy`, drawn from one draw of the posterior, starting from `start`."""
    key_draw, key_cells = jax.random.split(jax_key(key))
    weights = posterior.weights.reshape(-1)
    number = generator(key_draw).choice(weights.size, p=weights / weights.sum())
    ensemble = posterior._ensemble  # pyright: ignore[reportPrivateUsage]
    params, graphs = ensemble.take(np.array([number]))
    params = map_leaves(lambda leaf: jnp.asarray(leaf[0]), params)
    missing = gappy.missing
    assert missing is not None
    x = start.scaling.apply(start.values)
    columns = np.flatnonzero(missing.any(axis=0))
    schedule = np.tile(np.repeat(columns, 2), NUM_SWEEPS)
    cells, acceptance = _sweeps(
        key_cells,
        params,
        jnp.asarray(graphs[0]),
        jnp.asarray(x, jnp.float32),
        jnp.asarray(missing),
        jnp.asarray(~gappy.observed),
        map_leaves(jnp.asarray, _proposals(x, missing, gappy)),
        jnp.asarray(schedule),
        model=ensemble.engine,
    )
    drawn = _in_original_units(np.asarray(cells, np.float64), gappy)
    # Measured cells as they were, not as they come back from single precision.
    whole = np.where(missing, drawn, gappy.values)
    return Completion(completed(gappy, whole), float(acceptance))


def completed(gappy: Dataset, values: Float[np.ndarray, "n d"]) -> Dataset:
    """The same data without gaps."""
    return replace(gappy, values=values, missing=None)


def _in_original_units(cells: np.ndarray, data: Dataset) -> np.ndarray:
    values = data.scaling.invert(cells)
    coded = np.array([kind.name != "continuous" for kind in data.kinds])
    return np.where(coded, np.round(values), values)


def _proposals(x: np.ndarray, missing: np.ndarray, data: Dataset) -> Proposals:
    """Linear regressions on the completed table, and frequencies of levels."""
    d = x.shape[1]
    weights, intercepts, spread = np.zeros((d, d)), np.zeros(d), np.ones(d)
    for j in np.flatnonzero(missing.any(axis=0)).tolist():
        others = [i for i in range(d) if i != j]
        design = np.column_stack([np.ones(len(x)), x[:, others]])
        gram = design.T @ design + _RIDGE * len(x) * np.eye(d)
        found = np.linalg.solve(gram, design.T @ x[:, j])
        intercepts[j], weights[others, j] = found[0], found[1:]
        spread[j] = max(float((x[:, j] - design @ found).std()), 1e-3)
    kind = np.array([_code(one) for one in data.kinds])
    return Proposals(
        weights,
        intercepts,
        spread,
        kind,
        _log_frequency(data, missing),
        np.asarray(data.scaling.shift),
        np.asarray(data.scaling.scale),
    )


def _code(kind: Kind) -> int:
    return _LEVELS if kind.is_discrete else _COUNT if kind.name == "count" else _CONTINUOUS


def _log_frequency(data: Dataset, missing: np.ndarray) -> np.ndarray:
    most = max((len(kind.levels) for kind in data.kinds), default=0)
    found = np.full((data.num_variables, max(most, 1)), -np.inf)
    for j, kind in enumerate(data.kinds):
        if kind.is_discrete:
            measured = data.values[~missing[:, j], j].astype(int)
            counts = np.bincount(measured, minlength=len(kind.levels)) + 0.5
            found[j, : len(kind.levels)] = np.log(counts / counts.sum())
    return found


@compiled("model")
def _sweeps(
    key: Key,
    params: Params,
    graph: Array,
    x: Array,
    missing: Array,
    is_set: Array,
    proposals: Proposals,
    schedule: Array,
    *,
    model: SCM,
) -> tuple[Array, Array]:
    """The rows after all visits, and the fraction of proposals accepted."""
    proposals = map_leaves(lambda leaf: leaf.astype(x.dtype), proposals)

    def density(rows: Array) -> Array:
        found = model.log_prob(params, graph, rows, is_set)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    def visit(carry: tuple[jax.Array, Array], at: tuple[Key, Array, Array]) -> tuple[Any, Any]:
        rows, now = carry
        own, j, is_walk = at
        key_candidate, key_accept = jax.random.split(own)
        candidate, log_ratio = _candidate(key_candidate, rows, j, is_walk, proposals)
        moved = rows.at[:, j].set(jnp.where(missing[:, j], candidate, rows[:, j]))
        then = density(moved)
        threshold = jnp.log(jax.random.uniform(key_accept, now.shape))
        accepted = missing[:, j] & (threshold < then - now + log_ratio)
        # Whoever starts where the density is 0 leaves as soon as there is a way out.
        accepted |= missing[:, j] & jnp.isneginf(now) & ~jnp.isneginf(then)
        rows = jnp.where(accepted[:, None], moved, rows)
        return (rows, jnp.where(accepted, then, now)), accepted.sum() / missing[:, j].sum()

    keys = jax.random.split(key, len(schedule))
    walks = jnp.arange(len(schedule)) % 2 == 1
    (rows, _), rates = lax.scan(visit, (x, density(x)), (keys, schedule, walks))
    return rows, rates.mean()


def _candidate(
    key: Key, rows: Array, j: Array, is_walk: Array, proposals: Proposals
) -> tuple[Array, Array]:
    """A candidate for column j of each row, and the log ratio of proposals, old to new."""
    key_measurement, key_level, key_count = jax.random.split(key, 3)
    kind = proposals.kind[j].astype(int)
    measured, measured_ratio = _measurement(key_measurement, rows, j, is_walk, proposals)
    level, level_ratio = _level(key_level, rows[:, j], j, proposals)
    count, count_ratio = _count(key_count, rows[:, j], j, proposals)
    candidate = jnp.stack([measured, level, count])[kind]
    return candidate, jnp.stack([measured_ratio, level_ratio, count_ratio])[kind]


def _measurement(
    key: Key, rows: Array, j: Array, is_walk: Array, proposals: Proposals
) -> tuple[Array, Array]:
    """From the regression on the other columns, or a step of a random length from here."""
    key_noise, key_step = jax.random.split(key)
    now, noise = rows[:, j], jax.random.normal(key_noise, rows[:, j].shape)
    mean = rows @ proposals.weights[:, j] + proposals.intercepts[j]
    width = _WIDER * proposals.spread[j]
    fresh = mean + width * noise
    ratio = ((fresh - mean) ** 2 - (now - mean) ** 2) / (2 * width**2)
    reach = np.log(_LARGEST_STEP / _SMALLEST_STEP)
    length = _SMALLEST_STEP * jnp.exp(reach * jax.random.uniform(key_step, now.shape))
    walked = now + proposals.spread[j] * length * noise
    return jnp.where(is_walk, walked, fresh), jnp.where(is_walk, 0.0, ratio)


def _level(key: Key, now: Array, j: Array, proposals: Proposals) -> tuple[Array, Array]:
    """A level with its frequency among the measured cells."""
    table = proposals.log_frequency[j]
    shift, scale = proposals.shift[j], proposals.scale[j]
    code = jnp.clip(jnp.round(now * scale + shift), 0, len(table) - 1).astype(int)
    fresh = jax.random.categorical(key, table, shape=now.shape)
    return (fresh.astype(now.dtype) - shift) / scale, table[code] - table[fresh]


def _count(key: Key, now: Array, j: Array, proposals: Proposals) -> tuple[Array, Array]:
    """A whole step of a random length up or down; there is nothing below 0."""
    key_length, key_sign = jax.random.split(key)
    shift, scale = proposals.shift[j], proposals.scale[j]
    value = jnp.round(now * scale + shift)
    typical = jnp.maximum(proposals.spread[j] * scale, 1.0)
    length = jnp.ceil(typical * jax.random.exponential(key_length, now.shape))
    fresh = value + jnp.where(jax.random.bernoulli(key_sign, 0.5, now.shape), length, -length)
    return (fresh - shift) / scale, jnp.where(fresh < 0, -jnp.inf, 0.0)
