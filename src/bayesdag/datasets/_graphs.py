"""Random DAGs: `graph[i, j] = 1` means i -> j, and node numbers say nothing of the order.

Every kind is a function of a generator, the number of variables, the edges a node and
whether the number of edges holds exactly or only in expectation.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int8

from bayesdag.errors import InputError

Kind = Callable[[np.random.Generator, int, int, bool], np.ndarray]


def check_num_edges(num_variables: int, edges_per_node: int) -> None:
    """Refuses more edges than a DAG of that many variables has room for."""
    most = (num_variables - 1) / 2
    if not 0 <= edges_per_node <= most:
        raise InputError(
            f"edges_per_node is {edges_per_node}, and a DAG of {num_variables} variables has "
            f"room for 0 to {most:g} edges a node; use fewer edges or more variables"
        )


def erdos_renyi(
    rng: np.random.Generator, num_variables: int, edges_per_node: int, expected: bool
) -> Int8[np.ndarray, "d d"]:
    """All pairs alike: exactly `edges_per_node * num_variables` edges, or so on average."""
    source, target = np.triu_indices(num_variables, k=1)
    num_edges = edges_per_node * num_variables
    if expected:
        chosen = rng.random(len(source)) < num_edges / len(source)
    else:
        chosen = rng.permutation(len(source)) < num_edges
    graph = np.zeros((num_variables, num_variables), dtype=np.int8)
    graph[source[chosen], target[chosen]] = 1
    return _shuffled(rng, graph)


def scale_free(
    rng: np.random.Generator, num_variables: int, edges_per_node: int, expected: bool
) -> Int8[np.ndarray, "d d"]:
    """Barabási–Albert: each newcomer points at earlier nodes, so the hubs are sinks.

    A node attracts newcomers in proportion to the arrows it has received plus one. With e
    edges a node and d nodes there are e d - e (e + 1) / 2 edges, because the first e
    newcomers find fewer than e nodes to point at; or e d in expectation, when some
    newcomers bring one arrow more.
    """
    num_arrows = _arrows(rng, num_variables, edges_per_node, expected)
    graph = np.zeros((num_variables, num_variables), dtype=np.int8)
    for new in range(1, num_variables):
        attraction = graph[:, :new].sum(axis=0) + 1.0
        chosen = rng.choice(new, num_arrows[new], replace=False, p=attraction / attraction.sum())
        graph[new, chosen] = 1
    return _shuffled(rng, graph)


def _arrows(rng: np.random.Generator, d: int, edges_per_node: int, expected: bool) -> np.ndarray:
    """Arrows each newcomer brings, never more than there are earlier nodes."""
    newcomers = np.arange(d)
    if not expected:
        return np.minimum(newcomers, edges_per_node)
    # edges[k]: their number when everyone brings up to k arrows. What the largest k that
    # stays below the aim leaves open is made up by chance, one arrow more for some.
    edges = np.concatenate([[0], np.cumsum(d - newcomers[1:])])
    num_edges = edges_per_node * d
    full = np.searchsorted(edges, num_edges, side="right") - 1
    fraction = (num_edges - edges[full]) / max(d - 1 - full, 1)
    return np.minimum(newcomers, full + (rng.random(d) < fraction))


def _shuffled(rng: np.random.Generator, graph: np.ndarray) -> np.ndarray:
    """The same graph with its nodes renamed at random."""
    order = rng.permutation(len(graph))
    return graph[np.ix_(order, order)]


KINDS: dict[str, Kind] = {"er": erdos_renyi, "sf": scale_free}
