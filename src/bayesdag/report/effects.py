"""Effects that the page can show at once: those of the most probable causes."""

import warnings
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from bayesdag.errors import BayesdagWarning
from bayesdag.posterior import Posterior
from bayesdag.posterior.effect_result import Effect, value_in_words
from bayesdag.posterior.effects import effect
from bayesdag.posterior.level_codes import LevelCodes, level_codes
from bayesdag.posterior.levels import Columns
from bayesdag.posterior.linear_effects import linear_effects
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import key_of
from bayesdag.report.numbers import short
from bayesdag.text import printable

MOST_LINEAR = 400
MOST_SIMULATED = 24  # in nonlinear models each one costs a simulation
DRAWS = 256  # of these
ROWS_PER_DRAW = 100
BINS = 40
LEAST = 0.05


def effects_view(posterior: Posterior) -> list[dict[str, Any]]:
    """Effects of the most probable causes on what they influence, as plain data."""
    node = {name: place for place, name in enumerate(posterior.names)}
    columns = posterior.summary["columns"]
    ensemble = posterior._ensemble
    pairs = strongest_pairs(posterior, MOST_LINEAR if ensemble.is_linear else MOST_SIMULATED)
    codes = level_codes(columns, posterior.variables)
    if ensemble.is_linear:
        found = linear_effects(ensemble, columns, pairs)
        return [_view(codes.labelled(one, -1), node) for one in found]
    few = thinned(ensemble, DRAWS)
    return [_view(_simulated(few, columns, codes, *pair), node) for pair in pairs]


def thinned(ensemble: Ensemble, most: int) -> Ensemble:
    """At most so many draws, chosen evenly by weight, as one chain of equal weights."""
    if ensemble.weights.size <= most:
        return ensemble
    below = np.cumsum(ensemble.weights.reshape(-1))
    levels = (np.arange(most) + 0.5) / most * below[-1]
    which = np.minimum(np.searchsorted(below, levels), below.size - 1)
    params, graphs = ensemble.take(which)
    alone = jax.tree.map(lambda leaf: leaf[None], (params, graphs))
    equal = np.full((1, most), 1 / most)
    return replace(ensemble, params=alone[0], graphs=alone[1], weights=equal)


def strongest_pairs(posterior: Posterior, most: int) -> list[tuple[str, str]]:
    """Pairs most probably linked by a directed path; direct causes first among equals."""
    names = posterior.variables
    d = len(names)
    path = posterior.path_probabilities().to_numpy()[:d, :d]
    edge = posterior.edge_matrix()[:d, :d]
    pairs = np.argwhere((path >= LEAST) & ~np.eye(len(names), dtype=bool))
    first = np.lexsort((-edge[pairs[:, 0], pairs[:, 1]], -np.round(path[*pairs.T], 2)))
    return [(names[int(i)], names[int(j)]) for i, j in pairs[first[:most]]]


def _simulated(
    ensemble: Ensemble, columns: Columns, codes: LevelCodes, cause: str, outcome: str
) -> Effect:
    """At the usual levels; on the probability of the last level where levels have no order."""
    level = len(codes.labels[outcome]) - 1 if outcome in codes.unordered else -1
    asked = (cause, outcome, None, None, ROWS_PER_DRAW, level)
    with warnings.catch_warnings():
        # One standard deviation beside the mean of a skewed column may lie outside its range;
        # the page states the values it compares.
        warnings.simplefilter("ignore", BayesdagWarning)
        return codes.labelled(effect(key_of(0), ensemble, columns, *asked), level)


def _view(found: Effect, node: dict[str, int]) -> dict[str, Any]:
    path = found.structure >= 0
    draws, weights = found.draws[path], found.weights[path]
    counts, ends = _histogram(draws, weights)
    interval = found.hdi()
    return {
        "cause": node[found.cause],
        "outcome": node[found.outcome],
        "mean": short([found.mean])[0],
        "sd": short([found.sd])[0],
        "hdi": short(interval),
        "positive": round(found.prob_positive, 4),
        "negative": round(found.prob_negative, 4),
        "no_path": round(found.prob_no_path, 4),
        "sign_flips": round(found.sign_flips, 4),
        "structural": short([found.variance.structural_fraction])[0],
        "words": printable(in_words(found, interval)),
        "counts": short(counts, 3),
        "ends": short(ends, 5),
    }


def in_words(found: Effect, ends: tuple[float, float]) -> str:
    """An effect with its 95 % interval as a sentence."""
    low, high = (value_in_words(value, 3) for value in found.values)
    direction = "raises" if found.mean > 0 else "lowers" if found.mean < 0 else "does not change"
    size = f" by {abs(found.mean):.3g}" if found.mean else ""
    return (
        f"Setting {found.cause} from {low} to {high} {direction} {found.quantity}{size} on "
        f"average over all plausible graphs (95 % HDI {ends[0]:.3g} to {ends[1]:.3g}); with "
        f"probability {found.prob_no_path:.2f} there is no influence at all."
    )


def _histogram(draws: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density of the effect where there is a path, and the ends of its bins."""
    if draws.size == 0 or np.ptp(draws) <= 1e-12 * np.abs(draws).max():
        return np.zeros(0), np.zeros(0)
    counts, ends = np.histogram(draws, bins=BINS, weights=weights)
    return counts / counts.max(), ends
