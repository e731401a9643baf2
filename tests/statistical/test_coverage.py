"""Intervals of effects cover the truth as often as they say: graph and functions from the prior."""

import jax
import numpy as np
import pytest

from bayesdag import random
from bayesdag.methods.exact import Exact
from tests.statistical import kit
from tests.statistical.prior_draws import NAMES, PRIOR, D, graph_prior, simulate

REPETITIONS, NUM_ROWS = 200, 30
LEVELS = (0.5, 0.8, 0.9, 0.95)


def covered(key, exact, dags, mass) -> np.ndarray:
    """For each level: whether the interval holds the truth, and the mass it really has."""
    key_data, key_fit, key_pair = jax.random.split(key, 3)
    data, _, truth = simulate(key_data, exact, dags, mass, NUM_ROWS)
    posterior = exact(key_fit, data, kit.no_knowledge(data), None)
    i, j = random.generator(key_pair).permutation(D)[:2]
    effect = posterior.effect(NAMES[i], NAMES[j], values=(0, 1))
    result = []
    for level in LEVELS:
        low, high = effect.hdi(level)
        inside = (effect.draws >= low) & (effect.draws <= high)
        result.append((low <= truth[i, j] <= high, effect.weights[inside].sum()))
    return np.array(result, dtype=float)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*outside the range that was seen")
def test_intervals_of_effects_cover_the_truth_as_often_as_they_say(key):
    """An interval may hold more than its level: a graph without a path puts a lump at zero.

    What an interval holds is therefore compared with how often it covers; where no lump is
    in it the two levels are the same.
    """
    exact = Exact(score=PRIOR, num_samples=2000)
    dags, mass = graph_prior(exact)
    found = np.array([covered(k, exact, dags, mass) for k in jax.random.split(key, REPETITIONS)])
    hit, held = found[..., 0], found[..., 1]
    error = (hit - held).std(axis=0) / np.sqrt(REPETITIONS)
    assert (np.abs(hit.mean(axis=0) - held.mean(axis=0)) < 4 * error).all()
    assert (hit.mean(axis=0) > np.array(LEVELS) - 4 * error).all()
    smooth = held < np.array(LEVELS) + 0.005
    for level, plain, row in zip(LEVELS, smooth.T, hit.T, strict=True):
        num = max(plain.sum(), 1)
        assert (
            abs(row[plain].sum() / num - level) < 4 * np.sqrt(level * (1 - level) / num) + 1 / num
        )
