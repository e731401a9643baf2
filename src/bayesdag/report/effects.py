"""Effects that the page can show at once: those of the most probable causes."""

import warnings
from typing import Any

import numpy as np

from bayesdag.errors import BayesdagWarning
from bayesdag.posterior import Posterior
from bayesdag.posterior.effect_result import Effect
from bayesdag.posterior.simulation import Ensemble
from bayesdag.report.numbers import short
from bayesdag.text import printable

MOST_LINEAR = 80
MOST_SIMULATED = 24  # in nonlinear models each one costs a simulation
ROWS_PER_DRAW = 200
BINS = 40
LEAST = 0.05


def effects_view(posterior: Posterior) -> list[dict[str, Any]]:
    """Effects of the most probable causes on what they influence, as plain data."""
    node = {name: place for place, name in enumerate(posterior.names)}
    return [_view(_effect(posterior, *pair), node) for pair in strongest_pairs(posterior)]


def strongest_pairs(posterior: Posterior) -> list[tuple[str, str]]:
    """Pairs most probably linked by a directed path; direct causes first among equals."""
    names = posterior.names
    ensemble = Ensemble(
        posterior.model, posterior.params, posterior.graphs, posterior.weights, names
    )
    path, edge = posterior.path_probabilities().to_numpy(), posterior.edge_matrix()
    pairs = np.argwhere((path >= LEAST) & ~np.eye(len(names), dtype=bool))
    first = np.lexsort((-edge[pairs[:, 0], pairs[:, 1]], -np.round(path[*pairs.T], 2)))
    most = MOST_LINEAR if ensemble.is_linear else MOST_SIMULATED
    return [(names[int(i)], names[int(j)]) for i, j in pairs[first[:most]]]


def _effect(posterior: Posterior, cause: str, outcome: str) -> Effect:
    with warnings.catch_warnings():
        # One standard deviation beside the mean of a skewed column may lie outside its range;
        # the page states the values it compares.
        warnings.simplefilter("ignore", BayesdagWarning)
        return posterior.effect(cause, outcome, num_rows=ROWS_PER_DRAW)


def _view(effect: Effect, node: dict[str, int]) -> dict[str, Any]:
    path = effect.structure >= 0
    draws, weights = effect.draws[path], effect.weights[path]
    counts, ends = _histogram(draws, weights)
    numbers = effect.summary()
    return {
        "cause": node[effect.cause],
        "outcome": node[effect.outcome],
        "values": short(effect.values),
        "mean": short([effect.mean])[0],
        "sd": short([effect.sd])[0],
        "hdi": short([numbers["hdi_low"], numbers["hdi_high"]]),
        "positive": round(effect.prob_positive, 4),
        "negative": round(effect.prob_negative, 4),
        "no_path": round(effect.prob_no_path, 4),
        "sign_flips": round(effect.sign_flips, 4),
        "structural": short([effect.variance.structural_fraction])[0],
        "words": printable(in_words(effect)),
        "counts": short(counts, 3),
        "ends": short(ends, 5),
    }


def in_words(effect: Effect) -> str:
    """An effect as a sentence."""
    low, high = effect.values
    ends = effect.hdi()
    direction = "raises" if effect.mean > 0 else "lowers" if effect.mean < 0 else "does not change"
    size = f" by {abs(effect.mean):.3g}" if effect.mean else ""
    return (
        f"Setting {effect.cause} from {low:.3g} to {high:.3g} {direction} the mean of "
        f"{effect.outcome}{size} on average over all plausible graphs (95 % HDI {ends[0]:.3g} to "
        f"{ends[1]:.3g}); with probability {effect.prob_no_path:.2f} there is no influence at all."
    )


def _histogram(draws: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density of the effect where there is a path, and the ends of its bins."""
    if draws.size == 0 or np.ptp(draws) <= 1e-12 * np.abs(draws).max():
        return np.zeros(0), np.zeros(0)
    counts, ends = np.histogram(draws, bins=BINS, weights=weights)
    return counts / counts.max(), ends
