"""DAGs drawn from a class: each with the same probability, and none outside of it."""

import numpy as np
import pytest
from scipy.stats import chisquare

from bayesdag import graphs
from bayesdag.graphs.class_members import (
    components,
    member_that_starts_with,
    row_masks,
    uniform_member,
)


def members(cpdag: np.ndarray) -> np.ndarray:
    """All DAGs of a class, by enumeration."""
    every = graphs.all_dags(len(cpdag))
    return every[(graphs.cpdag(every) == cpdag).all(axis=(1, 2))]


def undirected(edges: list[tuple[int, int]], d: int) -> np.ndarray:
    matrix = np.zeros((d, d), dtype=np.int8)
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1
    return matrix


CLASSES = {
    "path": undirected([(0, 1), (1, 2), (2, 3)], 4),
    "complete": undirected([(i, j) for i in range(4) for j in range(i)], 4),
    "triangle with a tail": undirected([(0, 1), (1, 2), (0, 2), (2, 3)], 4),
    "two triangles": undirected([(0, 1), (1, 2), (0, 2), (1, 3), (2, 3)], 4),
    "fan": undirected([(4, 0), (4, 1), (4, 2), (4, 3), (0, 1), (1, 2), (2, 3)], 5),
    "collider and a pair": graphs.cpdag(
        np.array([[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0] * 5, [0, 0, 0, 0, 1], [0] * 5], np.int8)
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_dag_of_a_class_is_drawn_equally_often(name, seed):
    cpdag, rng, num = CLASSES[name], np.random.default_rng(seed), 1500
    drawn = np.stack([uniform_member(rng, cpdag) for _ in range(num)])
    assert (graphs.cpdag(drawn) == cpdag).all()
    distinct, which = graphs.unique_graphs(drawn)
    counts = np.bincount(which)
    assert len(distinct) == len(members(cpdag))
    assert chisquare(counts).pvalue > 1e-5


def test_draws_of_random_classes_are_members(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        d = int(rng.integers(2, 12))
        dag = np.triu(rng.random((d, d)) < 0.4, 1).astype(np.int8)
        cpdag = graphs.cpdag(dag)
        np.testing.assert_array_equal(graphs.cpdag(uniform_member(rng, cpdag)), cpdag)
        np.testing.assert_array_equal(graphs.cpdag(member_that_starts_with(cpdag)), cpdag)


def test_a_start_becomes_the_beginning():
    cpdag = CLASSES["two triangles"]
    graph = member_that_starts_with(cpdag, [3, 1])
    assert graph[:, 3].sum() == 0
    np.testing.assert_array_equal(np.flatnonzero(graph[:, 1]), [3])
    np.testing.assert_array_equal(graphs.cpdag(graph), cpdag)


def test_components_have_more_than_one_node():
    masks = row_masks(undirected([(0, 3), (1, 2)], 6))
    assert components(masks) == [0b1001, 0b0110]
