"""Contingency tables: the exact evidence of a node of levels whose parents have levels, too.

BDeu: every configuration of the parents has its own probabilities of the levels, with a
Dirichlet prior worth `ess` rows in all, spread evenly over the cells of the table. Markov
equivalent graphs get the same score.

References:
    Heckerman, Geiger & Chickering (1995), Learning Bayesian networks: the combination of
    knowledge and statistical data, Machine Learning.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln

LARGEST_DENSE = 1 << 16  # cells up to which a table is counted as it is; else seen rows only


class LevelRows(NamedTuple):
    """Different rows of codes, and how often each was observed for every node.

    Attributes:
        codes: 0 … K-1 of the columns that have levels; 0 in the others.
        counts: times that the row occurs with the node not set by an experimenter.
        num_levels: K of every column; 0 where a column has no levels.
    """

    codes: Int[np.ndarray, "u d"]
    counts: Float[np.ndarray, "u d"]
    num_levels: Int[np.ndarray, " d"]


def level_rows(
    codes: Int[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    num_levels: Int[np.ndarray, " d"],
) -> LevelRows:
    """Equal rows put together: five thousand rows of few levels are a few hundred."""
    different, index = np.unique(codes, axis=0, return_inverse=True)
    counts = np.zeros(different.shape)
    np.add.at(counts, index.reshape(-1), observed.astype(float))
    return LevelRows(different, counts, num_levels)


def configurations(
    codes: Int[np.ndarray, "n d"], num_levels: Int[np.ndarray, " d"], members: Int[np.ndarray, " p"]
) -> tuple[Int[np.ndarray, " n"], int]:
    """Number of each row's configuration of some columns, and how many there can be."""
    number, size = np.zeros(len(codes), dtype=np.int64), 1
    for j in members.tolist():
        number += size * codes[:, j]
        size *= int(num_levels[j])
    return number, size


def counts_of(
    rows: LevelRows, node: int, members: Int[np.ndarray, " p"], among: int | None = None
) -> tuple[Float[np.ndarray, "q k"], int]:
    """Counts of the node's levels by configuration of its parents, and the true number of these.

    Large tables keep only configurations that occur: an empty one says nothing.

    Args:
        among: the column whose observed rows count; by default those of the node.
    """
    seen = rows.counts[:, node if among is None else among]
    number, size = configurations(rows.codes, rows.num_levels, members)
    k = int(rows.num_levels[node])
    kept = size
    if size * k > LARGEST_DENSE:
        different, number = np.unique(number, return_inverse=True)
        kept = len(different)
    cells = number.reshape(-1) * k + rows.codes[:, node]
    counts = np.bincount(cells, weights=seen, minlength=kept * k)
    return counts.reshape(kept, k), size


def log_evidence(
    rows: LevelRows,
    node: int,
    parents: Bool[np.ndarray, "m d"],
    ess: float,
    among: int | None = None,
) -> Float[np.ndarray, " m"]:
    """Log mass of the node's codes given those of its parents, for m parent sets."""
    tables = (counts_of(rows, node, np.flatnonzero(chosen), among) for chosen in parents)
    return np.array([_log_mass(counts, size, ess) for counts, size in tables])


def _log_mass(counts: Float[np.ndarray, "q k"], size: int, ess: float) -> float:
    """Of one table with so many configurations."""
    of_configuration = ess / size
    of_cell = of_configuration / counts.shape[1]
    seen = counts[counts > 0]
    totals = counts.sum(axis=1)
    totals = totals[totals > 0]
    value = (gammaln(of_cell + seen) - gammaln(of_cell)).sum()
    return float(value - (gammaln(of_configuration + totals) - gammaln(of_configuration)).sum())


def draw_probabilities(
    rng: np.random.Generator,
    rows: LevelRows,
    node: int,
    members: Int[np.ndarray, " p"],
    ess: float,
    num: int,
) -> Float[np.ndarray, "s q k"]:
    """Probabilities of the levels in every configuration, from their Dirichlet posterior."""
    number, size = configurations(rows.codes, rows.num_levels, members)
    k = int(rows.num_levels[node])
    cells = number * k + rows.codes[:, node]
    counts = np.bincount(cells, weights=rows.counts[:, node], minlength=size * k)
    shape = np.tile(counts.reshape(size, k) + ess / (size * k), (num, 1, 1))
    # A gamma variate of tiny shape underflows; its logarithm by Marsaglia & Tsang's boost does not.
    log_gamma = np.log(rng.gamma(shape + 1)) + np.log(rng.random(shape.shape)) / shape
    weights = np.exp(log_gamma - log_gamma.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)
