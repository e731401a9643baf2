"""Slow, plain versions of what the package computes, written from the definitions."""

from itertools import combinations, permutations, product

import numpy as np

Edge = tuple[int, int]


def edges_of(graph) -> set[Edge]:
    """Set of (cause, effect)."""
    return {(int(i), int(j)) for i, j in np.argwhere(np.asarray(graph))}


def graph_of(edges, d: int) -> np.ndarray:
    """Adjacency matrix of a set of (cause, effect)."""
    graph = np.zeros((d, d), dtype=np.int8)
    for i, j in edges:
        graph[i, j] = 1
    return graph


def descendants(graph, start: int) -> set[int]:
    """Nodes at the end of a directed walk of one or more edges from `start`."""
    edges, found, frontier = edges_of(graph), set(), {start}
    while frontier:
        frontier = {j for i, j in edges if i in frontier} - found
        found |= frontier
    return found


def is_acyclic(graph) -> bool:
    return all(node not in descendants(graph, node) for node in range(len(graph)))


def respects(order, graph) -> bool:
    """True when every cause comes before its effect in `order`."""
    place = {node: position for position, node in enumerate(order)}
    return all(place[i] < place[j] for i, j in edges_of(graph))


def linear_extensions(graph) -> list[tuple[int, ...]]:
    """Orders in which every cause comes before its effects, in lexicographic order."""
    return [order for order in permutations(range(len(graph))) if respects(order, graph)]


def markov_blanket(graph, node: int) -> set[int]:
    edges = edges_of(graph)
    children = {j for i, j in edges if i == node}
    parents = {i for i, j in edges if j == node}
    coparents = {i for i, j in edges if j in children}
    return (children | parents | coparents) - {node}


def adjacent(edges: set[Edge], i: int, j: int) -> bool:
    return (i, j) in edges or (j, i) in edges


def v_structures(graph) -> set[tuple[int, int, int]]:
    """All (i, j, k) with i -> j <- k, i < k, and i, k not adjacent."""
    edges = edges_of(graph)
    return {
        (i, j, k)
        for j in range(len(graph))
        for i, k in combinations([i for i, child in sorted(edges) if child == j], 2)
        if not adjacent(edges, i, k)
    }


def equivalent_dags(graph) -> list[np.ndarray]:
    """All DAGs with the skeleton and the v-structures of `graph` (Verma and Pearl, 1990)."""
    ways = product(*[((i, j), (j, i)) for i, j in sorted(edges_of(graph))])
    candidates = (graph_of(edges, len(graph)) for edges in ways)
    target = v_structures(graph)
    return [dag for dag in candidates if v_structures(dag) == target and is_acyclic(dag)]


def cpdag(graph) -> np.ndarray:
    """Union of all Markov equivalent DAGs: an edge they disagree on points both ways."""
    return np.max(equivalent_dags(graph), axis=0)


def all_digraphs(d: int):
    """Every directed graph without self-loops, one by one."""
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    for chosen in product((0, 1), repeat=len(pairs)):
        yield graph_of([pair for pair, taken in zip(pairs, chosen, strict=True) if taken], d)
