"""Adjustment sets: d-separation against networkx, validity against regression itself."""

from itertools import chain, combinations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import graphs
from bayesdag.errors import InputError
from bayesdag.posterior import adjustment
from tests.posteriors import linear, random_dags, random_linear, table

seeds = st.integers(0, 2**31)


def subsets(nodes):
    nodes = list(nodes)
    return chain.from_iterable(combinations(nodes, k) for k in range(len(nodes) + 1))


def as_mask(nodes, d):
    mask = np.zeros(d, dtype=bool)
    mask[list(nodes)] = True
    return mask


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_separation_agrees_with_networkx(seed):
    rng = np.random.default_rng(seed)
    stack = random_dags(rng, (6,), 6, p=0.35)
    first, second, *others = rng.permutation(6).tolist()
    for chosen in subsets(others):
        found = adjustment.are_separated(stack, first, second, as_mask(chosen, 6))
        expected = [
            networkx.is_d_separator(networkx.DiGraph(graph), {first}, {second}, set(chosen))
            for graph in stack
        ]
        assert found.tolist() == expected


def regression_finds_the_effect(graph, rng, cause, outcome, chosen) -> bool:
    """Population regression of the outcome on the cause and the set, for random weights."""
    d = len(graph)
    weights = graph * rng.uniform(0.5, 2, (d, d)) * rng.choice([-1, 1], (d, d))
    total = np.linalg.inv(np.eye(d) - weights)
    covariance = total.T @ np.diag(rng.uniform(0.5, 2, d)) @ total
    used = [cause, *chosen]
    slope = np.linalg.solve(covariance[np.ix_(used, used)], covariance[used, outcome])[0]
    return bool(np.isclose(slope, total[cause, outcome], atol=1e-8))


@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_a_set_is_valid_exactly_when_regression_finds_the_effect(seed):
    """Sound and complete: weights drawn at random cancel with probability zero."""
    rng = np.random.default_rng(seed)
    stack = random_dags(rng, (4,), 5, p=0.5)
    cause, outcome, *others = rng.permutation(5).tolist()
    sets = list(subsets(others))
    masks = np.array([as_mask(chosen, 5) for chosen in sets])
    valid = adjustment.is_valid(stack, cause, outcome, masks)
    for place, chosen in enumerate(sets):
        expected = [regression_finds_the_effect(g, rng, cause, outcome, chosen) for g in stack]
        assert valid[place].tolist() == expected


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_every_graph_proposes_a_set_that_is_valid_in_it(seed):
    """The parents of the cause are valid unless the outcome is one of them."""
    rng = np.random.default_rng(seed)
    graph = random_dags(rng, (1, 1), 5, p=0.5)
    posterior = linear(graph, table(rng, 50, 5))
    if graphs.ancestors(graph)[0, 0, 4, 0]:
        return
    listed = posterior.adjustment_sets("a", "e")
    assert listed.loc[0, "probability"] == 1
    assert listed["probability"].is_monotonic_decreasing


def test_the_probability_of_a_set_is_the_mass_of_the_graphs_in_which_it_is_valid(seed):
    posterior = random_linear(seed, d=5)
    value, error = posterior.adjustment_probability("a", "b", ["c", "d"], with_error=True)  # pyright: ignore[reportGeneralTypeIssues]
    flat = posterior.graphs.reshape(-1, 5, 5)
    valid = adjustment.is_valid(flat, 0, 1, as_mask([2, 3], 5)[None])[0]
    assert value == pytest.approx(posterior.weights.reshape(-1)[valid].sum())
    assert error > 0
    listed = posterior.adjustment_sets("a", "b", limit=5)
    assert len(listed) <= 5
    for row in listed.itertuples(index=False):
        assert row.probability == pytest.approx(posterior.adjustment_probability("a", "b", row[0]))  # pyright: ignore[reportAttributeAccessIssue]


def test_a_confounder_must_be_adjusted_for_and_a_mediator_must_not():
    graph = np.zeros((1, 1, 4, 4), dtype=np.int8)
    graph[0, 0, [0, 0, 1, 3], [1, 2, 3, 2]] = 1  # a confounds b and c; b -> d -> c
    posterior = linear(graph, table(np.random.default_rng(0), 50, 4))
    assert posterior.adjustment_probability("b", "c", []) == 0
    assert posterior.adjustment_probability("b", "c", ["a"]) == 1
    assert posterior.adjustment_probability("b", "c", ["a", "d"]) == 0
    assert posterior.adjustment_sets("b", "c").loc[0, "adjustment set"] == ("a",)


def test_the_pair_itself_cannot_be_adjusted_for():
    with pytest.raises(InputError, match="'a' or 'b'"):
        random_linear(0).adjustment_probability("a", "b", ["b"])
