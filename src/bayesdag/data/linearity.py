"""Do the data look linear? A regression test for every variable.

If all functions are linear and all noise Gaussian, each variable is linear in the others
too, whichever way the arrows point. So squares, kinks and products of the variables that
predict it best must not predict what linear regression leaves: an exact F test, with a
correction for the number of variables.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from bayesdag.data import Dataset

# Chance of calling linear Gaussian data nonlinear.
LEVEL = 0.001
# Share of the unexplained variance below which a significant curve does not count: skewed or
# heavy-tailed noise in linear data explains up to 7 % at 1000 rows, generated functions more.
LEAST_GAIN = 0.075
# Predictors whose curves are tried, and how many of them in products.
MOST_PREDICTORS, MOST_IN_PRODUCTS = 8, 4


class Linearity(NamedTuple):
    """What the test says of every variable.

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
    def curved(self) -> list[str]:
        """Variables that are not linear in the others, most curved first."""
        found = np.flatnonzero((self.p_value < LEVEL) & (self.gain > LEAST_GAIN))
        return [self.names[i] for i in found[np.argsort(-self.gain[found], kind="stable")]]

    def describe(self) -> str:
        """The verdict in words, with the figure that decided."""
        curved = self.curved
        if not curved:
            return (
                "the data look linear: curves of other variables explain nothing beyond linear "
                f"regression (smallest corrected p-value {self.p_value.min():.2g})"
            )
        worst = self.names.index(curved[0])
        more = f" and {len(curved) - 1} more" if len(curved) > 1 else ""
        return (
            f"the data do not look linear: curves of other variables explain "
            f"{self.gain[worst]:.0%} of what linear regression leaves of {curved[0]}"
            f"{more} (corrected p-value {self.p_value[worst]:.2g})"
        )


def linearity(data: Dataset) -> Linearity:
    """The test for all variables, each over the rows in which nobody set it."""
    d = data.num_variables
    results = [_curvature(data.scaled[data.observed[:, i]], i) for i in range(d)]
    p_value, gain = (np.array(column) for column in zip(*results, strict=True))
    return Linearity(np.minimum(1.0, p_value * d), gain, data.names)


def _curvature(rows: Float[np.ndarray, "n d"], node: int) -> tuple[float, float]:
    """p-value and adjusted share of the residual variance that curves explain."""
    others = _predictors(rows, node)
    if len(others) == 0 or len(rows) < 30:
        return 1.0, 0.0
    linear = np.column_stack([np.ones(len(rows)), rows[:, others]])
    curves = _curves(rows[:, others])
    left = _residual(linear, rows[:, node])
    both = np.column_stack([linear, curves])
    rest = _residual(both, rows[:, node])
    extra, free = curves.shape[1], len(rows) - both.shape[1]
    if free < extra:
        return 1.0, 0.0
    ratio = ((left @ left - rest @ rest) / extra) / (rest @ rest / free)
    gain = 1 - (rest @ rest / free) / (left @ left / (free + extra))
    return float(stats.f.sf(ratio, extra, free)), float(max(gain, 0.0))


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
