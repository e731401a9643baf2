"""SCORE and NoGAM: the Stein estimators against a known density, and orders that are known."""

import numpy as np
import pytest

from bayesdag import read
from bayesdag.bench.columns import RIVALS
from bayesdag.bench.score_matching import estimate, order_by_leaves, score_leaf, stein_estimates
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


@pytest.mark.parametrize("name", ["score", "nogam"])
def test_the_order_of_a_nonlinear_chain_is_found(name):
    rng = np.random.default_rng(0)
    a = rng.normal(size=250)
    b = np.sin(2 * a) + a + 0.3 * rng.normal(size=250)
    c = b**2 + 0.3 * rng.normal(size=250)
    graph = estimate(read(np.column_stack([c, a, b])), name)
    np.testing.assert_array_equal(graph, [[0, 0, 0], [0, 0, 1], [1, 0, 0]])


def test_leaves_are_taken_away_one_by_one():
    order = order_by_leaves(np.zeros((4, 3)), lambda x: 0)
    assert order == [2, 1, 0]
    assert score_leaf(np.random.default_rng(0).normal(size=(50, 1))) == 0


def test_rivals_are_measured_like_other_packages():
    made = Synthetic(num_variables=3, edges_per_node=1, num_train=60, num_test=0)
    (found,) = RIVALS["SCORE"].measure([Trial({}, 0, made)])
    assert found["expected_shd"] >= 0
    assert 0 <= found["edge_f1"] <= 1
    assert found["seconds"] > 0
    with pytest.raises(InputError, match="no rival is called 'x'"):
        estimate(made(0).train, "x")
