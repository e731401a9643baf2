"""Sortability against its definition, written plainly, and against cases known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.data.sortability import describe, r2_sortability, r_squared, varsortability
from tests.strategies import dags


def walks(graph, length):
    """Pairs joined by a directed walk of exactly this many edges."""
    ends = {(i, i) for i in range(len(graph))}
    for _ in range(length):
        ends = {(i, k) for i, j in ends for k in np.flatnonzero(graph[j])}
    return ends


def plain_share(criterion, graph):
    pairs = [pair for length in range(1, len(graph)) for pair in walks(graph, length)]
    # Two variables explain each other equally well, up to rounding.
    credits = [0.5 * (1 + np.sign(round(criterion[j] - criterion[i], 9))) for i, j in pairs]
    return np.mean(credits) if pairs else np.nan


def rows(d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(50, d)) @ rng.normal(size=(d, d)) + 100 * rng.normal(size=d)


@given(graph=dags(min_nodes=2), seed=st.integers(0, 10_000))
def test_varsortability_is_the_share_of_paths_along_which_variance_grows(graph, seed):
    values = rows(len(graph), seed)
    expected = plain_share(values.var(axis=0), graph)
    np.testing.assert_allclose(varsortability(values, graph), expected)


@given(graph=dags(min_nodes=2), seed=st.integers(0, 10_000))
def test_r2_sortability_does_not_see_units(graph, seed):
    values = rows(len(graph), seed)
    expected = plain_share(r_squared(values), graph)
    scale = np.random.default_rng(seed).uniform(0.1, 10, size=len(graph))
    np.testing.assert_allclose(r2_sortability(values, graph), expected)
    np.testing.assert_allclose(r2_sortability(values * scale + 1, graph), expected)


@given(d=st.integers(2, 6), seed=st.integers(0, 10_000))
def test_r_squared_is_that_of_least_squares_on_all_other_columns(d, seed):
    values = rows(d, seed)
    for j in range(d):
        design = np.column_stack([np.ones(50), np.delete(values, j, axis=1)])
        residual = values[:, j] - design @ np.linalg.lstsq(design, values[:, j], rcond=None)[0]
        expected = 1 - residual.var() / values[:, j].var()
        assert r_squared(values)[j] == pytest.approx(expected, abs=1e-6)


def test_a_column_determined_by_others_has_r_squared_one_and_an_unrelated_one_its_own(seed):
    values = np.random.default_rng(seed).normal(size=(1000, 4))
    values[:, 2] = values[:, 0] + values[:, 1]
    found = r_squared(values)
    np.testing.assert_allclose(found[:3], 1.0)
    assert found[3] < 0.05
    np.testing.assert_allclose(r_squared(values[:, [3, 3]]), 1.0)
    np.testing.assert_array_equal(r_squared(np.ones((5, 3))), 0.0)


@given(seed=st.integers(0, 10_000))
def test_with_fewer_rows_than_columns_everything_is_explained(seed):
    values = np.random.default_rng(seed).normal(size=(5, 12))
    np.testing.assert_allclose(r_squared(values), 1.0, atol=1e-9)


def test_a_chain_of_growing_variance_is_fully_sortable_and_its_reverse_not_at_all():
    values = np.random.default_rng(0).normal(size=(99, 4)).cumsum(axis=1)
    chain = np.eye(4, k=1)
    assert varsortability(values, chain) == 1.0
    assert varsortability(values, chain.T) == 0.0


def test_equal_variances_count_half_and_no_edges_give_no_number():
    values = np.random.default_rng(0).normal(size=(99, 2))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    assert varsortability(values, np.array([[0, 1], [0, 0]])) == 0.5
    assert r2_sortability(values, np.array([[0, 1], [0, 0]])) == 0.5
    assert np.isnan(varsortability(values, np.zeros((2, 2))))


def test_a_pair_counts_once_for_each_length_of_path():
    # 0 -> 1 -> 2 and 0 -> 2: the pair (0, 2) counts twice, once with one edge, once with two.
    values = np.array([[0.0, 0.0, 0.0], [2.0, 3.0, 1.0]])
    graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    assert varsortability(values, graph) == 1 / 4


def words(deviation, explained, **options):
    return describe(np.array(deviation), np.array(explained), ("a", "b", "c"), **options)


def test_words_give_the_range_of_scales_with_their_names():
    said = words([2.0, 0.5, 4.0], [0.2, 0.1, 0.3], standardised=True)
    assert "from 0.5 ('b') to 4 ('c'), a ratio of 8" in said
    assert "from 0.1 ('b') to 0.3 ('c')" in said
    assert "standardised columns" in said


def test_words_warn_of_raw_scales_only_when_they_differ():
    assert "nearly equal" in words([1.0, 1.01, 1.0], [0.1] * 3, standardised=False)
    assert "fit again" in words([1.0, 3.0, 1.0], [0.1] * 3, standardised=False)


def test_words_speak_of_r_squared_only_when_it_differs():
    assert "sort_r2" not in words([1.0] * 3, [0.1, 0.2, 0.1], standardised=True)
    assert "sort_r2" in words([1.0] * 3, [0.1, 0.9, 0.1], standardised=True)
