"""Drawings of DAGs: causes above, nothing overlaps, the same graph the same drawing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.graphs.layout import layered_layout
from tests.posteriors import random_dags


def crossings(graph: np.ndarray, places: np.ndarray) -> int:
    """Pairs of straight edges that cross, by the definition."""

    def side(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    edges = [tuple(map(int, e)) for e in np.argwhere(graph)]
    count = 0
    for k, (a, b) in enumerate(edges):
        for c, d in edges[k + 1 :]:
            if len({a, b, c, d}) == 4:
                p, q, r, s = places[[a, b, c, d]]
                count += side(p, q, r) != side(p, q, s) and side(r, s, p) != side(r, s, q)
    return count


@given(seed=st.integers(0, 10_000), d=st.integers(1, 9), density=st.floats(0, 1))
def test_causes_stand_above_and_nothing_overlaps(seed, d, density):
    rng = np.random.default_rng(seed)
    graph = random_dags(rng, (), d, density)
    widths = rng.uniform(0.5, 3, d).tolist()
    drawing = layered_layout(graph, widths, gap=0.5, layer_height=2.0)
    x, y = drawing.places.T
    for i, j in np.argwhere(graph):
        assert y[i] < y[j]
        bends = drawing.bends.get((int(i), int(j)), np.zeros((0, 2)))
        assert len(bends) == 2 * (round((y[j] - y[i]) / 2) - 1)
        assert (np.diff([y[i], *bends[:, 1], y[j]]) > 0).all()
        assert (bends[::2, 0] == bends[1::2, 0]).all()  # straight past the nodes of a layer
    for i in range(d):
        for j in range(i):
            if y[i] == y[j]:
                assert abs(x[i] - x[j]) >= (widths[i] + widths[j]) / 2 + 0.5 - 1e-9
    again = layered_layout(graph, widths, gap=0.5, layer_height=2.0)
    np.testing.assert_array_equal(again.places, drawing.places)


def test_a_tree_is_drawn_without_crossings(seed):
    rng = np.random.default_rng(seed)
    graph = np.zeros((12, 12), dtype=np.int8)
    for child in range(1, 12):
        graph[(child - 1) // 2, child] = 1
    shuffled = rng.permutation(12)
    drawing = layered_layout(graph[np.ix_(shuffled, shuffled)])
    assert crossings(graph[np.ix_(shuffled, shuffled)], drawing.places) == 0


def test_a_long_edge_goes_round_the_node_between():
    graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    drawing = layered_layout(graph, [2.0, 2.0, 2.0])
    bends = drawing.bends[0, 2]
    assert (abs(bends[:, 0] - drawing.places[1, 0]) >= 1.0).all()  # half the width of the node
    assert bends[0, 1] < drawing.places[1, 1] < bends[1, 1]


def test_nodes_without_edges_stand_below_in_rows_as_wide_as_the_rest():
    graph = np.zeros((30, 30))
    graph[0, 1] = 1
    places = layered_layout(graph, [1.0] * 30).places
    assert places[2:, 1].min() > places[1, 1]
    assert np.ptp(places[:, 0]) < 20
