"""Columns that are, or whose logarithms are, linear combinations of one another.

Pivoted QR finds how many columns are redundant; each of these is written in terms of the
others, and whatever is not needed is left out: the smallest sets within which every column
is determined by the rest (circuits, in the language of matroids).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.data import _exact_fit
from bayesdag.data._exact_fit import LeastSquaresFit

# Rows that are looked at to decide which columns belong together.
_MOST_ROWS = 2000
# Rows beyond the number of columns from which QR is trusted to find what is redundant.
_SPARE_ROWS = 10
_LARGEST_IF_FEW_ROWS = 6
# Share of a variance: columns rounded so coarsely leave up to this much of a simple relation.
_COARSE = 1e-2
_COARSEST_UNIT = 1 / 3  # standard deviations
# Of the largest: what has less weight in a first regression is not part of a relation.
_LEAST_WEIGHT = 1e-3
_LEAST_FREE = 3  # rows beyond the number of weights

Test = Callable[["Columns", int, Sequence[int]], "Circuit | None"]


class Columns(NamedTuple):
    """Standardised columns, raw or logarithms, and what rounding does to them.

    Attributes:
        values: mean 0 and variance 1.
        scale: standard deviations before.
        units: to which cells are rounded, standardised.
        rounding: standard deviation of the rounding error of each column, standardised.
    """

    values: Float[np.ndarray, "n d"]
    scale: Float[np.ndarray, " d"]
    units: Float[np.ndarray, "n d"]
    rounding: Float[np.ndarray, " d"]


class Circuit(NamedTuple):
    """A column that others determine, and how.

    Attributes:
        target: the column.
        others: those that determine it.
        weights: multiples of one half, before scaling, where they were not fitted.
    """

    target: int
    others: tuple[int, ...]
    weights: tuple[float, ...] = ()


def columns(values: Float[np.ndarray, "n d"], units: Float[np.ndarray, "n d"]) -> Columns:
    """Standardised columns of which the cells are rounded to `units`."""
    centred = values - values.mean(axis=0)
    scale = centred.std(axis=0)
    units = units / scale
    return Columns(centred / scale, scale, units, np.sqrt((units**2).mean(axis=0) / 12))


def circuits(table: Columns) -> Iterator[Circuit]:
    """Minimal sets of columns that determine one another linearly."""
    n, d = table.values.shape
    if d < 2:
        return
    step = max(1, n // max(_MOST_ROWS, 4 * d))
    table = table._replace(values=table.values[::step], units=table.units[::step])
    if len(table.values) < d + _SPARE_ROWS:
        yield from _by_greedy_search(table)
        return
    for cutoff, test in ((_exact_fit.MOST_UNEXPLAINED, _is_exact), (_COARSE, _is_exact_if_simple)):
        yield from _by_factorisation(table, cutoff, test)


def _by_factorisation(table: Columns, cutoff: float, test: Test) -> Iterator[Circuit]:
    """One set for each redundant column."""
    n = len(table.values)
    from scipy import linalg

    triangle, order = map(np.asarray, linalg.qr(table.values, mode="r", pivoting=True))
    rank = int((np.abs(np.diagonal(triangle)) > np.sqrt(cutoff * n)).sum())
    inside, outside = triangle[:rank, :rank], triangle[:rank, rank:]
    weights = linalg.solve_triangular(inside, outside)
    for column, target in zip(weights.T, order[rank:].tolist(), strict=True):
        needed = np.abs(column) > _LEAST_WEIGHT * np.abs(column).max(initial=0)
        ascending = np.argsort(np.abs(column[needed]), kind="stable")
        found = _pruned(table, target, order[:rank][needed][ascending].tolist(), test)
        if found:
            yield found


def _by_greedy_search(table: Columns) -> Iterator[Circuit]:
    """With few rows for many columns, where all columns together explain anything."""
    n, d = table.values.shape
    seen: set[frozenset[int]] = set()
    for target in range(d):
        y, others = table.values[:, target], []
        residual = y
        for _ in range(min(_LARGEST_IF_FEW_ROWS, n // 3, d - 1)):
            likeness = np.abs(residual @ table.values)
            likeness[[target, *others]] = -1
            others.append(int(np.argmax(likeness)))
            found = _pruned(table, target, others, _is_exact)
            if found:
                members = frozenset((target, *found.others))
                if members not in seen:
                    yield found
                seen.add(members)
                break
            residual = _exact_fit.least_squares(table.values[:, others], y).residual


def _pruned(table: Columns, target: int, others: list[int], test: Test) -> Circuit | None:
    """The target with those that it needs, if they determine it; smallest weights go first."""
    found = test(table, target, others)
    for column in others:
        if found is None:
            return None
        fewer = [j for j in found.others if j != column]
        found = (test(table, target, fewer) if fewer else None) or found
    return found


def _is_exact(table: Columns, target: int, others: Sequence[int]) -> Circuit | None:
    """The relation, if a regression leaves no more than rounding, and not by chance."""
    y = table.values[:, target]
    fit = _exact_fit.least_squares(table.values[:, others], y)
    if fit.num_free < _LEAST_FREE:
        return None
    rounding = table.rounding[target] ** 2 + fit.weights[1:] ** 2 @ table.rounding[others] ** 2
    exact = _exact_fit.is_exact(fit, y, float(rounding))
    if exact and _beats_chance(table, fit, target, float(rounding)):
        return Circuit(target, tuple(others))
    return None


def _is_exact_if_simple(table: Columns, target: int, others: Sequence[int]) -> Circuit | None:
    """The relation, if weights that are multiples of one half are right up to rounding.

    For columns rounded so coarsely that a regression cannot tell rounding from noise: shares
    in whole per cent add up to 99, 100 or 101, and heights in centimetres give the body mass
    index to two digits. The weights are not fitted, so a fit proves more, and no row may be
    further off than the rounding of all its cells together.
    """
    members = [target, *others]
    if np.any(np.median(table.units[:, members], axis=0) > _COARSEST_UNIT):
        return None  # few different values: no rounding of something finer
    fit = _exact_fit.least_squares(table.values[:, others], table.values[:, target])
    raw = fit.weights[1:] * table.scale[target] / table.scale[others]
    weights = np.round(2 * raw) / 2
    if 0 < np.count_nonzero(weights) < len(others):
        kept = np.asarray(others)[weights != 0]
        return _is_exact_if_simple(table, target, kept.tolist())
    if fit.num_free < _LEAST_FREE or np.any(np.abs(raw - weights) > 0.1 * np.abs(weights)):
        return None
    factors = np.append(1.0, -weights) * table.scale[members]
    total = table.values[:, members] @ factors
    room = table.units[:, members] @ np.abs(factors) / 2 * (1 + 1e-9)
    share = float(total.var() / table.scale[target] ** 2)
    within_rounding = (total - room).max() <= (total + room).min() and share < _COARSE
    if within_rounding and _beats_chance(table, fit, target, share):
        return Circuit(target, tuple(others), tuple(weights.tolist()))
    return None


def _beats_chance(table: Columns, fit: LeastSquaresFit, target: int, rounding: float) -> bool:
    log_looks = len(fit.weights) * np.log(table.values.shape[1])
    y, unit = table.values[:, target], float(table.units[:, target].min())
    return _exact_fit.beats_chance(fit, y, unit, rounding, log_looks)
