"""Markov equivalence: v-structures, essential graphs (CPDAGs) and classes."""

# numpy's stubs leave the types of arange and searchsorted unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import numpy as np
from jaxtyping import Bool, Int, Int8, Shaped

from bayesdag.graphs.adjacency import flat, skeleton, topological_order, unique_graphs
from bayesdag.types import Array, Graph, Graphs


def v_structures(graph: Graph) -> list[tuple[int, int, int]]:
    """All (i, j, k) with i -> j <- k, i < k, and no edge between i and k; sorted."""
    edges, joined = np.asarray(graph) != 0, skeleton(graph)
    apart = np.triu(~joined, k=1)
    found = edges[:, :, None] & edges.T[None, :, :] & apart[:, None, :]
    return [(i, j, k) for i, j, k in np.argwhere(found).tolist()]


def cpdag(graphs: Graphs) -> Int8[np.ndarray, "*batch d d"]:
    """Completed partially directed graph of each DAG: all that observation can tell.

    Directed edges are compelled (the same in every Markov equivalent DAG); where both
    entries are 1 the edge is undirected.

    Chickering's labelling, node by node in topological order. Let x be the last parent
    of y. If the other parents of y are parents of x, and the compelled parents of x are
    parents of y, then y inherits exactly those compelled edges; otherwise every edge
    into y is compelled.

    References:
        Chickering (1995), A transformational characterization of equivalent Bayesian
        network structures, UAI.
    """
    edges, batch = flat(graphs)
    order = topological_order(edges)
    sorted_edges = np.take_along_axis(edges, order[:, :, None], axis=1)
    sorted_edges = np.take_along_axis(sorted_edges, order[:, None, :], axis=2)
    compelled = _compelled_parents(np.ascontiguousarray(np.swapaxes(sorted_edges, 1, 2)))
    place = np.argsort(order, axis=1)
    compelled = np.take_along_axis(compelled, place[:, :, None], axis=1)
    compelled = np.take_along_axis(compelled, place[:, None, :], axis=2)
    reversible = edges & ~np.swapaxes(compelled, 1, 2)
    essential = edges | np.swapaxes(reversible, 1, 2)
    return essential.astype(np.int8).reshape(*batch, *edges.shape[1:])


def _compelled_parents(parents: np.ndarray) -> np.ndarray:
    """Compelled part of `parents[graph, child, parent]`, nodes in topological order."""
    num, d = parents.shape[:2]
    rows: np.ndarray = np.arange(num)
    compelled = np.zeros_like(parents)
    for child in range(d):
        own = parents[:, child]
        last = d - 1 - np.argmax(own[:, ::-1], axis=1)
        inherited = compelled[rows, last]
        others = own.copy()
        others[rows, last] = False
        inherits = ~np.any(others & ~parents[rows, last], axis=1)
        inherits &= ~np.any(inherited & ~own, axis=1)
        compelled[:, child] = np.where(inherits[:, None], inherited, own)
    return compelled


def same_class(
    first: Shaped[Array, "*#batch d d"], second: Shaped[Array, "*#batch d d"]
) -> Bool[np.ndarray, "..."]:
    """True where two DAGs are Markov equivalent: no observation can tell them apart.

    Leading dimensions broadcast, so one graph may be compared with many.
    """
    return np.asarray(np.all(cpdag(first) == cpdag(second), axis=(-1, -2)))


def equivalence_classes(
    graphs: Graphs,
) -> tuple[Int8[np.ndarray, "u d d"], Int[np.ndarray, "*batch"]]:
    """The distinct CPDAGs, and for each DAG the index of its class among them."""
    distinct, index = unique_graphs(graphs)
    classes, class_of = unique_graphs(cpdag(distinct))
    return classes, class_of[index]
