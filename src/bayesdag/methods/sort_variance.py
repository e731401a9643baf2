"""Sort by variance, then linear regression: what the units of the data give away."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Float

from bayesdag.data import Dataset
from bayesdag.keys import generator
from bayesdag.knowledge import Constraints
from bayesdag.methods import _ordered
from bayesdag.posterior import Posterior
from bayesdag.types import Key, Monitor


@dataclass(frozen=True)
class SortVariance:
    """A yardstick: variables by ascending variance, parents by linear regression with BIC.

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

    honours: ClassVar[frozenset[str]] = _ordered.HONOURS
    interventions: ClassVar[bool] = True

    num_samples: int = 100

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing about any regression."""
        del d
        return _ordered.MIN_ROWS

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """One graph, with `num_samples` draws of its functions."""
        del monitor  # done in seconds
        _ordered.check_num_samples(self.num_samples)
        key_ties, key_functions = jax.random.split(key)
        priority = _ordered.ascending(variances(data), generator(key_ties))
        order = _ordered.constrained_order(priority, _ordered.precedence(knowledge))
        note = "the order is that of the variances in original units"
        return _ordered.posterior_of_orders(
            key_functions, data, knowledge, order[None], self.num_samples, note
        )


def variances(data: Dataset) -> Float[np.ndarray, " d"]:
    """Variance of each column over the rows where nobody set it; 0 where there are none."""
    columns = (data.values[counted, j] for j, counted in enumerate(data.observed.T))
    return np.array([column.var() if len(column) else 0.0 for column in columns])


build = SortVariance
