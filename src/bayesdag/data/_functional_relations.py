"""Columns that are nonlinear functions of one, two or three others, without any noise.

Quadratic functions of up to three columns are found by regression; any function of a single
column by looking whether neighbours in it are neighbours in the other, too.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data import _exact_fit
from bayesdag.data._exact_fit import LeastSquaresFit

_ROWS_TO_CHOOSE, _ROWS_TO_TEST, _ROWS_TO_SORT = 80, 1000, 1000
_MOST_PREDICTORS = 3
_LEAST_FREE = 5  # rows beyond the number of weights
_SETS_AT_ONCE = 500
_PROMISING = 1e-2  # share of the variance of some rows, from which all rows are looked at
_LEAST_DIFFERENT = 25  # values of a column from which interpolation between them is tried
_MOST_LEVELS = 20
_MEDIAN_OF_CHI_SQUARE = 0.455  # with one degree of freedom


class Quadratic(NamedTuple):
    """A column, or its square, that is a polynomial of degree two of others."""

    target: int
    others: tuple[int, ...]
    squared: bool


def _standardised(values: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1; of some rows a column that varies may be constant."""
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def quadratics(
    values: Float[np.ndarray, "n d"],
    units: Float[np.ndarray, " d"],
    related: Bool[np.ndarray, "d d"],
) -> Iterator[Quadratic]:
    """Columns that, or the squares of which, are quadratic functions of up to three others.

    Args:
        units: to which columns are rounded.
        related: pairs that are known to belong together, and are not looked at again.
    """
    d = values.shape[1]
    few, more = _some_rows(values, _ROWS_TO_CHOOSE), _some_rows(values, _ROWS_TO_TEST)
    targets = np.concatenate([few, few**2], axis=1)
    targets, few = _standardised(targets), _standardised(few)
    best = _best_sets(few, targets, np.tile(related | np.eye(d, dtype=bool), (2, 1)))
    # Results tend to stand last, and plain columns are simpler than squares.
    for which in (*reversed(range(d)), *reversed(range(d, 2 * d))):
        candidates = (Quadratic(which % d, others, which >= d) for others in best[which])
        found = next((one for one in candidates if _is_exact(more, units, one)), None)
        if found:
            yield found


def _some_rows(values: np.ndarray, num: int) -> np.ndarray:
    return values[:: max(1, len(values) // num)]


def monomials(x: Float[np.ndarray, "... k"]) -> Float[np.ndarray, "... q"]:
    """All products of one or two of the columns."""
    k = x.shape[-1]
    first, second = np.triu_indices(k)
    return np.concatenate([x, x[..., first] * x[..., second]], axis=-1)


def polynomial(x: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"]) -> LeastSquaresFit:
    """Regression on all monomials, in the order of `monomials`."""
    return _exact_fit.least_squares(monomials(x), y)


def _best_sets(
    z: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n t"], barred: Bool[np.ndarray, "t d"]
) -> list[list[tuple[int, ...]]]:
    """For each target one, two and three columns whose quadratic functions come closest.

    All pairs are tried; the third column is looked for beside the best pair.
    """
    best: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in barred]
    for size in range(1, min(_MOST_PREDICTORS, z.shape[1] - 1) + 1):
        if len(z) < 1 + size * (size + 3) // 2 + _LEAST_FREE:
            break
        if size < _MOST_PREDICTORS:
            sets = np.array(list(combinations(range(z.shape[1]), size)))
            chosen = _closest(z, targets, sets, barred)
        else:
            chosen = [_third(z, targets[:, t], found, barred[t]) for t, found in enumerate(best)]
        for found, (share, members) in zip(best, chosen, strict=True):
            if share < np.inf:
                found.append((share, members))
    return [[members for share, members in found if share < _PROMISING] for found in best]


def _closest(
    z: np.ndarray, targets: np.ndarray, sets: np.ndarray, barred: np.ndarray
) -> list[tuple[float, tuple[int, ...]]]:
    """Of these sets the one that leaves least of each target, and what it leaves."""
    left = np.empty((len(sets), targets.shape[1]))
    for start in range(0, len(sets), _SETS_AT_ONCE):
        piece = slice(start, start + _SETS_AT_ONCE)
        design = monomials(np.moveaxis(z[:, sets[piece]], 1, 0))
        constant = np.ones((*design.shape[:2], 1))
        basis = np.linalg.qr(np.concatenate([constant, design], axis=2))[0]
        explained = (np.swapaxes(basis, 1, 2) @ targets) ** 2
        left[piece] = 1 - explained.sum(axis=1) / len(z)
    left[barred[:, sets].any(axis=2).T] = np.inf
    which = left.argmin(axis=0)
    return [(left[k, t], tuple(sets[k].tolist())) for t, k in enumerate(which.tolist())]


def _third(
    z: np.ndarray,
    y: np.ndarray,
    found: list[tuple[float, tuple[int, ...]]],
    barred: np.ndarray,
) -> tuple[float, tuple[int, ...]]:
    """The best pair with the best further column."""
    if len(found) < _MOST_PREDICTORS - 1:
        return np.inf, ()
    free = np.flatnonzero(~barred)
    pair = found[-1][1]
    sets = np.array([sorted((*pair, j)) for j in free.tolist() if j not in pair])
    if not len(sets):
        return np.inf, ()
    return _closest(z, y[:, None], sets, barred[None])[0]


def _is_exact(values: np.ndarray, units: np.ndarray, found: Quadratic) -> bool:
    """Whether the columns determine the target up to rounding, and not by chance."""
    others, target = list(found.others), values[:, found.target]
    scale = values[:, others].std(axis=0)
    x = (values[:, others] - values[:, others].mean(axis=0)) / scale
    y = target**2 if found.squared else target
    fit = polynomial(x, y)
    unit = units[found.target] * (2 * np.abs(target) if found.squared else np.ones_like(target))
    moved = [_slope(x, fit.weights, j) * units[o] / scale[j] for j, o in enumerate(others)]
    rounding = float((np.mean(unit**2) + np.square(moved).mean(axis=1).sum()) / 12)
    log_looks = 2 * (len(others) + 1) * np.log(values.shape[1] + len(fit.weights))
    return (
        fit.num_free >= _LEAST_FREE
        and _exact_fit.is_exact(fit, y, rounding)
        and _exact_fit.beats_chance(fit, y, float(unit.min()), rounding, log_looks)
    )


def _slope(x: np.ndarray, weights: np.ndarray, column: int) -> np.ndarray:
    """Derivative of the polynomial along a column; central differences are exact for it."""
    step = np.zeros(x.shape[1])
    step[column] = 0.5
    return (monomials(x + step) - monomials(x - step)) @ weights[1:]


def functions_of_one(
    values: Float[np.ndarray, "n d"], units: Float[np.ndarray, " d"]
) -> Bool[np.ndarray, "d d"]:
    """`found[i, j]` is True when column j is a function of column i, of whatever shape."""
    d = values.shape[1]
    values = _some_rows(values, _ROWS_TO_SORT)
    levels = [np.unique(column, return_inverse=True)[1] for column in values.T]
    place = np.stack(levels, axis=1)
    coarse = place.max(axis=0) < min(_MOST_LEVELS, len(values) // 5)
    found, variance = np.zeros((d, d), dtype=bool), _typical_variance(values)
    for i in range(d):
        order = np.argsort(place[:, i], kind="stable")
        own = place[order, i]
        found[i, coarse] = _are_step_functions(own, place[order][:, coarse], d)
        if own[-1] + 1 >= _LEAST_DIFFERENT:
            rows = values[order]
            found[i, ~coarse] = _are_interpolated(own, rows[:, i], rows, variance, units, i)[
                ~coarse
            ]
    return found & ~np.eye(d, dtype=bool)


def _are_interpolated(
    place: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    variance: np.ndarray,
    units: np.ndarray,
    own: int,
) -> np.ndarray:
    """Whether values between neighbours in x are what lies between them in each column of y.

    Noise makes them miss by as much among close neighbours as among further ones; curves by
    far less. Medians, because functions may have kinks and jumps.
    """
    start = np.flatnonzero(np.diff(place, prepend=-1))
    count = np.diff(start, append=len(place))
    mean = np.add.reduceat(y, start) / count[:, None]
    within = ((y - mean[place]) ** 2).sum(axis=0) / max(len(place) - len(start), 1)
    possible = within < _exact_fit.MOST_UNEXPLAINED * variance
    possible[possible] = _mostly_close(x[start], mean[:, possible], variance[possible])
    for j in np.flatnonzero(possible).tolist():
        near, slope = _miss(x[start], mean[:, j], 1)
        far, _ = _miss(x[start], mean[:, j], 3)
        rounding = _exact_fit.TIMES_ROUNDING * (units[j] ** 2 + (slope * units[own]) ** 2) / 12
        rounding = max(rounding, _exact_fit.NEGLIGIBLE * variance[j])
        possible[j] = (far > 9 * near or near < rounding) and within[j] < rounding
    return possible


def _typical_variance(y: np.ndarray) -> np.ndarray:
    """Of each column; for heavy tails not that of a few outliers, beside which all is close."""
    typical = np.median((y - np.median(y, axis=0)) ** 2, axis=0) / _MEDIAN_OF_CHI_SQUARE
    return np.where(typical > 0, np.minimum(y.var(axis=0), typical), y.var(axis=0))


def _between(x: np.ndarray, y: np.ndarray, step: int) -> np.ndarray:
    """Interpolation of rows from neighbours so many places away on both sides."""
    before, middle, after = x[: -2 * step], x[step:-step], x[2 * step :]
    share = ((middle - before) / (after - before)).reshape(-1, *(1,) * (y.ndim - 1))
    return (1 - share) * y[: -2 * step] + share * y[2 * step :]


def _mostly_close(x: np.ndarray, y: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Whether most rows that differ from a neighbour are interpolated well, and not few do."""
    changes = np.diff(y, axis=0) != 0
    differ = changes[1:] | changes[:-1]
    miss = (y[1:-1] - _between(x, y, 1)) ** 2
    good = (miss < _exact_fit.MOST_UNEXPLAINED * variance) & differ
    num = differ.sum(axis=0)
    return (num >= _LEAST_DIFFERENT - 2) & (good.sum(axis=0) > num / 2)


def _miss(x: np.ndarray, y: np.ndarray, step: int) -> tuple[float, float]:
    """Median squared error of interpolation, and median slope, where y is not constant."""
    between, middle = _between(x, y, step), y[step:-step]
    differ = (middle != between) | (y[2 * step :] != middle)
    slope = (y[2 * step :] - y[: -2 * step]) / (x[2 * step :] - x[: -2 * step])
    return float(np.median((middle - between)[differ] ** 2)), float(np.median(np.abs(slope)))


def _are_step_functions(place: np.ndarray, levels: np.ndarray, d: int) -> np.ndarray:
    """Whether equal x have equal levels, and the levels are intervals or lists of x.

    That few intervals, or so many rows of few different x, agree by chance must be
    improbable among all orders of the levels.

    Args:
        place: rank of x, ascending.
        levels: of other columns in the same rows, numbered from 0.
    """
    n, changes = len(place), np.diff(levels, axis=0) != 0
    agree = ~(changes & (np.diff(place) == 0)[:, None]).any(axis=0)
    num_levels, num_runs = levels.max(axis=0, initial=0) + 1, changes.sum(axis=0) + 1
    counts = [np.bincount(column) for column in levels.T]
    from scipy.special import gammaln

    arrangements = gammaln(n + 1) - np.array([gammaln(c + 1).sum() for c in counts])
    by_list = (place[-1] + 1) * np.log(num_levels)
    by_interval = gammaln(n) - gammaln(num_runs) - gammaln(n - num_runs + 1)
    by_interval = by_interval + num_runs * np.log(num_levels)
    by_interval[num_runs > 2 * num_levels - 1] = np.inf
    gain = arrangements - np.minimum(by_list, by_interval) - 2 * np.log(d)
    return agree & (gain > _exact_fit.LEAST_EVIDENCE)
