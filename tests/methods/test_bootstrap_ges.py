"""Bootstrapped greedy equivalence search: draws, weights, and runs that go on."""

import numpy as np
import pandas as pd
import pytest

from bayesdag import extend, fit, graphs
from bayesdag.errors import InputError
from bayesdag.methods.bootstrap_ges import BootstrapGES, correlations, posterior_weights
from tests.toys import TRUTH, toy_frame


def test_draws_are_spread_over_the_class_of_the_truth():
    posterior = fit(toy_frame(), BootstrapGES(num_samples=60), seed=1)
    same = graphs.same_class(posterior.graphs[0], TRUTH)
    assert same.mean() > 0.5
    assert len(graphs.unique_graphs(posterior.graphs[0][same])[0]) > 3


def test_weights_are_the_evidence_of_each_different_graph():
    posterior = fit(toy_frame(), BootstrapGES(num_samples=40, weighted=True), seed=1)
    distinct, which = graphs.unique_graphs(posterior.graphs[0])
    mass = np.bincount(which, weights=posterior.weights[0])
    evidence = np.full(len(distinct), -np.inf)
    evidence[which] = posterior.stats["log_joint"][0]
    expected = np.exp(evidence - np.logaddexp.reduce(evidence))
    np.testing.assert_allclose(mass, expected, atol=1e-12)
    assert "counts once" in posterior.provenance["notes"][0]


def test_a_graph_found_twice_counts_as_one_found_once():
    dags = graphs.all_dags(2)[[0, 1, 1]]
    np.testing.assert_allclose(posterior_weights(dags, np.zeros(3)), [0.5, 0.25, 0.25])


def test_a_larger_penalty_leaves_fewer_edges():
    few, many = (
        fit(toy_frame(), BootstrapGES(num_samples=10, penalty=p)).stats["num_edges"].mean()
        for p in (30.0, 0.5)
    )
    assert few < many
    with pytest.raises(InputError, match="penalty is -1"):
        BootstrapGES(penalty=-1.0)


def test_a_longer_run_begins_with_the_draws_of_a_shorter_one():
    short = fit(toy_frame(), BootstrapGES(num_samples=5), seed=2, keep_state=True)
    longer = extend(short, toy_frame(), 3)
    whole = fit(toy_frame(), BootstrapGES(num_samples=8), seed=2)
    np.testing.assert_array_equal(longer.graphs, whole.graphs)
    np.testing.assert_array_equal(longer.graphs[:, :5], short.graphs)
    weights = "mechanism", "weights"
    first, second = (p.params[weights[0]][weights[1]] for p in (longer, whole))
    np.testing.assert_array_equal(first, second)


def test_a_column_that_a_sample_left_constant_has_no_correlations():
    values = np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 1.0]])
    np.testing.assert_array_equal(correlations(values), np.eye(2))


def test_what_environments_change_is_no_edge_between_variables():
    """Two variables that one environment shifts correlate in pooled rows."""
    rng = np.random.default_rng(0)
    label = np.repeat(["control", "drug"], 200)
    shifted = rng.normal(size=(400, 3)) + 3.0 * np.outer(label == "drug", [1, 1, 0])
    frame = pd.DataFrame(shifted, columns=["a", "b", "c"]).assign(where=label)
    frame["c"] += frame["a"]
    pooled = fit(frame.drop(columns="where"), "bootstrap_ges", num_samples=10)
    posterior = fit(frame, "bootstrap_ges", environment="where", num_samples=10)
    linked = pooled.edge_matrix() + pooled.edge_matrix().T
    assert linked[0, 1] > 0.9
    edge = posterior.edge_matrix()
    assert edge[0, 1] + edge[1, 0] < 0.3
    assert edge[0, 2] + edge[2, 0] > 0.9
    targets = posterior.environment_targets().set_index("target")["probability"].to_dict()
    assert targets["a"] + targets["c"] > 0.9
    assert targets["b"] > 0.9
    assert not posterior.graphs[..., 3].any()
