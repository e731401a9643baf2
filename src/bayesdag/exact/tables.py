"""Score tables over sets of parents: what is drawn from them and summed out of them."""

# numpy's stubs leave the types of arange and searchsorted unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from bayesdag.graphs.bitsets import members

Tables = Float[np.ndarray, "d sets"]


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
