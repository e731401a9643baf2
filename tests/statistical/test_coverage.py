"""Intervals of effects cover the truth as often as they say: graph and functions from the prior."""

import jax
import numpy as np
import pytest

from bayesdag import graphs, random
from bayesdag.data import Dataset, Scaling
from bayesdag.methods.exact import Exact
from bayesdag.scores.bge import BGe, BGeStats
from tests.statistical import kit

D = 4
NAMES = ("a", "b", "c", "d")
UNITS = Scaling(np.zeros(D), np.ones(D))  # the prior's own: scaling by the data would break it
REPETITIONS, NUM_ROWS = 200, 30
LEVELS = (0.5, 0.8, 0.9, 0.95)


def graph_prior(exact: Exact) -> tuple[np.ndarray, np.ndarray]:
    """All DAGs and their prior probability, each counted once for every order it has."""
    dags = graphs.all_dags(D)
    log_weights, penalty = exact.prior.components(D, order_modular=True)
    local = penalty[:, dags.sum(axis=1)].sum(axis=2)  # (component, dag)
    orders = np.array([graphs.num_linear_extensions(dag) for dag in dags])
    mass = np.exp(log_weights) @ np.exp(local) * orders
    return dags, mass / mass.sum()


def simulate(key, exact: Exact, dags, mass) -> tuple[Dataset, np.ndarray]:
    """Data, and the true effect of every variable on every other.

    BGe without rows draws functions from their prior, whose scale is one half here.
    """
    key_graph, key_functions, key_rows = jax.random.split(key, 3)
    graph = dags[random.generator(key_graph).choice(len(dags), p=mass)]
    none = np.zeros(1, dtype=np.int64)
    prior = BGeStats(
        np.zeros(D, dtype=np.int64), none, np.zeros((1, D)), 0.5 * np.eye(D)[None], D + 2.0, 0.5
    )
    params = exact.score.draw(key_functions, prior, graph[None])
    effects = np.linalg.inv(np.eye(D) - params["mechanism"]["weights"][0])
    noise = np.exp(params["noise"]["log_scale"][0])
    rows = random.generator(key_rows).standard_normal((NUM_ROWS, D))
    return Dataset(
        (params["mechanism"]["bias"][0] + noise * rows) @ effects, NAMES, None, UNITS
    ), effects


def covered(key, exact, dags, mass) -> np.ndarray:
    """For each level: whether the interval holds the truth, and the mass it really has."""
    key_data, key_fit, key_pair = jax.random.split(key, 3)
    data, truth = simulate(key_data, exact, dags, mass)
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
    exact = Exact(score=BGe(alpha_mu=1.0, alpha_w=D + 2.0), num_samples=2000)
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
