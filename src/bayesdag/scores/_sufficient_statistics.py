"""Families, a node with its parents: how scores take many of them at once."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.types import Params

MAX_ENTRIES = 8_000_000  # numbers held at once: 64 MB


class RowMoments(NamedTuple):
    """Moments of the rows that count for a node: those in which nobody set it.

    Nodes observed in the same rows share one entry, so purely observational data keep one
    matrix and not d of them. Columns are the variables, or whatever is made of them.

    Attributes:
        group: entry of each node.
        num_rows: rows of each entry.
        mean: column means over these rows.
        scatter: sums of squares and products about those means.
    """

    group: Int[np.ndarray, " d"]
    num_rows: Int[np.ndarray, " g"]
    mean: Float[np.ndarray, "g c"]
    scatter: Float[np.ndarray, "g c c"]


def rows_of(values: Float[np.ndarray, "n c"], observed: Bool[np.ndarray, "n d"]) -> RowMoments:
    """Moments for every node, from the rows where it was observed."""
    patterns, group = np.unique(observed, axis=1, return_inverse=True)
    c = values.shape[1]
    num_rows = patterns.sum(axis=0)
    mean, scatter = np.zeros((len(num_rows), c)), np.zeros((len(num_rows), c, c))
    for entry, counted in enumerate(patterns.T):
        if num_rows[entry]:
            mean[entry] = values[counted].mean(axis=0)
            centred = values[counted] - mean[entry]
            scatter[entry] = centred.T @ centred
    return RowMoments(group.reshape(-1), num_rows, mean, scatter)


def by_size(
    parents: Bool[np.ndarray, "m d"], extra: int = 0
) -> Iterator[tuple[Int[np.ndarray, " b"], Int[np.ndarray, "b p"]]]:
    """Parent sets with p members, and those members; in pieces of bounded memory.

    Args:
        extra: numbers that the caller keeps for each set, beside a few p x p matrices.
    """
    sizes = parents.sum(axis=1)
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        members = np.nonzero(parents[which])[1].reshape(len(which), size)
        step = max(1, MAX_ENTRIES // (4 * (size + 1) ** 2 + extra))
        for start in range(0, len(which), step):
            piece = slice(start, start + step)
            yield which[piece], members[piece]


def of_graphs(
    graphs: Shaped[np.ndarray, "s d d"],
) -> tuple[Int[np.ndarray, " m"], Bool[np.ndarray, "m d"]]:
    """Node and parents of all s·d families, graph by graph."""
    num, d = graphs.shape[:2]
    parents = np.swapaxes(graphs != 0, 1, 2).reshape(num * d, d)
    return np.tile(np.arange(d), num), parents


def distinct(
    nodes: Int[np.ndarray, " m"], parents: Bool[np.ndarray, "m d"]
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " m"]]:
    """Where each different family stands first, in this order, and which of them each one is."""
    of_node = nodes.astype(">i4").view(np.uint8).reshape(len(nodes), 4)
    key = np.concatenate([of_node, np.packbits(parents, axis=1)], axis=1)
    _, first, which = np.unique(
        key.view(f"V{key.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    by_place = np.argsort(first)
    number = np.empty_like(by_place)
    number[by_place] = np.arange(len(first))
    return first[by_place], number[which.reshape(-1)]


def edges_of(
    shape: tuple[int, ...], which: Int[np.ndarray, " b"], members: Int[np.ndarray, "b p"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the edges into families of `of_graphs` stand in an array of all graphs."""
    number, node = np.divmod(which[:, None], shape[1])
    return number, members, node


def linear_params(
    weights: Float[np.ndarray, "s d d"],
    bias: Float[np.ndarray, " m"],
    log_scale: Float[np.ndarray, " m"],
) -> Params:
    """Parameters of a linear Gaussian SCM, from numbers of all families."""
    num, d = weights.shape[:2]
    return {
        "mechanism": {"weights": weights, "bias": bias.reshape(num, d)},
        "noise": {"log_scale": log_scale.reshape(num, d)},
    }
