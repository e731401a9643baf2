"""Greedy equivalence search: equal to a package's answers, and every step is what it says."""

import json
from pathlib import Path

import numpy as np
import pytest

from bayesdag import graphs
from bayesdag.baselines import ges
from bayesdag.graphs.class_members import member_that_starts_with
from bayesdag.methods.bootstrap_ges import correlations

GOLDEN = json.loads((Path(__file__).parent / "ges_package.json").read_text())


def rows(seed: int) -> np.ndarray:
    """Linear Gaussian rows of a random DAG with four to eight variables."""
    rng = np.random.default_rng(seed)
    d, num_rows = int(rng.integers(4, 9)), int(rng.choice([100, 300, 1000]))
    order = rng.permutation(d)
    weights = np.triu(rng.uniform(0.4, 1.2, (d, d)) * rng.choice([-1, 1], (d, d)), 1)
    weights *= rng.random((d, d)) < rng.uniform(0.2, 0.6)
    weights = weights[np.ix_(order, order)]
    noise = rng.normal(size=(num_rows, d)) * rng.uniform(0.5, 1.5, d)
    return noise @ np.linalg.inv(np.eye(d) - weights)


def score_of(x: np.ndarray) -> ges.GaussianBIC:
    return ges.GaussianBIC(correlations(x), len(x))


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_the_class_is_that_of_a_package_on_a_hundred_data_sets(first):
    """`ges` of J. Gamella, from PyPI, run on the same rows."""
    for seed in range(first, first + 25):
        x = rows(seed)
        d = x.shape[1]
        bits = np.frombuffer(bytes.fromhex(GOLDEN["cpdags"][seed]), dtype=np.uint8)
        theirs = np.unpackbits(bits, count=d * d).reshape(d, d)
        np.testing.assert_array_equal(ges.search(score_of(x)), theirs, err_msg=f"seed {seed}")


def test_the_score_of_a_graph_is_its_bic():
    x = rows(3)
    graph = member_that_starts_with(ges.search(score_of(x)))

    def bic(graph: np.ndarray) -> float:
        total = 0.0
        for node in range(x.shape[1]):
            design = np.column_stack([np.ones(len(x)), x[:, graph[:, node] != 0]])
            left = x[:, node] - design @ np.linalg.lstsq(design, x[:, node], rcond=None)[0]
            total -= 0.5 * len(x) * np.log(left @ left)
        return total - 0.5 * np.log(len(x)) * graph.sum()

    expected = bic(graph) - bic(np.zeros_like(graph))
    assert score_of(x).total(graph) == pytest.approx(expected)


@pytest.mark.parametrize("phase", [ges.Insertions, ges.Deletions, ges.Turns])
def test_every_valid_move_ends_in_a_class_whose_score_differs_by_its_gain(phase, seed):
    """On random classes, for every move and not only those that gain."""
    rng, seen = np.random.default_rng(seed), 0
    for _ in range(60):
        d = int(rng.integers(3, 7))
        dag = np.triu(rng.random((d, d)) < rng.uniform(0.2, 0.9), 1).astype(np.int8)
        order = rng.permutation(d)
        state = ges.EquivalenceClass(graphs.cpdag(dag[np.ix_(order, order)]))
        score = score_of(rng.normal(size=(200, d)) @ rng.normal(size=(d, d)))
        before = score.total(member_that_starts_with(state.cpdag))
        found = phase(score)
        for node in range(d):
            for move in [m for m in found.moves(state, node) if found.is_valid(state, m)]:
                seen += 1
                after = found.applied(state, move)
                assert graphs.is_acyclic(after)
                assert score.total(after) - before == pytest.approx(move.gain, abs=1e-6)
    assert seen > 50


def test_the_search_ends_where_no_step_gains_and_no_single_edge_does():
    x = rows(11)
    score = score_of(x)
    found = ges.search(score)
    state = ges.EquivalenceClass(found)
    for phase in (ges.Insertions, ges.Deletions, ges.Turns):
        assert phase(score).best(state) is None
    graph = member_that_starts_with(found)
    best = score.total(graph)
    for cause, effect in np.argwhere(graph):
        fewer = graph.copy()
        fewer[cause, effect] = 0
        assert score.total(fewer) <= best


def test_columns_that_are_copies_of_each_other_end_in_one_edge():
    x = rows(0)
    x = np.column_stack([x, x[:, 0]])
    graph = member_that_starts_with(ges.search(score_of(x)))
    assert graphs.is_acyclic(graph)
    assert graph[0, -1] + graph[-1, 0] == 1
