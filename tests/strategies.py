"""Random graphs for property-based tests."""

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st


@st.composite
def digraphs(draw, max_nodes: int = 6, *, min_nodes: int = 1, loops: bool = False):
    """Any directed graph, cyclic or not; edges from a node to itself only with `loops`."""
    d = draw(st.integers(min_nodes, max_nodes))
    graph = draw(hnp.arrays(np.int8, (d, d), elements=st.integers(0, 1)))
    return graph if loops else graph * (1 - np.eye(d, dtype=np.int8))


@st.composite
def dags(draw, max_nodes: int = 6, *, min_nodes: int = 1):
    """Any DAG: a graph that only points upwards, with its nodes relabelled."""
    graph = draw(digraphs(max_nodes, min_nodes=min_nodes))
    order = np.array(draw(st.permutations(range(len(graph)))))
    return np.triu(graph, k=1)[np.ix_(order, order)]


@st.composite
def dag_batches(draw, max_nodes: int = 5, *, max_size: int = 6):
    """Several DAGs on the same nodes, shape (size, d, d)."""
    d = draw(st.integers(1, max_nodes))
    size = draw(st.integers(1, max_size))
    return np.stack([draw(dags(d, min_nodes=d)) for _ in range(size)])


@st.composite
def relabellings(draw, graphs):
    """A graph drawn from `graphs`, the same graph with its nodes renamed, and the renaming.

    `renamed[i, j] == graph[order[i], order[j]]`.
    """
    graph = draw(graphs)
    order = np.array(draw(st.permutations(range(len(graph)))))
    return graph, graph[np.ix_(order, order)], order
