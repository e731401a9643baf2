"""SCORE, NoGAM and CaPS: Stein estimators against a known density, and orders that are known."""

import numpy as np
import pytest

from bayesdag import read
from bayesdag.bench.columns import RIVALS
from bayesdag.bench.score_matching import (
    caps_leaf,
    estimate,
    order_by_leaves,
    parent_scores,
    score_leaf,
    stein_estimates,
    supplemented,
)
from bayesdag.bench.suite import Trial
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError


def test_gradient_and_hessian_of_a_gaussian_are_found(seed):
    rng = np.random.default_rng(seed)
    covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
    x = rng.multivariate_normal([0, 0], covariance, size=800)
    precision = np.linalg.inv(covariance)
    gradient, hessian = stein_estimates(x)
    inner = (np.abs(x) < 1).all(axis=1)  # estimates are poor where rows are few
    assert np.abs(gradient + x @ precision)[inner].mean() < 0.25
    np.testing.assert_allclose(hessian[inner].mean(axis=0), -np.diag(precision), rtol=0.3)


@pytest.mark.parametrize(("name", "raw"), [("score", False), ("nogam", False), ("caps", True)])
def test_the_order_of_a_nonlinear_chain_is_found(name, raw):
    rng = np.random.default_rng(0)
    a = rng.normal(size=250)
    b = np.sin(2 * a) + a + 0.3 * rng.normal(size=250)
    c = b**2 + 0.3 * rng.normal(size=250)
    graph = estimate(read(np.column_stack([c, a, b])), name, raw)
    np.testing.assert_array_equal(graph, [[0, 0, 0], [0, 0, 1], [1, 0, 0]])


def test_leaves_are_taken_away_one_by_one():
    order = order_by_leaves(np.zeros((4, 3)), lambda x: 0)
    assert order == [2, 1, 0]
    assert score_leaf(np.random.default_rng(0).normal(size=(50, 1))) == 0


def test_caps_takes_a_leaf_for_the_variable_whose_log_density_bends_least():
    rng = np.random.default_rng(2)
    a = rng.normal(size=600)
    b = a + rng.normal(size=600)
    assert caps_leaf(np.column_stack([a, b])) == 1
    assert caps_leaf(np.column_stack([b, a])) == 0
    # The criterion rests on units: on standardised columns a linear pair has no leaf.
    bend = stein_estimates(np.column_stack([a, b / b.std()]))[1].mean(axis=0)
    assert abs(bend[0] - bend[1]) < 0.15


def test_the_score_of_a_parent_is_the_precision_that_its_child_adds():
    rng = np.random.default_rng(1)
    a = rng.normal(size=800)
    b = a + rng.normal(size=800)
    apart = rng.normal(size=800)
    scores = parent_scores(np.column_stack([a, b, apart]))
    assert scores[0, 1] == pytest.approx(1, abs=0.35)
    assert scores[2].max() < 0.3
    assert not np.diag(scores).any()


def test_strong_parents_are_added_unless_they_close_a_cycle():
    graph = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=np.int8)
    scores = np.array([[0, 0.9, 0], [8.0, 0, 6.0], [9.0, 0, 0]])
    # The mean over pairs of the scores of edges is 0.1: 5 and more is strong.
    expected = [[0, 1, 0], [0, 0, 0], [1, 0, 0]]  # 2 -> 0 comes first, then 1 -> 2 is a cycle
    np.testing.assert_array_equal(supplemented(graph, scores), expected)
    assert not supplemented(np.zeros_like(graph), scores).any()


def test_rivals_are_measured_like_other_packages():
    made = Synthetic(num_variables=3, edges_per_node=1, num_train=60, num_test=0)
    (found,) = RIVALS["SCORE"].measure([Trial({}, 0, made)])
    assert found["expected_shd"] >= 0
    assert 0 <= found["edge_f1"] <= 1
    assert found["seconds"] > 0
    with pytest.raises(InputError, match="no rival is called 'x'"):
        estimate(made(0).train, "x")
