"""Column names: which node a name means, and arrays of nodes as tables with names."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag.errors import InputError, did_you_mean
from bayesdag.posterior.libraries import DataFrame, DiGraph, square_frame


def node(names: Sequence[str], name: str) -> int:
    """Position of the column called `name`."""
    if name in names:
        return names.index(name)
    raise InputError(f"no column is called {name!r}; {did_you_mean(name, names)}")


def pair(names: Sequence[str], cause: str, outcome: str) -> tuple[int, int]:
    """Positions of two different columns."""
    if cause == outcome:
        raise InputError(f"cause and outcome are both {cause!r}; name two different columns")
    return node(names, cause), node(names, outcome)


def assignment(
    names: Sequence[str], values: Mapping[str, float | int] | None
) -> tuple[Bool[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Mask of the nodes that a mapping names, and their numbers (others: 0)."""
    mask, numbers = np.zeros(len(names), dtype=bool), np.zeros(len(names))
    for name, value in (values or {}).items():
        position = node(names, name)
        number = float(value)
        if not np.isfinite(number):
            raise InputError(f"{name!r} cannot be {value}; give it a finite number")
        mask[position], numbers[position] = True, number
    return mask, numbers


def square(names: Sequence[str], matrix: Shaped[np.ndarray, "d d"]) -> DataFrame:
    """A table of ordered pairs: sources down, targets across."""
    return square_frame(matrix, names, ("source", "target"))


def digraph(
    names: Sequence[str],
    edges: Shaped[np.ndarray, "d d"],
    probability: Float[np.ndarray, "d d"] | None = None,
) -> DiGraph:
    """The non-zero entries of `edges` as a networkx graph, each with its `probability`."""
    import networkx

    graph: DiGraph = networkx.DiGraph()
    graph.add_nodes_from(names)
    for i, j in np.argwhere(np.asarray(edges) != 0):
        known = {} if probability is None else {"probability": float(probability[i, j])}
        graph.add_edge(names[int(i)], names[int(j)], **known)
    return graph
