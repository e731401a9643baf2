"""Columns that are, up to the rounding of the numbers as stored, functions of others.

A regression is called exact when what it leaves is no larger than rounding can explain. What
is left is measured on rows that had no part in the fit (leave-one-out residuals), and a fit
that could succeed by chance, for few rows or for columns with few different values, does not
count.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# Share of a variance. Whatever the rounding, more than this (R² = .9999) is noise: real
# measurements of one thing by two instruments hardly agree any better.
MOST_UNEXPLAINED = 1e-4
# Below this it is no noise that anybody measured, but intermediate rounding in a computation.
NEGLIGIBLE = 1e-8
# How much larger than the rounding of the columns the residual may be: s may have been the
# sum of columns before they were rounded, and rounding errors are not all of one size.
TIMES_ROUNDING = 9.0
# Nats by which an exact relation must beat coincidence, among all that were looked at.
LEAST_EVIDENCE = 20.0
_DECIMALS = tuple(range(-6, 11))


class LeastSquaresFit(NamedTuple):
    """A regression and what it leaves.

    Attributes:
        weights: of the intercept and every column of the design.
        error: standard error of each weight.
        residual: leave-one-out residuals.
        num_free: rows less parameters.
    """

    weights: Float[np.ndarray, " k"]
    error: Float[np.ndarray, " k"]
    residual: Float[np.ndarray, " n"]
    num_free: int


def resolution(x: Float[np.ndarray, " n"]) -> float:
    """The unit to which a column is rounded: a power of ten, or the last binary digit.

    >>> resolution(np.array([1.25, 3.5, -0.75]))
    0.01
    """
    largest = np.abs(x).max()
    for decimals in _DECIMALS if _is_decimal(x[:50], _DECIMALS[-1]) else ():
        if _is_decimal(x, decimals):
            return 10.0**-decimals
    with np.errstate(over="ignore"):  # what no float32 can hold is none
        single = np.array_equal(x, x.astype(np.float32))
    digits = np.finfo(np.float32 if single else float)
    return float(digits.eps * largest)


def _is_decimal(x: np.ndarray, decimals: int) -> bool:
    """Whether all numbers have at most so many decimals, as far as 15 digits can tell."""
    steps = x * 10.0**decimals
    close = np.abs(steps - np.round(steps)) <= 4e-16 * np.abs(steps) + 1e-12
    return bool(close.all() and np.abs(steps).max() < 1e14)


def least_squares(design: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"]) -> LeastSquaresFit:
    """Ordinary least squares with an intercept; redundant columns share their weight."""
    whole = np.column_stack([np.ones(len(y)), design])
    left, size, right = np.linalg.svd(whole, full_matrices=False)
    kept = size > 1e-11 * size[0]
    left, inverse = left[:, kept], right[kept].T / size[kept]
    along = left.T @ y
    residual = y - left @ along
    num_free = len(y) - int(kept.sum())
    spread = np.sqrt(residual @ residual / max(num_free, 1))
    leverage = np.minimum((left**2).sum(axis=1), 1 - 1e-9)
    error = spread * np.sqrt((inverse**2).sum(axis=1))
    return LeastSquaresFit(inverse @ along, error, residual / (1 - leverage), num_free)


def is_exact(fit: LeastSquaresFit, y: Float[np.ndarray, " n"], rounding: float) -> bool:
    """Whether what is left of y is no more than rounding leaves: on average, and typically.

    A few outliers make the variance of a column, and any fit that reaches them looks good on
    average. So half of the rows must be predicted to the same precision, too.

    Args:
        rounding: variance of y that rounding of all columns involved explains.
    """
    average = (fit.residual**2).mean(), y.var()
    typical = np.median(fit.residual**2), np.median((y - np.median(y)) ** 2)
    return all(
        left < max(NEGLIGIBLE * whole, min(MOST_UNEXPLAINED * whole, TIMES_ROUNDING * rounding))
        for left, whole in (average, typical)
        if whole > 0
    )


def beats_chance(
    fit: LeastSquaresFit, y: Float[np.ndarray, " n"], unit: float, rounding: float, log_looks: float
) -> bool:
    """Whether the rows that were predicted are too many for a coincidence.

    A row that is predicted to a share of the variance is worth the logarithm of that share,
    but where only few different values are possible and all are hit, their entropy.

    Args:
        unit: to which y is rounded.
        rounding: variance of y that rounding of all columns involved explains.
        log_looks: logarithm of the number of relations that were looked at.
    """
    left = max(float((fit.residual**2).mean()), rounding)
    each = -0.5 * np.log(left / y.var())
    if np.abs(fit.residual).max() < unit / 4:
        each = max(each, entropy(y))
    return bool(fit.num_free * each - log_looks > LEAST_EVIDENCE)


def entropy(y: Float[np.ndarray, " n"]) -> float:
    """Of the values that stand in a column, in nats."""
    share = np.unique(y, return_counts=True)[1] / len(y)
    return float(-(share * np.log(share)).sum())
