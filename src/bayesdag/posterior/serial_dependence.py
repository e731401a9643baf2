"""Rows that resemble their neighbours: how many of them say as much as one independent row.

Rows in time, or from one plate after the other, repeat one another. The evidence that a variable
acts on another is then that of fewer rows: with autocorrelations ρ of the cause and of what is
left of the effect, n rows are worth n / (1 + 2 Σ_k ρ_i(k) ρ_j(k)) (Bartlett, 1935; it is the
variance of a regression coefficient whose errors are correlated). Of the effect its residuals
count, not its values: what follows from the variable that a table is sorted by follows it, but
its noise does not. Of the cause its values count: two trends explain one another so well that
little memory is left in the residuals. Residuals also forget because they were fitted: what is
left of a random walk after curves of other walks crosses zero often, and its autocorrelations at
long lags are negative. They are summed up to the first that is not positive (Geyer, 1992), and a
fit first counts rows by the memory of values, as if nothing explained anything (`of_values`).
A table that is sorted by a variable says nothing of time: it is not judged, unless that variable
is called a date.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data import Dataset, root_names
from bayesdag.posterior.libraries import special

MATTERS = 1.2  # rows per independent row, below which nothing is said
_MOST_LAGS = 1000
_UNLIKE = 0.5  # deviation of steps, in means; 1 among sorted rows of an even distribution
_CHANGING = 0.1  # fraction of the steps that are none; dates repeat
_LAGS_OF_ROWS = 1 / 3  # of the rows over which memory is followed: that of trends is long


def rows_per_independent_row(
    u: Float[np.ndarray, "s n d"],
    observed: Bool[np.ndarray, "n d"],
    values: Float[np.ndarray, "n d"],
) -> float:
    """Bartlett's factor, averaged over pairs of variables and over draws; at least 1.

    Args:
        u: probability integral transforms of the residuals, rows in the order of the table.
        observed: where nature chose the value; the others have no residual.
        values: of the columns, in any units.
    """
    left = np.where(observed, special.ndtri(u), 0.0)
    return _factor(left, observed, values)


def of_values(data: Dataset) -> float:
    """The factor where no variable explains another, so that all of their memory is left.

    1 where rows are sorted by a column that is no date.
    """
    if is_sorted(data.values) and not is_in_time(data.values, data.names):
        return 1.0
    chosen = data.observed & ~data.contexts
    return _factor(np.where(chosen, data.scaled, 0.0)[None], chosen, data.scaled)


def _factor(
    left: Float[np.ndarray, "s n d"],
    observed: Bool[np.ndarray, "n d"],
    values: Float[np.ndarray, "n d"],
) -> float:
    """Bartlett's factor of what is left of effects and of values of causes, mean over pairs."""
    _, n, d = left.shape
    if d < 2 or n < 3:
        return 1.0
    of_effects = _autocorrelation(left, observed)
    of_causes = _autocorrelation(values[None], np.ones_like(observed))
    products = np.stack([_positive_sums(of_causes, one) for one in of_effects.T], axis=1)
    return float(1 + 2 * products[~np.eye(d, dtype=bool)].mean())


def _positive_sums(
    of_causes: Float[np.ndarray, "lag d"], of_effect: Float[np.ndarray, " lag"]
) -> Float[np.ndarray, " d"]:
    """Sums of products over lags, up to the first at which either is not positive."""
    both = (of_causes > 0) & (of_effect[:, None] > 0)
    counts = np.logical_and.accumulate(both, axis=0)
    return (of_causes * of_effect[:, None] * counts).sum(axis=0)


def _autocorrelation(
    z: Float[np.ndarray, "s n d"], observed: Bool[np.ndarray, "n d"]
) -> Float[np.ndarray, "lag d"]:
    """From lag 1 on, averaged over draws; what was not observed counts as the mean."""
    n = z.shape[1]
    z = np.where(observed, z - z.mean(axis=1, keepdims=True), 0.0)
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(z, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, : _lags(n) + 1]
    variance = np.maximum(covariance[:, :1], 1e-12)
    return (covariance[:, 1:] / variance).mean(axis=0)


def is_sorted(values: Float[np.ndarray, "n d"]) -> bool:
    """Whether the rows are in the order of a column that is no index of time.

    The steps of an index are alike, those of sorted measurements are not.
    """
    steps = np.diff(values, axis=0)
    ordered = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    unlike = steps.std(axis=0) > _UNLIKE * np.abs(steps).mean(axis=0)
    changing = (steps != 0).mean(axis=0) > _CHANGING
    return bool((ordered & unlike & changing).any())


def is_in_time(values: Float[np.ndarray, "n d"], names: Sequence[str]) -> bool:
    """Whether the rows are in the order of a column that is called a year or another date."""
    dates = values[:, [root_names.is_calendar(name) for name in names]]
    steps = np.diff(dates, axis=0)
    return bool(((steps >= 0).all(axis=0) & (steps > 0).any(axis=0)).any())


def _lags(num_rows: int) -> int:
    return max(1, min(_MOST_LAGS, int(_LAGS_OF_ROWS * num_rows)))
