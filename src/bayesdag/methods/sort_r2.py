"""Sort by R², then linear regression: what predictability gives away in any units."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from bayesdag.data import Dataset
from bayesdag.data.sortability import r_squared
from bayesdag.orders import baselines


@dataclass(frozen=True)
class SortR2(baselines.Sorted):
    """A baseline: variables by ascending R², parents by linear regression with BIC.

    R² is the fraction of a column's variance that is linear in all the others. In simulated
    data it tends to grow along the causal order, and no change of units hides that: what
    `sort_variance` is for raw data, this is for standardised data.

    Attributes:
        num_samples: draws of the functions; they share one graph.

    References:
        Reisach, Tami, Seiler, Chambaz, Weichwald: A scale-invariant sorting criterion to find
        a causal order in additive noise models. NeurIPS 2023.
    """

    NOTE: ClassVar[str] = "the order is that of R² on all other columns"

    def min_rows(self, d: int) -> int:
        """With fewer rows every column is a combination of the others: all R² are 1."""
        return max(baselines.MIN_ROWS, d + 2)

    def shown(self, data: Dataset) -> Float[np.ndarray, " d"]:
        """R² of every column."""
        return explained_shares(data)


def explained_shares(data: Dataset) -> Float[np.ndarray, " d"]:
    """R² of each column over the rows where nobody set it; 0 where there are none."""
    patterns, group = np.unique(data.observed, axis=1, return_inverse=True)
    fractions = np.zeros((patterns.shape[1], data.num_variables))
    for entry, counted in enumerate(patterns.T):
        if counted.any():
            fractions[entry] = r_squared(data.values[counted])
    return fractions[group.reshape(-1), np.arange(data.num_variables)]


build = SortR2
