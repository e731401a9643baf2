"""Regression tests of linearity, one for every variable.

If all functions are linear and all noise Gaussian, each variable is linear in the others
too, whichever way the arrows point. So squares, kinks and products of the variables that
predict it best must not predict what linear regression leaves: an exact F test, with a
correction for the number of variables.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtrc

from bayesdag.data import Dataset, _exact_fit

# Chance of calling linear Gaussian data nonlinear.
LEVEL = 0.001
# Share of the unexplained variance below which a significant curve does not count: skewed or
# heavy-tailed noise in linear data explains up to 7 % at 1000 rows, generated functions more.
LEAST_GAIN = 0.075
# Predictors whose curves are tried, and how many of them in products.
MOST_PREDICTORS, MOST_IN_PRODUCTS = 8, 4


class Linearity(NamedTuple):
    """Result of the test for every variable.

    Attributes:
        p_value: chance of so much curvature in linear Gaussian data, corrected for the
            number of variables.
        gain: share of the variance left by linear regression that curves explain.
        names: of the variables.
    """

    p_value: Float[np.ndarray, " d"]
    gain: Float[np.ndarray, " d"]
    names: tuple[str, ...]

    @property
    def nonlinear(self) -> list[str]:
        """Variables that are not linear in the others, most nonlinear first."""
        found = np.flatnonzero((self.p_value < LEVEL) & (self.gain > LEAST_GAIN))
        return [self.names[i] for i in found[np.argsort(-self.gain[found], kind="stable")]]

    def _negligible(self) -> str:
        """Variance that curves explain, and whether chance explains as much."""
        significant = self.p_value < LEVEL
        if not significant.any():
            return (
                "curves of other variables explain no more than chance beyond linear regression "
                f"(smallest corrected p-value {self.p_value.min():.2g})"
            )
        most = int(np.argmax(np.where(significant, self.gain, -1.0)))
        return (
            f"curves of other variables explain at most {self.gain[most]:.1%} of what linear "
            f"regression leaves of any variable (threshold {LEAST_GAIN:.1%}), although "
            f"significantly (corrected p-value {self.p_value[most]:.2g})"
        )

    def describe(self) -> str:
        """The verdict in words, with the figure that decided."""
        nonlinear = self.nonlinear
        if not nonlinear:
            return f"the data look linear: {self._negligible()}"
        worst = self.names.index(nonlinear[0])
        more = f" and {len(nonlinear) - 1} more" if len(nonlinear) > 1 else ""
        return (
            f"the data do not look linear: curves of other variables explain "
            f"{self.gain[worst]:.0%} of what linear regression leaves of {nonlinear[0]}"
            f"{more} (corrected p-value {self.p_value[worst]:.2g})"
        )


def linearity(data: Dataset) -> Linearity:
    """The test for all variables, each over the rows in which nobody set it.

    Where columns determine one another linearly, each is tested against all the others; where
    they do so in another way, not at all: a product is no sign of nonlinear causes.
    """
    d = data.num_variables
    units = [_exact_fit.resolution(column) for column in data.values.T]
    rounding = np.array(units) / data.scaling.scale / np.sqrt(12)
    results = [
        _curvature(data.scaled[data.observed[:, i]][:, kept], kept.index(i), rounding[kept])
        for i, kept in enumerate(_tested_with(data))
    ]
    p_value, gain = (np.array(column) for column in zip(*results, strict=True))
    return Linearity(np.minimum(1.0, p_value * d), gain, data.names)


def _tested_with(data: Dataset) -> list[list[int]]:
    """For each variable itself and those whose curves are tried."""
    every = list(range(data.num_variables))
    kept = [every] * len(every)
    for group in data.dependences.groups:
        linear = all(relation.linear for relation in data.dependences.relations_of(group))
        for i in group:
            kept[i] = [j for j in every if j not in group or j == i] if linear else [i]
    return kept


def _curvature(
    rows: Float[np.ndarray, "n d"],
    node: int,
    rounding: Float[np.ndarray, " d"] | None = None,
) -> tuple[float, float]:
    """p-value and adjusted share of the residual variance that curves explain.

    Args:
        rounding: standard deviation of the rounding error of each column; residuals of no
            more than that show no curves.
    """
    if len(rows) < 30:
        return 1.0, 0.0
    others = _predictors(rows, node)
    if len(others) == 0:
        return 1.0, 0.0
    linear = np.column_stack([np.ones(len(rows)), rows[:, others]])
    curves = _curves(rows[:, others])
    left = _residual(linear, rows[:, node])
    if rounding is not None and _is_rounding(left, rows, node, others, rounding):
        return 1.0, 0.0
    both = np.column_stack([linear, curves])
    rest = _residual(both, rows[:, node])
    extra, free = curves.shape[1], len(rows) - both.shape[1]
    if free < extra:
        return 1.0, 0.0
    ratio = ((left @ left - rest @ rest) / extra) / (rest @ rest / free)
    gain = 1 - (rest @ rest / free) / (left @ left / (free + extra))
    return float(fdtrc(extra, free, ratio)), float(max(gain, 0.0))


def _is_rounding(
    left: np.ndarray, rows: np.ndarray, node: int, others: np.ndarray, rounding: np.ndarray
) -> bool:
    """Whether linear regression leaves no more than rounding of its columns explains."""
    weights = _exact_fit.least_squares(rows[:, others], rows[:, node]).weights[1:]
    explained = rounding[node] ** 2 + weights**2 @ rounding[others] ** 2
    return bool(left @ left / len(left) <= _exact_fit.TIMES_ROUNDING * explained)


def _predictors(rows: Float[np.ndarray, "n d"], node: int) -> Int[np.ndarray, " k"]:
    """The other variables with the largest weights in a linear regression."""
    others = np.delete(np.arange(rows.shape[1]), node)
    if len(others) == 0:
        return others
    design = np.column_stack([np.ones(len(rows)), rows[:, others]])
    weights = np.linalg.lstsq(design, rows[:, node], rcond=None)[0][1:]
    size = np.abs(weights) * rows[:, others].std(axis=0)
    return others[np.argsort(-size, kind="stable")[:MOST_PREDICTORS]]


def _curves(z: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n q"]:
    """Squares, kinks and products, of values that outliers cannot dominate."""
    z = (z - z.mean(axis=0)) / (z.std(axis=0) + 1e-12)
    z = np.clip(z, -3, 3)
    pairs = list(combinations(range(min(z.shape[1], MOST_IN_PRODUCTS)), 2))
    products = [z[:, a] * z[:, b] for a, b in pairs]
    return np.column_stack([z**2, np.abs(z), z * np.abs(z), *products])


def _residual(design: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"]) -> np.ndarray:
    basis, pivots = np.linalg.qr(design)
    size = np.abs(np.diagonal(pivots))
    kept = basis[:, size > 1e-9 * size.max()]
    return y - kept @ (kept.T @ y)
