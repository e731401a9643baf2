"""Stepwise BIC from moments against least squares on the rows, and its corner cases."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag import graphs, metrics
from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.orders import regression
from bayesdag.scores._sufficient_statistics import rows_of


def dataset(values: np.ndarray, interventions: np.ndarray | None = None) -> Dataset:
    return Dataset(values, tuple(f"x{j}" for j in range(values.shape[1])), interventions)


def moments(values: np.ndarray, interventions: np.ndarray | None = None):
    data = dataset(values, interventions)
    return rows_of(data.scaled, data.observed)


def mask(d: int, *members: int) -> np.ndarray:
    return np.isin(np.arange(d), members)


def bic(values: np.ndarray, node: int, parents: tuple[int, ...]) -> float:
    """n log(RSS / n) + k log(n), by least squares with an intercept."""
    design = np.column_stack([np.ones(len(values)), values[:, list(parents)]])
    slopes = np.linalg.lstsq(design, values[:, node], rcond=None)[0]
    residual = values[:, node] - design @ slopes
    num_rows = len(values)
    return num_rows * math.log(np.mean(residual**2)) + len(parents) * math.log(num_rows)


def simulate(seed: int, num_rows: int = 400, d: int = 5) -> np.ndarray:
    """Rows of a linear model in which x0, …, x(d-1) is a causal order, in odd units."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.6), k=1)
    values = rng.normal(size=(num_rows, d)) @ np.linalg.inv(np.eye(d) - weights)
    return values * rng.uniform(0.1, 10, d) + rng.normal(size=d)


@given(st.integers(0, 2**32 - 1))
def test_no_single_change_of_the_chosen_parents_lowers_bic(seed):
    values = simulate(seed)
    parents = regression.select_parents(moments(values), 4, mask(5, 0, 1, 2, 3), mask(5))
    chosen = set(np.flatnonzero(parents).tolist())
    least = bic(values, 4, tuple(chosen))
    for changed in ({*chosen} ^ {k} for k in range(4)):
        assert bic(values, 4, tuple(changed)) >= least - 1e-6


@given(st.integers(0, 2**32 - 1))
def test_independent_regressors_give_the_best_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    regressors = rng.normal(size=(300, 4))
    effect = regressors @ (rng.normal(size=4) * [1, 0.3, 0.1, 0]) + rng.normal(size=300)
    values = np.column_stack([regressors, effect])
    subsets = itertools.chain.from_iterable(itertools.combinations(range(4), k) for k in range(5))
    best = min(subsets, key=lambda parents: bic(values, 4, parents))
    found = regression.select_parents(moments(values), 4, mask(5, 0, 1, 2, 3), mask(5))
    assert tuple(np.flatnonzero(found)) == best


def test_a_parent_that_later_ones_make_superfluous_is_removed():
    # x2 = x0 + x1 up to noise goes in first, but x3 = x0 + x1 + noise needs only x0 and x1.
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(2000, 2))
    between = causes.sum(axis=1) + 0.5 * rng.normal(size=2000)
    values = np.column_stack([causes, between, causes.sum(axis=1) + 0.3 * rng.normal(size=2000)])
    alone = [bic(values, 3, (k,)) for k in range(3)]
    found = regression.select_parents(moments(values), 3, mask(4, 0, 1, 2), mask(4))
    assert int(np.argmin(alone)) == 2
    np.testing.assert_array_equal(np.flatnonzero(found), [0, 1])


@given(st.integers(0, 2**32 - 1))
def test_units_and_zero_points_do_not_matter(seed):
    values = simulate(seed)
    rng = np.random.default_rng(seed)
    moved = values * rng.uniform(0.01, 100, 5) + rng.normal(size=5)
    for node in (1, 4):
        first, second = (
            regression.select_parents(moments(v), node, ~mask(5, node), mask(5))
            for v in (values, moved)
        )
        np.testing.assert_array_equal(first, second)


def test_required_parents_stay_and_others_are_judged_beside_them(seed):
    values = simulate(seed)
    values[:, 3] = np.random.default_rng(seed).normal(size=len(values))  # says nothing of x4
    rows = moments(values)
    candidates = mask(5, 0, 1, 2)
    free = regression.select_parents(rows, 4, candidates, mask(5))
    forced = regression.select_parents(rows, 4, candidates, mask(5, 3))
    assert not free[3]
    np.testing.assert_array_equal(forced, free | mask(5, 3))


def test_a_copy_of_a_required_parent_may_be_required_but_never_chosen():
    values = simulate(1)
    values[:, 1] = 3 * values[:, 0] - 7
    values[:, 4] = values[:, 0] + np.random.default_rng(0).normal(size=len(values))
    rows = moments(values)
    both = regression.select_parents(rows, 4, mask(5), mask(5, 0, 1))
    one = regression.select_parents(rows, 4, mask(5, 1), mask(5, 0))
    np.testing.assert_array_equal(np.flatnonzero(both), [0, 1])
    np.testing.assert_array_equal(np.flatnonzero(one), [0])


def test_rows_in_which_a_node_was_set_do_not_count_for_it(seed):
    values = simulate(seed)
    spoiled = np.concatenate([values, values[:100]])
    spoiled[400:, 4] = 1e3 * np.random.default_rng(seed).normal(size=100)
    interventions = np.zeros(spoiled.shape, dtype=bool)
    interventions[400:, 4] = True
    candidates = mask(5, 0, 1, 2, 3)
    clean = regression.select_parents(moments(values), 4, candidates, mask(5))
    masked = regression.select_parents(moments(spoiled, interventions), 4, candidates, mask(5))
    blind = regression.select_parents(moments(spoiled), 4, candidates, mask(5))
    assert clean.any()
    np.testing.assert_array_equal(masked, clean)
    assert not np.array_equal(blind, clean)


def test_rows_in_which_another_node_was_set_do_count():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 3))
    values[400:, 1] += 5 * values[400:, 0]  # all that tells of x0 → x1
    interventions = np.zeros(values.shape, dtype=bool)
    interventions[400:, 2] = True
    found = regression.select_parents(moments(values, interventions), 1, mask(3, 0), mask(3))
    np.testing.assert_array_equal(np.flatnonzero(found), [0])


def test_a_node_that_was_always_set_has_its_required_parents_only():
    values = simulate(2)
    interventions = np.zeros(values.shape, dtype=bool)
    interventions[:, 4] = True
    rows = moments(values, interventions)
    found = regression.select_parents(rows, 4, mask(5, 0, 1, 2, 3), mask(5, 2))
    np.testing.assert_array_equal(np.flatnonzero(found), [2])


def test_there_are_never_more_parents_than_half_the_rows(seed):
    values = np.random.default_rng(seed).normal(size=(12, 30))
    found = regression.select_parents(moments(values), 29, ~mask(30, 29), mask(30))
    assert found.sum() <= 6


def test_a_column_that_others_determine_gets_them_as_parents():
    values = simulate(3)
    values[:, 4] = values[:, 0] - 2 * values[:, 1]
    found = regression.select_parents(moments(values), 4, mask(5, 0, 1), mask(5))
    np.testing.assert_array_equal(np.flatnonzero(found), [0, 1])


def test_the_graph_follows_the_order_and_the_knowledge():
    values = np.random.default_rng(0).normal(size=(400, 5))
    values[:, 2] += values[:, 4]  # x4 → x2 is tempting, and nothing speaks for x3 → x0
    rows, order = moments(values), np.array([4, 3, 2, 1, 0])
    names = tuple(f"x{j}" for j in range(5))
    free = regression.graph_of_order(rows, order, Constraints.free(names))
    knowledge = Knowledge(required=(("x3", "x0"),), forbidden=(("x4", "x2"),)).bind(names)
    bound = regression.graph_of_order(rows, order, knowledge)
    assert (free[4, 2], free[3, 0]) == (1, 0)
    assert (bound[4, 2], bound[3, 0]) == (0, 1)
    for graph in (free, bound):
        assert not np.triu(graph).any()  # from a small number to a larger one is backwards


@pytest.mark.parametrize(
    ("name", "shd", "f1"), [("er10_seed5", 13, 0.755), ("sf10_seed5", 11, 0.744)]
)
def test_published_data_in_their_true_order(anchors_folder, name, shd, f1):
    """Values that an exhaustive search over all subsets of predecessors gives, too."""
    file = np.load(anchors_folder / f"{name}.npz")
    truth = (file["adj"] != 0).astype(np.int8)
    data = dataset(file["X_train"].astype(float))
    order = graphs.topological_order(truth)
    rows = rows_of(data.scaled, data.observed)
    graph = regression.graph_of_order(rows, order, Constraints.free(data.names))
    assert metrics.shd(graph, truth) == shd
    assert metrics.f1(graph, truth) == pytest.approx(f1, abs=0.001)
