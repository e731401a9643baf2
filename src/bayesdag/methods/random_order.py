"""Random orders, then linear regression: what chance and correlation alone achieve."""

from dataclasses import dataclass

import numpy as np

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.orders import baselines
from bayesdag.posterior import Posterior
from bayesdag.random import generator, split
from bayesdag.types import ExactDependence, Key, Monitor


@dataclass(frozen=True)
class RandomOrder:
    """A baseline: random variable orders, parents by linear regression with BIC.

    It sees which variables go together and guesses every direction, so a method that does
    not beat it has learnt nothing about causes. Its draws are no posterior: the orders
    do not depend on the data.

    With knowledge the next variable is drawn among those that may come next.

    Attributes:
        num_samples: orders, with one graph and one draw of its functions each.
    """

    supported_constraints = baselines.SUPPORTED_CONSTRAINTS
    supports_interventions = True
    exact_dependence = ExactDependence.IGNORED

    num_samples: int = 100

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing about any regression."""
        del d
        return baselines.MIN_ROWS

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """One graph for each of `num_samples` random orders."""
        del monitor  # done in seconds
        baselines.check_num_samples(self.num_samples)
        key_orders, key_functions = split(key)
        priorities = generator(key_orders).random((self.num_samples, data.num_variables))
        before = baselines.precedence(knowledge)
        orders = np.stack([baselines.constrained_order(p, before) for p in priorities])
        note = "the orders are random, every direction is a guess"
        return baselines.posterior_of_orders(
            key_functions, data, knowledge, orders, self.num_samples, note
        )


build = RandomOrder
