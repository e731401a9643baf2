"""Simulation-based calibration of the exact posterior: graph and functions from the prior."""

from functools import partial

import jax
import numpy as np
import pytest

from bayesdag import random
from bayesdag.data import Dataset, Scaling
from bayesdag.exact import graph_dp, order_dp
from bayesdag.graphs import bitsets
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.fair import FairInDegree
from bayesdag.model.priors.uniform import Uniform
from bayesdag.scores.bge import BGe, BGeStats
from tests.statistical import kit

D = 3
UNITS = Scaling(np.zeros(D), np.ones(D))  # the prior's own: scaling by the data would break it
OFF_DIAGONAL = ~np.eye(D, dtype=bool)


def prior_graph(rng, exact: Exact) -> np.ndarray:
    """A DAG from the structure prior."""
    log_weights, penalty = exact.prior.components(D, exact.order_modular)
    modular = order_dp if exact.order_modular else graph_dp
    sets = bitsets.members(D)
    tables = np.append(penalty, penalty[:, -1:], axis=1)[:, sets.sum(axis=1)]
    sums = [modular.sums(np.where(sets.T, -np.inf, table)) for table in tables]
    weight = np.exp(log_weights + [s.log_total for s in sums])
    assert weight.sum() == pytest.approx(1)
    return modular.draw(rng, sums[rng.choice(len(weight), p=weight / weight.sum())], 1)


def quantities(graphs, params) -> np.ndarray:
    """Edges, weights, intercepts, noise scales and the number of edges, a row a draw."""
    weights = params["mechanism"]["weights"]
    rows = [graphs[:, OFF_DIAGONAL], weights[:, OFF_DIAGONAL], params["mechanism"]["bias"]]
    rows += [params["noise"]["log_scale"], graphs.sum(axis=(1, 2))[:, None]]
    return np.concatenate(rows, axis=1)


def simulate(key, exact: Exact, num_rows: int):
    """Data and the truth behind them; BGe without rows draws functions from their prior."""
    key_graph, key_functions, key_rows = jax.random.split(key, 3)
    graph = prior_graph(random.generator(key_graph), exact)
    group, none = np.zeros(D, dtype=np.int64), np.zeros(1, dtype=np.int64)
    prior = BGeStats(group, none, np.zeros((1, D)), 0.5 * np.eye(D)[None], D + 2.0, 0.5)
    params = exact.score.draw(key_functions, prior, graph)
    mechanism, noise = params["mechanism"], np.exp(params["noise"]["log_scale"][0])
    rng = random.generator(key_rows)
    shocks = mechanism["bias"][0] + noise * rng.standard_normal((num_rows, D))
    rows = shocks @ np.linalg.inv(np.eye(D) - mechanism["weights"][0])
    return Dataset(rows, ("a", "b", "c"), None, UNITS), quantities(graph, params)[0]


def draws(key, data: Dataset, exact: Exact) -> np.ndarray:
    posterior = exact(key, data, kit.no_knowledge(data), None)
    return quantities(posterior.graphs[0], jax.tree.map(lambda leaf: leaf[0], posterior.params))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [Uniform(), FairInDegree(), DensityGrid(4)], ids=repr)
@pytest.mark.parametrize("reading", [True, False], ids=["order", "graph"])
def test_the_truth_is_one_more_draw(key, prior, reading):
    exact = Exact(BGe(), prior, reading, num_samples=31)
    ranks = kit.calibration_ranks(
        key, 400, partial(simulate, exact=exact, num_rows=6), partial(draws, exact=exact)
    )
    assert kit.calibration_pvalues(*ranks).min() > 1e-3 / 19


def test_the_truth_is_one_more_draw_in_a_short_run(key):
    exact = Exact(prior=DensityGrid(2), num_samples=31)
    ranks = kit.calibration_ranks(
        key, 64, partial(simulate, exact=exact, num_rows=6), partial(draws, exact=exact)
    )
    assert kit.calibration_pvalues(*ranks, num_bins=4).min() > 1e-3 / 19


@pytest.mark.slow
def test_a_wrong_prior_on_the_functions_is_noticed(key):
    exact, wrong = (Exact(BGe(alpha_w=w), Uniform(), num_samples=31) for w in (None, 20.0))
    ranks = kit.calibration_ranks(
        key, 300, partial(simulate, exact=exact, num_rows=6), partial(draws, exact=wrong)
    )
    assert kit.calibration_pvalues(*ranks).min() < 1e-9
