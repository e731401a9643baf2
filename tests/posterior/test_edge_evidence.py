"""Edges that every draw has are ranked by the likelihood that is lost without them."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest

import bayesdag
from bayesdag.data import Dataset
from bayesdag.posterior import edge_evidence, graph_queries, linear_gaussian
from bayesdag.random import key_of
from bayesdag.report import page
from tests.posterior import test_contexts
from tests.posteriors import linear
from tests.toys import quick, toy_frame


def table(rng: np.random.Generator, num_rows: int) -> Dataset:
    """a and b, correlated, cause c; b much less than a. d follows from c alone."""
    a = rng.normal(size=num_rows)
    b = 0.8 * a + 0.6 * rng.normal(size=num_rows)
    c = 2.0 * a + 0.5 * b + rng.normal(size=num_rows)
    d = 0.7 * c + rng.normal(size=num_rows)
    return Dataset(np.column_stack([a, b, c, d]), ("a", "b", "c", "d"))


GRAPH = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=np.int8)
EDGES = np.argwhere(GRAPH)


def log_likelihood_ratio(data: Dataset, cause: int, effect: int) -> float:
    """n/2 log of the residual variances without and with the cause, by least squares."""
    values = data.values - data.values.mean(axis=0)
    parents = np.flatnonzero(GRAPH[:, effect])

    def left(columns):
        design = values[:, columns]
        fitted = design @ np.linalg.lstsq(design, values[:, effect], rcond=None)[0]
        return ((values[:, effect] - fitted) ** 2).sum()

    others = [int(p) for p in parents if p != cause]
    return 0.5 * data.num_rows * np.log(left(others) / left(parents))


def certain(seed: int, num_rows: int = 1000):
    data = table(np.random.default_rng(seed), num_rows)
    return data, linear(np.tile(GRAPH, (2, 20, 1, 1)), data, seed=seed)


def test_for_linear_functions_it_is_the_log_likelihood_ratio(seed, key):
    data, posterior = certain(seed)
    rows = np.full(len(EDGES), float(data.num_rows))
    repeats = np.array(
        [
            edge_evidence.lost_log_likelihood(k, posterior._ensemble, EDGES, rows)
            for k in jax.random.split(key, 20)
        ]
    )
    expected = [log_likelihood_ratio(data, int(i), int(j)) for i, j in EDGES]
    error = repeats.std(axis=0) / np.sqrt(len(repeats))
    # Functions are draws around the fitted ones, which costs about a tenth at this size.
    assert (np.abs(repeats.mean(axis=0) - expected) < 4 * error + 0.15 * np.array(expected)).all()


def test_ties_at_one_are_ranked_by_evidence_and_others_by_probability(seed):
    _, posterior = certain(seed)
    shown = posterior.edge_table(with_evidence=True)
    first = shown.head(4)
    assert first["probability"].to_numpy() == pytest.approx(1)
    assert list(first["evidence"]) == sorted(first["evidence"], reverse=True)
    assert tuple(shown.loc[3, ["source", "target"]]) == ("b", "c")
    assert np.isnan(shown["evidence"].to_numpy()[4:]).all()
    assert "evidence" not in posterior.edge_table()


def test_evidence_that_a_result_holds_is_not_computed_again(seed, tmp_path, monkeypatch):
    _, posterior = certain(seed)
    expected = posterior.edge_table(with_evidence=True)
    posterior.with_evidence().save(tmp_path / "result.nc")
    again = bayesdag.load(tmp_path / "result.nc")
    monkeypatch.setattr(edge_evidence, "matrix", None)
    pd.testing.assert_frame_equal(again.edge_table(with_evidence=True), expected)
    assert "b → c" in page.render(again)


def test_results_without_evidence_compute_it(seed, tmp_path):
    """Those of earlier versions, and those of methods that nobody has called `fit` for."""
    _, posterior = certain(seed)
    posterior.save(tmp_path / "result.nc")
    again = bayesdag.load(tmp_path / "result.nc")
    assert again.evidence is None
    expected = edge_evidence.matrix(posterior._ensemble, EDGES, posterior.summary)
    np.testing.assert_array_equal(again.evidence_matrix(), expected)


def test_an_edge_that_shares_its_probability_with_one_of_an_environment_only_is_not_ranked():
    graphs = np.tile(test_contexts.GRAPH, (1, 4, 1, 1))
    posterior = linear(graphs, test_contexts.data()).with_evidence()
    np.testing.assert_array_equal(np.isfinite(posterior.evidence_matrix()), graphs[0, 0])
    assert np.isnan(posterior.evidence_matrix(among_variables=True)).all()
    assert np.isnan(posterior.edge_columns(with_evidence=True)["evidence"]).all()


def test_rows_in_which_the_effect_was_set_do_not_count(seed):
    data, posterior = certain(seed)
    facts = data.summary()
    facts["columns"]["d"]["num_set"] = 900
    found = edge_evidence.matrix(posterior._ensemble, EDGES, facts)
    all_rows = edge_evidence.matrix(posterior._ensemble, EDGES, data.summary())
    assert found[2, 3] == pytest.approx(0.1 * all_rows[2, 3])
    assert found[0, 2] == all_rows[0, 2]
    assert np.isnan(found[3, 0])


def test_learned_functions_have_evidence_too():
    # The program of the contracts of methods, which need not be compiled again.
    method = dataclasses.replace(quick("bayesdag"), num_warmup=5)
    posterior = bayesdag.fit(toy_frame(), method)
    edges = np.argwhere(posterior.graphs.any(axis=(0, 1)))
    counted = np.full(len(edges), 300.0)
    found = edge_evidence.lost_log_likelihood(
        jax.random.key(0), posterior._ensemble, edges, counted
    )
    seen = np.isfinite(found)
    assert seen.any()
    assert (found[seen] >= 0).all()


def test_numbers_of_edges_share_their_programs(seed, monkeypatch):
    """Edges are filled up to a power of two, and each has its evidence as it would have alone."""
    monkeypatch.setattr(linear_gaussian, "applies", lambda model: False)
    _, posterior = certain(seed)
    asked = (key_of(seed), posterior._ensemble)
    every = edge_evidence.lost_log_likelihood(*asked, EDGES, np.full(4, 1000.0))
    program = edge_evidence._variance_lost.compiled  # pyright: ignore[reportFunctionMemberAccess]
    before = program._cache_size()
    three = edge_evidence.lost_log_likelihood(*asked, EDGES[:3], np.full(3, 1000.0))
    assert program._cache_size() == before
    np.testing.assert_allclose(three, every[:3], rtol=1e-5)


def test_only_probable_edges_that_share_their_probability_are_tied():
    matrix = np.array([[0, 1.0, 0.7], [0.2, 0, 1.0], [0.2, 0.3, 0]])
    assert graph_queries.tied_edges(matrix).tolist() == [[0, 1], [1, 2]]


def test_pairs_of_one_variable_are_found_and_listed_once(seed):
    matrix = np.array([[0, 0.5, 0.7], [0.5, 0, 0.0], [0.7, 0.0, 0]])
    names = ("a", "b", "c")
    every = graph_queries.pair_columns(matrix, names, symmetric=True)
    assert list(zip(*every.values(), strict=True)) == [("a", "c", 0.7), ("a", "b", 0.5)]
    own = graph_queries.pair_columns(matrix, names, "c", symmetric=True)
    assert list(zip(*own.values(), strict=True)) == [("c", "a", 0.7)]
    directed = graph_queries.pair_columns(matrix, names, "b", top=1)
    assert list(directed) == ["cause", "effect", "probability"]
    assert len(directed["cause"]) == 1
