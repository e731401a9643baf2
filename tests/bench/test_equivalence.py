"""Posteriors compared by equivalence classes: reversals agree, missing edges do not."""

import numpy as np

from bayesdag.bench.equivalence import compare_classes
from bayesdag.bench.judging import undefined_directions
from tests.posteriors import linear, table

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
COLLIDER = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=np.int8)
DATA = table(np.random.default_rng(0), 50, 3)


def posterior(*graphs: np.ndarray):
    return linear(np.stack(graphs)[None], DATA)


def test_equivalent_graphs_agree_and_sure_directions_are_counted():
    mixed = posterior(CHAIN, CHAIN.T.copy())
    found = compare_classes(posterior(CHAIN), mixed, CHAIN)
    assert found["class_agreement"] == [3, 3]
    assert found["reversible_sure"] == [2, 2]
    assert found["reversible_sure_exact"] == [2, 0]


def test_a_compelled_edge_that_the_other_calls_reversible_is_no_agreement():
    found = compare_classes(posterior(CHAIN), posterior(COLLIDER), COLLIDER)
    assert found["class_agreement"] == [3, 1]
    assert found["reversible_sure"] == [0, 0]  # a collider has no reversible edge


def test_an_edge_that_only_one_has_is_no_agreement_and_no_reversible_edge():
    single = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=np.int8)
    found = compare_classes(posterior(single), posterior(CHAIN), CHAIN)
    assert found["class_agreement"] == [3, 2]
    assert found["reversible_sure"][0] == 1


def test_directions_are_judged_where_none_is_right_and_the_two_are_adjacent():
    unknown = np.zeros((3, 3), dtype=bool)
    unknown[0, 1] = unknown[1, 0] = unknown[1, 2] = unknown[2, 1] = True
    edge = np.array([[0, 0.97, 0.9], [0.02, 0, 0.3], [0, 0.1, 0]])
    assert undefined_directions(edge, unknown) == [1, 1]
    edge[0, 1] = edge[1, 0] = 0.5
    assert undefined_directions(edge, unknown) == [1, 0]
    assert undefined_directions(edge, None) == [0, 0]
