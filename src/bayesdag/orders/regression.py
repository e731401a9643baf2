"""Parents of a node among the variables before it: linear regression with BIC.

Works from sums of squares and products alone, so that the cost does not grow with the number
of rows: a stepwise search updates one small matrix with the sweep operator.
"""

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from bayesdag.knowledge import Constraints
from bayesdag.scores._sufficient_statistics import RowMoments

COLLINEAR = 1e-10  # share of a variance that other parents must leave unexplained
PERFECT = 1e-12  # residual share below which a fit counts as exact; better is rounding


def graph_of_order(
    rows: RowMoments, order: Int[np.ndarray, " d"], knowledge: Constraints
) -> Int8[np.ndarray, "d d"]:
    """The graph in which every node's parents are chosen among those before it in `order`.

    `order` must place the cause of every required edge before its effect.
    """
    graph = np.zeros(knowledge.required.shape, dtype=np.int8)
    earlier = np.zeros(len(order), dtype=bool)
    for node in order.tolist():
        candidates = earlier & knowledge.candidates(node)
        graph[:, node] = select_parents(rows, node, candidates, knowledge.required[:, node])
        earlier[node] = True
    return graph


def select_parents(
    rows: RowMoments,
    node: int,
    candidates: Bool[np.ndarray, " d"],
    required: Bool[np.ndarray, " d"],
) -> Bool[np.ndarray, " d"]:
    """Parents of `node` by stepwise BIC: `required` ones, and some of the `candidates`.

    Every step makes the one addition or removal that lowers n log(RSS) + k log(n) most, until
    none does; what was removed stays out. That is a local optimum, not always the best
    subset. There are never more parents than half the rows, beyond which BIC rewards
    perfect fits of noise.
    """
    entry = rows.group[node]
    num_rows = int(rows.num_rows[entry])
    members = np.append(np.flatnonzero(candidates | required), node)
    matrix = _correlations(rows.scatter[entry], members)
    chosen, closed = required[members[:-1]], required[members[:-1]]
    for k in np.flatnonzero(chosen).tolist():
        if matrix[k, k] > COLLINEAR:  # else it adds nothing to the other required ones
            matrix = _sweep(matrix, k)
    while len(chosen) and (k := _best_move(matrix, chosen, closed, num_rows)) is not None:
        matrix = _sweep(matrix, k)
        closed[k] = chosen[k]
        chosen[k] = not chosen[k]
    parents = np.zeros(len(candidates), dtype=bool)
    parents[members[:-1][chosen]] = True
    return parents


def _best_move(
    matrix: Float[np.ndarray, "m m"],
    chosen: Bool[np.ndarray, " k"],
    closed: Bool[np.ndarray, " k"],
    num_rows: int,
) -> int | None:
    """The regressor whose addition or removal lowers BIC most; None if none does."""
    pivots, slopes, residual = np.diagonal(matrix)[:-1], matrix[:-1, -1], matrix[-1, -1]
    # Swept pivots are negative: one formula gives the loss by removal, too.
    after = residual - slopes**2 / np.where(np.abs(pivots) > COLLINEAR, pivots, np.inf)
    fit = num_rows * np.log(np.maximum(after, PERFECT) / max(residual, PERFECT))
    change = fit + np.where(chosen, -1.0, 1.0) * np.log(max(num_rows, 1))
    full = 2 * (chosen.sum() + 1) > num_rows
    change[closed | (full & ~chosen)] = 0.0
    best = int(np.argmin(change))
    return best if change[best] < 0 else None


def _correlations(
    scatter: Float[np.ndarray, "d d"], members: Int[np.ndarray, " m"]
) -> Float[np.ndarray, "m m"]:
    """Correlations of some variables; a constant one is uncorrelated with everything."""
    deviation = np.sqrt(np.diagonal(scatter)[members])
    deviation[deviation == 0] = np.inf
    return scatter[np.ix_(members, members)] / deviation[:, None] / deviation[None, :]


def _sweep(matrix: Float[np.ndarray, "m m"], k: int) -> Float[np.ndarray, "m m"]:
    """Regress all variables on variable k as well, or no longer if they already are.

    Afterwards the last column holds slopes where a variable is swept in and partial
    covariances where it is not, and the last entry is the residual share of the node.
    (A variable swept out again has the wrong sign there; it is never looked at again.)
    """
    column = matrix[:, k]
    pivot = column[k]
    result = matrix - (column / pivot)[:, None] * column[None, :]
    result[k, :] = result[:, k] = column / pivot
    result[k, k] = -1.0 / pivot
    return result
