"""The function on an edge: what a cause does to the mean of its effect, with a credible band.

Every draw that has the edge has a function of its own. Along the values of one cause, the other
parents at their means, the draws give a band; points around it are partial residuals, what is
left of the measured rows when the influence of the other parents is taken off.
"""

# numpy's stubs leave the types of interp and searchsorted unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.model.scm import SCM
from bayesdag.posterior import column_names
from bayesdag.posterior.levels import Columns
from bayesdag.posterior.libraries import jnp, lax
from bayesdag.posterior.simulation import Ensemble
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Array, Params
from bayesdag.types.late_imports import compiled

NUM_POINTS = 33  # along the range of the cause
NUM_DRAWS = 200  # of those with the edge, chosen evenly by weight
BAND = 0.9


@dataclass(frozen=True)
class FunctionBand:
    """The function of one cause in one outcome, over the draws that have the edge.

    Attributes:
        cause: name of the parent.
        outcome: name of the child.
        x: values of the cause, in original units.
        mean: mean of the outcome there, averaged over draws; other parents at their means.
        low: lower end of the pointwise credible band.
        high: its upper end.
        band: probability that the band holds.
        rows: numbers of the measured rows that are shown; empty without rows.
        partial_residuals: of these rows, in units of the outcome.
    """

    cause: str
    outcome: str
    x: Float[np.ndarray, " g"]
    mean: Float[np.ndarray, " g"]
    low: Float[np.ndarray, " g"]
    high: Float[np.ndarray, " g"]
    band: float
    rows: Int[np.ndarray, " n"]
    partial_residuals: Float[np.ndarray, " n"]


def function_bands(
    ensemble: Ensemble,
    columns: Columns,
    edges: Sequence[tuple[str, str]],
    *,
    values: Float[np.ndarray, "n d"] | None = None,
    observed: Bool[np.ndarray, "n d"] | None = None,
    band: float = BAND,
    num_draws: int = NUM_DRAWS,
) -> list[FunctionBand]:
    """The functions on the given edges; edges that no draw has are left out.

    Args:
        columns: what is known of the columns of the data: their range and mean.
        values: measured rows, in original units, for partial residuals.
        observed: False where a cell was set by an experimenter; such rows tell nothing of
            the function and are left out.
    """
    asked = _asked(ensemble, edges, num_draws)
    if not len(asked.sources):
        return []
    grids = _grids(ensemble.names, columns)
    scaling, run = ensemble.model.scaling, _evaluator(ensemble, columns)
    scaled = (grids - scaling.shift[:, None]) / scaling.scale[:, None]
    curves = np.asarray(run(asked, np.float32(scaled[asked.sources])), dtype=float)
    residuals = _residuals(run, ensemble, asked, values)
    found: list[FunctionBand] = []
    for e in range(len(asked.sources)):
        i, j = int(asked.sources[e]), int(asked.targets[e])
        curve = curves[e] * scaling.scale[j] + scaling.shift[j]
        low, high = np.quantile(curve, [(1 - band) / 2, (1 + band) / 2], axis=0)
        mean, kept = curve.mean(axis=0), _rows_of(values, observed, j)
        points = _rows_along(values, kept, i, grids[i], mean)
        points = points + residuals[e, kept] * scaling.scale[j]
        cause, outcome = ensemble.names[i], ensemble.names[j]
        found.append(FunctionBand(cause, outcome, grids[i], mean, low, high, band, kept, points))
    return found


class _Asked(NamedTuple):
    """Edges that are asked about, as nodes, and draws that have each of them."""

    sources: Int[np.ndarray, " e"]
    targets: Int[np.ndarray, " e"]
    draws: Int[np.ndarray, "e k"]


def _asked(ensemble: Ensemble, edges: Sequence[tuple[str, str]], num_draws: int) -> _Asked:
    """The edges that some draw has."""
    pairs = [column_names.pair(ensemble.names, *edge) for edge in edges]
    holders = [_holders(ensemble, *pair, num_draws) for pair in pairs]
    kept = [(*pair, draws) for pair, draws in zip(pairs, holders, strict=True) if len(draws)]
    return _Asked(
        np.array([i for i, _, _ in kept], dtype=int),
        np.array([j for _, j, _ in kept], dtype=int),
        np.array([draws for _, _, draws in kept], dtype=int).reshape(len(kept), num_draws),
    )


def _grids(names: Sequence[str], columns: Columns) -> Float[np.ndarray, "d g"]:
    """Values along the range of every column."""
    low, high = (np.array([columns[name][end] for name in names]) for end in ("min", "max"))
    return np.linspace(low, high, NUM_POINTS, axis=1)


def _evaluator(ensemble: Ensemble, columns: Columns) -> Callable[..., Any]:
    """A function of edges and grids that gives the means of the targets, in engine units."""
    params, graphs = ensemble.take(np.arange(ensemble.weights.size))
    theta = map_leaves(jnp.asarray, params["mechanism"])
    means = np.array([columns[name]["mean"] for name in ensemble.names])
    base = ensemble.model.scaling.apply(means).astype(np.float32)
    engine = ensemble.engine

    def run(asked: _Asked, grids: np.ndarray, rows: np.ndarray | None = None) -> Any:
        edges: tuple[np.ndarray, ...] = (asked.draws, asked.sources, asked.targets)
        given = (theta, jnp.asarray(graphs), *edges, grids)
        return _evaluate(*given, base=base, model=engine, rows=rows)

    return run


def _holders(ensemble: Ensemble, i: int, j: int, num_draws: int) -> Int[np.ndarray, " k"]:
    """Draws with the edge, evenly chosen by weight; repeated where there are fewer."""
    held: np.ndarray = ensemble.flat_graphs[:, i, j] != 0
    weights = ensemble.weights.reshape(-1) * held
    if not weights.sum() > 0:
        return np.zeros(0, dtype=int)
    levels = (np.arange(num_draws) + 0.5) / num_draws * weights.sum()
    return np.minimum(np.searchsorted(np.cumsum(weights), levels), len(weights) - 1)


def _residuals(
    run: Callable[..., Any],
    ensemble: Ensemble,
    asked: _Asked,
    values: Float[np.ndarray, "n d"] | None,
) -> Float[np.ndarray, "e n"]:
    """What all parents together leave of the target in each row, per edge, in engine units."""
    if values is None:
        return np.zeros((len(asked.sources), 0))
    x = ensemble.model.scaling.apply(values).astype(np.float32)
    few = asked._replace(draws=asked.draws[:, ::8])  # an average; the points need no more
    means = np.asarray(run(few, x.T[asked.sources], x)).mean(axis=1)
    return (x.T[asked.targets] - means).astype(float)


def _rows_along(
    values: np.ndarray | None,
    rows: Int[np.ndarray, " n"],
    cause: int,
    grid: Float[np.ndarray, " g"],
    mean: Float[np.ndarray, " g"],
) -> Float[np.ndarray, " n"]:
    """The function of the cause at its value in each row."""
    if values is None:
        return np.zeros(0)
    return np.interp(values[rows, cause], grid, mean)


def _rows_of(
    values: np.ndarray | None, observed: np.ndarray | None, target: int
) -> Int[np.ndarray, " n"]:
    if values is None:
        return np.zeros(0, dtype=int)
    return np.arange(len(values)) if observed is None else np.flatnonzero(observed[:, target])


@compiled("model")
def _evaluate(
    params: Params,
    graphs: Array,
    draws: Array,
    sources: Array,
    targets: Array,
    grids: Array,
    *,
    base: Array,
    model: SCM,
    rows: Array | None = None,
) -> Float[Array, "e k g"]:
    """Means of the targets along the grids of their sources, draw by draw.

    Where `rows` are given, all columns are theirs instead of `base` and a grid.
    """

    def one_edge(edge: tuple[Array, Array, Array, Array]) -> Array:
        which, i, j, grid = edge
        x = jnp.tile(base[None, :], (grid.shape[0], 1)).at[:, i].set(grid)
        x = x if rows is None else rows

        def one_draw(s: Array) -> Array:
            theta = map_leaves(partial(_entry, which=s), params)
            return model.mechanism.node(theta, x, graphs[s][:, j], j)

        return lax.map(one_draw, which, batch_size=8)

    return lax.map(one_edge, (draws, sources, targets, grids))


def _entry(leaf: Any, which: Array) -> Any:
    return leaf[which]
