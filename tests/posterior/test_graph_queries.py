"""Probabilities of graph features, classes and single graphs, against plain definitions."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import graphs
from bayesdag.errors import InputError
from bayesdag.posterior import estimates, graph_queries
from tests.posteriors import linear, random_dags, random_linear, table

seeds = st.integers(0, 2**31)


def weighted(posterior, fact):
    """Σ weight · fact(graph), one draw at a time."""
    pairs = zip(
        posterior.weights.reshape(-1),
        posterior.graphs.reshape(-1, posterior.num_variables, posterior.num_variables),
        strict=True,
    )
    return sum(weight * np.asarray(fact(graph), dtype=float) for weight, graph in pairs)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_probabilities_are_weighted_shares_of_the_draws(seed):
    posterior = random_linear(seed)
    for answer, fact in [
        (posterior.edge_probabilities(), lambda graph: graph),
        (posterior.path_probabilities(), graphs.ancestors),
        (posterior.markov_blanket_probabilities(), graphs.markov_blankets),
    ]:
        np.testing.assert_allclose(answer.to_numpy(), weighted(posterior, fact), atol=1e-12)
        assert list(answer.index) == list(answer.columns) == list(posterior.names)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_relabelling_the_nodes_relabels_the_answer(seed):
    posterior = random_linear(seed)
    order = np.random.default_rng(seed).permutation(4)
    moved = posterior.graphs[:, :, order][:, :, :, order]
    for question in (graph_queries.edge_probabilities, graph_queries.path_probabilities):
        there = question(moved, posterior.weights).value
        here = question(posterior.graphs, posterior.weights).value
        np.testing.assert_allclose(there, here[np.ix_(order, order)], atol=1e-12)


def test_exact_marginals_are_preferred_and_have_no_error(seed):
    exact = {"edge": np.full((4, 4), 0.25), "ancestor": np.full((4, 4), 0.5)}
    posterior = random_linear(seed, marginals=exact)
    value, error = posterior.edge_probabilities(with_error=True)
    assert (value.to_numpy() == 0.25).all()
    assert (error.to_numpy() == 0).all()
    assert (posterior.path_probabilities().to_numpy() == 0.5).all()
    assert not (posterior.markov_blanket_probabilities().to_numpy() == 0.25).any()


def test_the_error_of_a_probability_is_its_spread_over_repetitions(seed):
    """Sticky chains: a graph is kept with probability 0.9, so errors are larger than iid."""
    rng = np.random.default_rng(seed)
    stay = rng.random((100, 4, 400)) < 0.9
    fresh = rng.random((100, 4, 400)) < 0.3
    last = np.maximum.accumulate(np.where(~stay, np.arange(400), 0), axis=2)
    edge = np.take_along_axis(fresh, last, axis=2)
    weights = np.full((4, 400), 1 / 1600)
    found = [estimates.probability(values, weights, with_error=True) for values in edge]
    spread = np.std([f.value for f in found])
    stated = np.array([f.error for f in found])
    assert spread > 3 * np.sqrt(0.3 * 0.7 / 1600)
    assert abs(np.mean(stated) / spread - 1) < 4 / np.sqrt(2 * len(found)) + 0.1


def test_the_error_under_unequal_weights_is_its_spread_over_repetitions(seed):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(500, 1, 300))
    weights /= weights.sum(axis=(1, 2), keepdims=True)
    edge = rng.random((500, 1, 300)) < 0.4
    found = [
        estimates.probability(e, w, with_error=True) for e, w in zip(edge, weights, strict=True)
    ]
    spread = np.std([f.value for f in found])
    assert np.mean([f.error for f in found]) == pytest.approx(spread, rel=4 / np.sqrt(1000))


def test_an_edge_never_drawn_still_has_an_error():
    weights = np.full((2, 50), 0.01)
    found = estimates.probability(np.zeros((2, 50)), weights, with_error=True)
    assert found.value == 0
    assert 0.005 < found.error < 0.02


def test_chains_that_disagree_make_a_large_error():
    split = np.repeat([[0.0], [1.0], [0.0], [1.0]], 100, axis=1)
    found = estimates.probability(split, np.full((4, 100), 1 / 400), with_error=True)
    assert found.error > 0.15


def test_v_structures_are_listed_with_their_probability(seed):
    posterior = random_linear(seed, num_draws=60)
    listed = posterior.v_structures(at_least=0.0)
    for row in listed.itertuples(index=False):
        i, j, k = (posterior.names.index(name) for name in (row.left, row.middle, row.right))  # pyright: ignore[reportAttributeAccessIssue]
        share = weighted(posterior, lambda g, t=(i, j, k): t in graphs.v_structures(g))
        assert row.probability == pytest.approx(share)  # pyright: ignore[reportAttributeAccessIssue]
        assert row.error > 0  # pyright: ignore[reportAttributeAccessIssue]
    assert listed["probability"].is_monotonic_decreasing
    assert (posterior.v_structures(at_least=0.2)["probability"] >= 0.2).all()  # pyright: ignore[reportGeneralTypeIssues]


def test_a_predicate_sees_a_graph_with_column_names(seed):
    posterior = random_linear(seed)
    share = posterior.probability(lambda graph: networkx.has_path(graph, "a", "c"))
    assert share == pytest.approx(posterior.path_probabilities().loc["a", "c"])
    value, error = posterior.probability(lambda graph: graph.in_degree("b") == 0, with_error=True)  # pyright: ignore[reportGeneralTypeIssues]
    assert value == pytest.approx(weighted(posterior, lambda g: g[:, 1].sum() == 0))
    assert error > 0


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_equivalence_classes_collect_the_mass_of_their_members(seed):
    posterior = random_linear(seed, d=3, num_draws=60)
    classes = posterior.equivalence_classes()
    assert classes.mass.sum() == pytest.approx(1)
    assert (np.diff(classes.mass) <= 1e-9).all()
    own = graphs.cpdag(posterior.graphs)
    for cpdag, mass in zip(classes.cpdags, classes.mass, strict=True):
        assert mass == pytest.approx(posterior.weights[(own == cpdag).all(axis=(2, 3))].sum())
    assert classes.num_graphs.sum() == len(graphs.unique_graphs(posterior.graphs)[0])


def test_only_colliders_compel_a_direction():
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    fork = np.array([[0, 0, 0], [1, 0, 1], [0, 0, 0]])
    collider = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    stack = np.array([[chain, fork, collider, collider]], dtype=np.int8)
    posterior = linear(stack, table(np.random.default_rng(0), 50, 3))
    classes = posterior.equivalence_classes()
    assert classes.mass.tolist() == [0.5, 0.5]
    compelled = classes.compelled()
    assert compelled.loc["a", "b"] == compelled.loc["c", "b"] == 0.5
    assert compelled.loc["b", "a"] == compelled.loc["b", "c"] == 0
    assert set(classes.table()["edges"]) == {"a — b, b — c", "a → b, c → b"}


def test_the_most_probable_graph_is_the_heaviest_or_the_best(seed):
    rng = np.random.default_rng(seed)
    kinds = random_dags(rng, (3,), 4)
    stack = kinds[[0, 1, 1, 2]][None]
    posterior = linear(stack, table(rng, 100, 4))
    posterior.stats["log_joint"][:] = [[0.0, 1.0, 1.0, 9.0]]
    frequent, best = posterior.most_probable_graph(), posterior.most_probable_graph("log_joint")
    order = list(posterior.names)
    np.testing.assert_array_equal(networkx.to_numpy_array(frequent, order, weight=None), kinds[1])
    np.testing.assert_array_equal(networkx.to_numpy_array(best, order, weight=None), kinds[2])
    with pytest.raises(InputError, match="log_joint"):
        posterior.most_probable_graph("luck")


@given(seed=seeds, d=st.integers(2, 4), threshold=st.sampled_from([0.2, 0.5, 0.7]))
@settings(max_examples=40, deadline=None)
def test_the_consensus_is_the_best_dag_of_all(seed, d, threshold):
    matrix = np.random.default_rng(seed).random((d, d)) * (1 - np.eye(d))
    every = graphs.all_dags(d)
    gains = (every * (matrix - threshold)).sum(axis=(1, 2))
    found = graph_queries.consensus_graph(matrix, threshold)
    assert graphs.is_acyclic(found)
    assert (found * (matrix - threshold)).sum() == pytest.approx(gains.max())


def test_the_consensus_of_a_large_knot_is_a_dag_with_the_strong_edges(seed):
    d = 30
    matrix = 0.55 + 0.1 * np.random.default_rng(seed).random((d, d))
    np.fill_diagonal(matrix, 0)
    matrix[np.arange(d - 1), np.arange(1, d)] = 0.9
    found = graph_queries.consensus_graph(matrix)
    assert graphs.is_acyclic(found)
    assert found[np.arange(d - 1), np.arange(1, d)].all()
    assert found.sum() == d * (d - 1) / 2


def test_the_median_graph_keeps_what_is_more_probable_than_not(seed):
    posterior = random_linear(seed)
    kept = posterior.median_graph()
    probability = posterior.edge_probabilities()
    assert all(probability.loc[edge] > 0.5 for edge in kept.edges)
    assert kept.number_of_edges() == (probability.to_numpy() > 0.5).sum()
    assert all(
        kept.edges[edge]["probability"] == pytest.approx(probability.loc[edge])
        for edge in kept.edges
    )


def test_unknown_names_are_refused_with_the_nearest(seed):
    posterior = random_linear(seed)
    with pytest.raises(InputError, match="no column is called 'z'"):
        posterior.adjustment_sets("a", "z")
    with pytest.raises(InputError, match="both 'a'"):
        posterior.effect("a", "a")


def test_a_hundred_variables_are_quick_to_summarise(seed):
    rng = np.random.default_rng(seed)
    stack = random_dags(rng, (4, 250), 100, p=0.03)
    weights = np.full((4, 250), 1e-3)
    assert graph_queries.path_probabilities(stack, weights).value.shape == (100, 100)
    assert graph_queries.equivalence_classes(stack, weights, [str(i) for i in range(100)]).mass.size
