"""The empty graph: the baseline that claims nothing."""

from dataclasses import dataclass

import numpy as np

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.orders import baselines
from bayesdag.posterior import Posterior
from bayesdag.types import ExactDependence, Key, Monitor


@dataclass(frozen=True)
class Empty:
    """A baseline: no edges but the required ones.

    A method whose expected SHD is above this one's has more wrong edges than right ones.

    Attributes:
        num_samples: draws of means, scales and the functions of required edges.
    """

    supported_constraints = baselines.SUPPORTED_CONSTRAINTS
    supports_interventions = True
    exact_dependence = ExactDependence.IGNORED

    num_samples: int = 100

    def min_rows(self, d: int) -> int:
        """A mean and a variance take two."""
        del d
        return 2

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """One graph, with `num_samples` draws of its functions."""
        del monitor  # done at once
        baselines.check_num_samples(self.num_samples)
        graph = knowledge.required.astype(np.int8)
        note = "no edges but the required ones"
        return baselines.posterior_of_graphs(key, data, graph[None], self.num_samples, note)


build = Empty
