"""Sums over DAGs by dynamic programming, against adding up every DAG."""

import dataclasses
from functools import cache
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from bayesdag import graphs
from bayesdag.errors import InputError
from bayesdag.exact import graph_dp, order_dp
from bayesdag.exact import tables as exact_tables
from bayesdag.graphs import bitsets, num_linear_extensions_each

both = pytest.mark.parametrize("modular", [order_dp, graph_dp], ids=["order", "graph"])


def random_tables(seed: int, d: int, spread: float, forbidden: float = 0.0) -> np.ndarray:
    """Scores without any symmetry; a random share of the edges is forbidden."""
    rng = np.random.default_rng(seed)
    tables = spread * rng.standard_normal((d, 2**d))
    sets = bitsets.members(d)
    tables[sets.T] = -np.inf
    banned = rng.random((d, d)) < forbidden
    tables[(banned[:, None, :] & sets).any(axis=2)] = -np.inf
    return tables


all_dags = cache(graphs.all_dags)


@cache
def all_orders(d: int) -> np.ndarray:
    return num_linear_extensions_each(all_dags(d))


def enumerated(tables: np.ndarray, modular) -> tuple[float, np.ndarray]:
    """Log total, and the probability of every DAG."""
    d = len(tables)
    parents = np.tensordot(all_dags(d), 2 ** np.arange(d), axes=(1, 0))
    log_weight = tables[np.arange(d), parents].sum(axis=1)
    if modular is order_dp:
        log_weight = log_weight + np.log(all_orders(d))
    log_total = float(logsumexp(log_weight))
    return log_total, np.exp(log_weight - log_total)


@both
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 5),
    spread=st.sampled_from([0.0, 1.0, 30.0, 3000.0]),
    forbidden=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_sums_are_those_over_every_dag(modular, seed, d, spread, forbidden):
    tables = random_tables(seed, d, spread, forbidden)
    log_total, probability = enumerated(tables, modular)
    sums = modular.sums(tables)
    assert sums.log_total == pytest.approx(log_total, rel=1e-12, abs=1e-10)
    parent_sets = modular.parent_sets(sums)
    np.testing.assert_allclose(parent_sets.sum(axis=1), 1, atol=1e-9)
    expected = np.tensordot(probability, all_dags(d), 1)
    np.testing.assert_allclose(exact_tables.edges(parent_sets), expected, atol=1e-9)
    expected = np.tensordot(probability, graphs.ancestors(all_dags(d)), 1)
    np.testing.assert_allclose(modular.ancestors(sums), expected, atol=1e-9)


@both
def test_every_parent_set_has_its_probability(modular, seed):
    tables = random_tables(seed, 4, 2.0)
    parents = np.tensordot(all_dags(4), 2 ** np.arange(4), axes=(1, 0))
    expected = np.zeros(tables.shape)
    for node in range(4):
        np.add.at(expected[node], parents[:, node], enumerated(tables, modular)[1])
    np.testing.assert_allclose(modular.parent_sets(modular.sums(tables)), expected, atol=1e-12)


def test_equal_weights_count_graphs_and_orders():
    d = 9
    tables = np.where(bitsets.members(d).T, -np.inf, 0.0)
    # Labelled DAGs with 9 nodes: OEIS A003024.
    dags = np.log(1_213_442_454_842_881)
    assert graph_dp.sums(tables).log_total == pytest.approx(dags, rel=1e-13)
    pairs = np.log(factorial(d)) + d * (d - 1) / 2 * np.log(2)
    assert order_dp.sums(tables).log_total == pytest.approx(pairs, rel=1e-13)


@pytest.mark.parametrize("spread", [0.5, 20.0, 2000.0])
def test_cancellation_stays_bounded(seed, spread):
    # Adding up by layers has no negative term, so it shows what inclusion-exclusion loses.
    d = 8
    sums = graph_dp.sums(random_tables(seed, d, spread, 0.1))
    layers, ternary = graph_dp._layer_sums(sums), graph_dp._ternary(d)
    by_layers = np.array(
        [layers[ternary[u] + ternary[bitsets.subsets_of(u)]].sum() for u in range(2**d)]
    )
    possible = sums.scale > -np.inf
    np.testing.assert_allclose(sums.ratio[possible], by_layers[possible], rtol=1e-10)
    np.testing.assert_allclose(sums.nondescendants.sum(axis=1), 1, atol=1e-10)


def test_lost_precision_is_noticed(seed):
    sums = graph_dp.sums(random_tables(seed, 5, 1.0))
    noise = np.random.default_rng(seed).normal(1, 1e-3, 32)
    with pytest.raises(InputError, match="order-modular"):
        _ = dataclasses.replace(sums, ratio=sums.ratio * noise).nondescendants


@both
def test_draws_follow_the_probabilities(modular, seed):
    tables, num = random_tables(seed, 4, 1.5, 0.1), 40_000
    _, probability = enumerated(tables, modular)
    drawn = modular.draw(np.random.default_rng(seed), modular.sums(tables), num)
    index = {dag.tobytes(): position for position, dag in enumerate(all_dags(4))}
    counts = np.bincount([index[dag.tobytes()] for dag in drawn], minlength=543)
    assert not counts[probability == 0].any()
    often = probability * num > 8
    rest = [counts[~often].sum()], [num * probability[~often].sum() + 1e-300]
    observed = np.append(counts[often], rest[0])
    expected = np.append(num * probability[often], rest[1])
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@both
def test_draws_agree_with_the_marginals_of_more_variables(modular, seed):
    tables, num = random_tables(seed, 7, 2.0, 0.2), 4000
    sums = modular.sums(tables)
    drawn = modular.draw(np.random.default_rng(seed), sums, num)
    assert graphs.is_acyclic(drawn).all()
    for exact, found in [
        (exact_tables.edges(modular.parent_sets(sums)), drawn.mean(axis=0)),
        (modular.ancestors(sums), graphs.ancestors(drawn).mean(axis=0)),
    ]:
        error = np.sqrt(np.maximum(exact * (1 - exact), 1e-4) / num)
        assert np.all(np.abs(exact - found) < 4.5 * error)


@both
def test_relabelling_the_variables_relabels_the_answer(modular, seed):
    d, order = 6, np.array([4, 2, 0, 5, 1, 3])
    tables = random_tables(seed, d, 3.0)
    sets = bitsets.members(d)[:, np.argsort(order)] @ 2 ** np.arange(d)
    moved = tables[order][:, sets]
    expected, found = modular.sums(tables), modular.sums(moved)
    assert found.log_total == pytest.approx(expected.log_total)
    np.testing.assert_allclose(
        modular.ancestors(found), modular.ancestors(expected)[np.ix_(order, order)], atol=1e-12
    )


@both
def test_tables_that_leave_no_graph_are_refused(modular):
    tables = np.full((3, 8), -np.inf)
    tables[0, 0b010], tables[1, 0b001], tables[2, 0] = 0.0, 0.0, 0.0  # 0 needs 1 and 1 needs 0
    with pytest.raises(InputError, match="leave none"):
        modular.sums(tables)


def test_sums_below_and_above_a_set_are_the_plain_ones(seed):
    values = 500 * np.random.default_rng(seed).standard_normal((2, 16))
    values[0, 5] = -np.inf
    every = np.arange(16)
    sums = (bitsets.log_subset_sums(values), bitsets.log_superset_sums(values))
    for row, below, above in zip(values, *sums, strict=True):
        for s in every:
            assert below[s] == pytest.approx(logsumexp(row[every & s == every]))
            assert above[s] == pytest.approx(logsumexp(row[every & s == s]))


def test_sums_of_more_sets_than_are_worked_on_at_once_are_those_of_each(seed, monkeypatch):
    """In pieces of 8 and of all sets: bit by bit the same numbers, and so the same bytes."""
    values = 500 * np.random.default_rng(seed).standard_normal((3, 2, 128))
    values[0, :, ::3] = values[1, 0] = -np.inf
    whole = bitsets.log_subset_sums(values)
    monkeypatch.setattr(bitsets, "_PIECE", 8)
    np.testing.assert_array_equal(bitsets.log_subset_sums(values), whole)
    *_, last = bitsets.log_subset_sum_stages(values)
    np.testing.assert_array_equal(last, whole)
    by_pairs = values.copy()
    for s in range(128):
        inside = np.arange(128) & s == np.arange(128)
        by_pairs[..., s] = logsumexp(values[..., inside], axis=-1)
    np.testing.assert_allclose(whole, by_pairs, rtol=1e-13)


def test_orders_are_counted(seed):
    dags = all_dags(4)[::7]
    backward = np.tril_indices(4)
    agree = [
        ~dags[:, order][:, :, order][:, *backward].any(axis=1)
        for order in map(list, permutations(range(4)))
    ]
    np.testing.assert_array_equal(num_linear_extensions_each(dags), np.sum(agree, axis=0))
    cycle = np.array([[[0, 1], [1, 0]]])
    assert num_linear_extensions_each(cycle).tolist() == [0]
