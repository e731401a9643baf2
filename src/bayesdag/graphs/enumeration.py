"""All labelled DAGs of a few nodes, and the linear extensions of a DAG.

A linear extension is an order of the nodes in which every parent comes before its children.
"""

from collections.abc import Iterator
from functools import cache
from math import comb

import numpy as np
from jaxtyping import Float, Int8, Shaped

from bayesdag.errors import InputError
from bayesdag.graphs.adjacency import ancestors, topological_order
from bayesdag.graphs.bitsets import masks_of, members, members_of, parent_masks
from bayesdag.types import Array, Graph

MAX_STREAMED = 6  # 3 781 503 DAGs; with seven nodes there are 1 138 779 265
MAX_LISTED = 5  # 29 281 DAGs
MAX_COUNTED = 150  # nodes whose orders are counted: the recursion is as deep as they are many
MAX_SUBSETS = 1_000_000  # memory of the count: about 0.2 GB


def all_dags(d: int) -> Int8[np.ndarray, "num d d"]:
    """Every labelled DAG with `d` nodes, each once: 1, 3, 25, 543, 29 281 of them."""
    if d > MAX_LISTED:
        raise InputError(
            f"all_dags lists DAGs with at most {MAX_LISTED} nodes, not {d}; "
            f"iterate_dags streams up to {MAX_STREAMED}"
        )
    return np.concatenate(list(iterate_dags(d)))


def iterate_dags(d: int, batch: int = 4096) -> Iterator[Int8[np.ndarray, "b d d"]]:
    """Every labelled DAG with `d` nodes, each once, in pieces of `batch` (the last: fewer).

    A DAG on the first d - 1 nodes grows by a node with children C and parents P whenever
    no path leads from C to P; restricting a DAG to those nodes undoes it, so none repeats.
    """
    if not 1 <= d <= MAX_STREAMED:
        raise InputError(f"DAGs are enumerated for 1 to {MAX_STREAMED} nodes, not {d}")
    if d == 1:
        yield np.zeros((1, 1, 1), dtype=np.int8)
        return
    kept = np.zeros((0, d, d), dtype=np.int8)
    for smaller in iterate_dags(d - 1, batch=1024):
        kept = np.concatenate([kept, _with_one_more_node(smaller)])
        whole = len(kept) - len(kept) % batch
        yield from (kept[start : start + batch] for start in range(0, whole, batch))
        kept = kept[whole:]
    if len(kept):
        yield kept


def _with_one_more_node(dags: np.ndarray) -> np.ndarray:
    """Every DAG that has one of `dags` on all nodes but its last."""
    d = dags.shape[-1]
    subsets = members(d)
    below = (ancestors(dags) | np.eye(d, dtype=bool)).astype(np.float32)
    reached = subsets.astype(np.float32) @ below > 0  # (dag, C, node): C and its descendants
    blocked = reached.astype(np.float32) @ subsets.T.astype(np.float32) > 0
    dag, children, parents = np.nonzero(~blocked)
    grown = np.zeros((len(dag), d + 1, d + 1), dtype=np.int8)
    grown[:, :d, :d] = dags[dag]
    grown[:, d, :d] = subsets[children]
    grown[:, :d, d] = subsets[parents]
    return grown


def num_linear_extensions(graph: Graph) -> int:
    """Number of linear extensions of one DAG of any size.

    Dynamic programming over subsets: unconnected parts are counted apart and shuffled,
    and a connected part loses its possible first (or last) nodes, whichever are fewer.
    Trees are instant and 20 nodes with 40 edges take milliseconds, but the cost may reach
    2^d: beyond `MAX_SUBSETS` subsets the count is refused.
    """
    edges = np.asarray(graph) != 0
    topological_order(edges)  # refuses a cycle
    d = edges.shape[0]
    too_many = InputError(f"the orders of this graph with {d} nodes are too many to count")
    if d > MAX_COUNTED:
        raise too_many
    parents, children = masks_of(edges.T), masks_of(edges)

    @cache
    def count(nodes: int) -> int:
        if count.cache_info().currsize > MAX_SUBSETS:
            raise too_many
        part = _connected_part(nodes, parents, children)
        if part != nodes:
            shuffles = comb(nodes.bit_count(), part.bit_count())
            return shuffles * count(part) * count(nodes & ~part)
        ends = [
            [node for node in members_of(nodes) if not nodes & related[node]]
            for related in (parents, children)
        ]
        return sum(count(nodes & ~(1 << node)) for node in min(ends, key=len)) or 1

    return count(2**d - 1)


def num_linear_extensions_each(graphs: Shaped[Array, "b d d"]) -> Float[np.ndarray, " b"]:
    """Numbers of linear extensions of many small graphs; 0 with a cycle.

    Prefixes of orders, by dynamic programming over all 2^d sets, all graphs at once.
    """
    edges = np.asarray(graphs) != 0
    num, d = edges.shape[:2]
    parents = parent_masks(edges)
    counts = np.zeros((2**d, num))
    counts[0] = 1
    for prefix in range(2**d - 1):
        for node in members_of(~prefix & (2**d - 1)):
            ready = parents[:, node] & ~prefix == 0
            counts[prefix | 1 << node] += counts[prefix] * ready
    return counts[-1]


def _connected_part(nodes: int, parents: list[int], children: list[int]) -> int:
    """Bits of `nodes` joined by edges within `nodes` to the lowest of them."""
    part, frontier = 0, nodes & -nodes
    while frontier:
        part |= frontier
        node = frontier.bit_length() - 1
        frontier = (frontier & ~(1 << node)) | (parents[node] | children[node]) & nodes & ~part
    return part
