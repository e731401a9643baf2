"""Subsets as numbers: their members, and sums over everything below or above a set."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int, Int8, Shaped

from bayesdag.types import Array

Tables = Float[np.ndarray, "d sets"]


def members(d: int) -> Bool[np.ndarray, "sets d"]:
    """`members(d)[S, j]` is True when j is in S, for all 2^d sets."""
    return as_rows(np.arange(2**d), d).astype(bool)


def as_rows(sets: Int[np.ndarray, " num"], d: int) -> Int8[np.ndarray, "num d"]:
    """Each set as a row of d zeros and ones."""
    return (sets[:, None] >> np.arange(d) & 1).astype(np.int8)


def members_of(mask: int) -> list[int]:
    """Members of one set, smallest first."""
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


def subsets_of(mask: int) -> Int[np.ndarray, " subsets"]:
    """All subsets of one set; bit p of a position stands for its p-th smallest member.

    >>> subsets_of(0b1010).tolist()
    [0, 2, 8, 10]
    """
    found = np.zeros(1, dtype=np.int64)
    while mask:
        bit = mask & -mask
        found = np.concatenate([found, found | bit])
        mask ^= bit
    return found


def below(values: Float[np.ndarray, "*batch sets"]) -> Float[np.ndarray, "*batch sets"]:
    """log Σ exp of the values of all subsets of each set (zeta transform).

    By logaddexp: scores differ by thousands of nats, and one common shift would underflow.
    """
    result, width = values.copy(), 1
    while width < values.shape[-1]:
        pairs = result.reshape(*values.shape[:-1], -1, 2, width)
        np.logaddexp(pairs[..., 1, :], pairs[..., 0, :], out=pairs[..., 1, :])
        width *= 2
    return result


def above(values: Float[np.ndarray, "*batch sets"]) -> Float[np.ndarray, "*batch sets"]:
    """log Σ exp of the values of all supersets of each set."""
    return below(values[..., ::-1])[..., ::-1]


def edges(parent_sets: Tables) -> Float[np.ndarray, "d d"]:
    """P(j -> i) at [j, i], from the probability of every parent set."""
    return (parent_sets @ members(len(parent_sets))).T


def draw_positions(
    rng: np.random.Generator, weights: Float[np.ndarray, " sets"], num: int
) -> Int[np.ndarray, " num"]:
    """Positions drawn with probability proportional to their weights."""
    cumulative = np.cumsum(weights)
    # At most the last position: a product of the total and a number just below 1 may round up.
    drawn = np.searchsorted(cumulative, rng.random(num) * cumulative[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(weights)[-1])


def groups(labels: Int[np.ndarray, " num"]) -> Iterator[tuple[int, Int[np.ndarray, " some"]]]:
    """Each distinct label, in increasing order, with the positions where it stands."""
    distinct, counts = np.unique(labels, return_counts=True)
    positions = np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])
    yield from zip(distinct.tolist(), positions, strict=True)


def num_orders(graphs: Shaped[Array, "b d d"]) -> Float[np.ndarray, " b"]:
    """In how many orders the parents of every node come before it; 0 with a cycle.

    Prefixes of orders, by dynamic programming over all 2^d sets: for many small graphs.
    """
    edges_present = np.asarray(graphs) != 0
    num, d = edges_present.shape[:2]
    parents = np.tensordot(edges_present, 2 ** np.arange(d), axes=(1, 0))
    counts = np.zeros((2**d, num))
    counts[0] = 1
    for prefix in range(2**d - 1):
        for node in range(d):
            if not prefix >> node & 1:
                ready = parents[:, node] & ~prefix == 0
                counts[prefix | 1 << node] += counts[prefix] * ready
    return counts[-1]
