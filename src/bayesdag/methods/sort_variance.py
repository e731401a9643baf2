"""Sort by variance, then linear regression: what the units of the data give away."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from bayesdag.data import Dataset
from bayesdag.orders import baselines


@dataclass(frozen=True)
class SortVariance(baselines.Sorted):
    """A baseline: variables by ascending variance, parents by linear regression with BIC.

    It reads the scale of the data on purpose: variances are those of the original units,
    whatever the scaling of the data set. In raw simulated data effects vary more than their
    causes, and this alone finds most of the order; a method that does not beat it there
    may have found nothing else. On standardised columns all variances tie and the order is
    random.

    Attributes:
        num_samples: draws of the functions; they share one graph.

    References:
        Reisach, Seiler, Weichwald: Beware of the simulated DAG! NeurIPS 2021.
    """

    NOTE: ClassVar[str] = "the order is that of the variances in original units"

    def shown(self, data: Dataset) -> Float[np.ndarray, " d"]:
        """Variance of every column."""
        return variances(data)


def variances(data: Dataset) -> Float[np.ndarray, " d"]:
    """Variance of each column over the rows where nobody set it; 0 where there are none."""
    columns = (data.values[counted, j] for j, counted in enumerate(data.observed.T))
    return np.array([column.var() if len(column) else 0.0 for column in columns])


build = SortVariance
