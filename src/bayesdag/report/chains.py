"""Traces and ranks of the chains, as the page draws them."""

from typing import Any

import numpy as np
from scipy.stats import rankdata

from bayesdag.posterior import Posterior
from bayesdag.report.graph import evenly
from bayesdag.report.numbers import short

MOST_CHAINS = 8
MOST_POINTS = 300
RANK_BINS = 20
FEWEST_DRAWS = 2 * RANK_BINS


def chains_view(posterior: Posterior) -> dict[str, Any]:
    """Traces of the statistics of the draws, and how their ranks spread over the chains."""
    shown = evenly(posterior.num_chains, MOST_CHAINS)
    points = evenly(posterior.num_draws, MOST_POINTS)
    stats = {
        name: values
        for name, values in posterior.stats.items()
        if np.isfinite(values).all() and np.ptp(values) > 0
    }
    return {
        "chains": (shown + 1).tolist(),
        "draws": (points + 1).tolist(),
        "traces": [
            {
                "name": name.replace("num_", "number of ").replace("_", " "),
                "values": [short(values[c, points], 6) for c in shown],
                "ranks": rank_counts(values, shown) if _rankable(posterior) else [],
            }
            for name, values in stats.items()
        ],
    }


def rank_counts(values: np.ndarray, shown: np.ndarray) -> list[list[float | None]]:
    """For each chain, how many of its draws fall in each bin of all ranks, over the expected.

    1 everywhere where the chains agree.
    """
    num_chains, num_draws = values.shape
    # Equal values have no order of their own; a fixed shuffle spreads them over the chains.
    shuffled = np.random.default_rng(0).permutation(values.size)
    ranks = np.empty(values.size)
    ranks[shuffled] = rankdata(values.reshape(-1)[shuffled], method="ordinal")
    ranks = ranks.reshape(values.shape)
    ends = np.linspace(0.5, num_chains * num_draws + 0.5, RANK_BINS + 1)
    expected = num_draws / RANK_BINS
    return [short(np.histogram(ranks[c], bins=ends)[0] / expected, 3) for c in shown]


def _rankable(posterior: Posterior) -> bool:
    return posterior.num_chains > 1 and posterior.num_draws >= FEWEST_DRAWS
