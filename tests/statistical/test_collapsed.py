"""The collapsed engine beside exact posteriors, with many draws and on larger problems."""

import dataclasses

import numpy as np
import pytest

from bayesdag import fit, read
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.model.priors.fair import FairInDegree
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian
from tests.statistical import kit

pytestmark = pytest.mark.slow

MANY = Collapsed(num_chains=4, num_samples=5000)


def linear_rows(seed: int, d: int, num_rows: int, num_edges: int):
    """Linear Gaussian rows with unequal noise, and the graph behind them."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(d)
    upper = np.argwhere(np.triu(np.ones((d, d)), 1))
    graph = np.zeros((d, d), dtype=np.int8)
    for a, b in upper[rng.choice(len(upper), size=num_edges, replace=False)]:
        graph[order[a], order[b]] = 1
    weights = graph * rng.uniform(0.5, 1.5, (d, d)) * rng.choice([-1, 1], (d, d))
    noise = rng.normal(size=(num_rows, d)) / np.sqrt(rng.gamma(1.5, size=d))
    return read(noise @ np.linalg.inv(np.eye(d) - weights)), graph


@pytest.mark.parametrize("order_modular", [True, False])
@pytest.mark.parametrize("score", [BGe(), LinearGaussian()], ids=["bge", "linear"])
def test_five_variables_agree_with_enumeration(score, order_modular, seed):
    data, _ = linear_rows(seed % 1000, 5, 100, 5)
    method = dataclasses.replace(MANY, score=score, order_modular=order_modular)
    posterior = fit(data, method, seed=1)
    truth = kit.truth_of(kit.same_model(method), data)
    effective = int(1 / (posterior.weights**2).sum())
    rng = np.random.default_rng(seed)
    verdict = kit.judge(rng, truth, posterior.graphs, posterior.weights, effective)
    assert verdict.found.mmd <= 0.01
    assert verdict.found.edge <= 0.02
    assert verdict.found.total_variation < verdict.limit.total_variation


@pytest.mark.parametrize("prior", [MANY.prior, FairInDegree()], ids=["density", "fair"])
def test_twelve_variables_agree_with_dynamic_programming(prior, seed):
    data, _ = linear_rows(seed % 1000, 12, 200, 24)
    method = dataclasses.replace(MANY, prior=prior)
    exact = fit(data, kit.same_model(method), seed=1).edge_matrix()
    assert np.abs(fit(data, method, seed=1).edge_matrix() - exact).max() <= 0.03


def test_narrow_lists_cost_what_they_say_they_cost(seed):
    data, _ = linear_rows(seed % 1000, 12, 1000, 24)
    narrow = dataclasses.replace(MANY, max_candidates=7)
    posterior = fit(data, narrow, seed=1)
    exact = fit(data, kit.same_model(narrow), seed=1).edge_matrix()
    missing = posterior.provenance["tables"]["missing_edges"]
    assert missing > 0
    assert np.abs(posterior.edge_matrix() - exact).sum() < 0.5 + 5 * missing


@pytest.mark.parametrize("d", [20, 50])
def test_the_best_graph_found_scores_no_less_than_the_true_one(d):
    shortfalls = []
    for seed in range(5):
        data, graph = linear_rows(seed, d, 1000, 2 * d)
        posterior = fit(data, "collapsed", seed=seed)
        best = max(stage["best"] for stage in posterior.provenance["search"]["stages"])
        truth = Collapsed().log_score_of(data, Constraints.free(data.names), graph)
        shortfalls.append(truth - best)
    assert max(shortfalls) < 1e-6
