"""Random models of measurements, half of whose columns are recorded as levels.

The causes act before anything is cut, as where income is asked for in brackets: what the levels
leave out still acts, and no model of the recorded columns alone is exactly right.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.data.kinds import Kind
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._levels import cut, half_levels
from bayesdag.datasets._streams import stream
from bayesdag.datasets.synthetic import Synthetic

CUTS = (0.15, 0.85)  # quantiles between which thresholds lie


@dataclass(frozen=True)
class Discretised:
    """A synthetic data set with half of its columns cut into 2, 4 or 3 levels.

    Attributes:
        num_variables: columns.
        edges_per_node: e; the graph has e d edges.
        mechanism: of the measurements before they are cut, as in `synthetic`.
        num_train: rows to learn from.
        num_test: fresh rows.
    """

    description: ClassVar[str] = "a synthetic set, half of its columns cut into levels afterwards"

    num_variables: int = 8
    edges_per_node: int = 1
    mechanism: str = "signed_linear"
    num_train: int = 1000
    num_test: int = 500

    def __post_init__(self) -> None:
        self._measured()

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return self.num_variables, self.num_train

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed."""
        whole = self._measured()(seed)
        rng = stream(seed, "discretised", self.num_variables)
        kinds = half_levels(rng, self.num_variables)
        cuts = [
            _thresholds(rng, column, kind)
            for column, kind in zip(whole.train.values.T, kinds, strict=True)
        ]
        train = Dataset(_coded(whole.train, kinds, cuts), whole.train.names, kinds=kinds)
        test = None
        if whole.test is not None:
            rows = _coded(whole.test, kinds, cuts)
            test = Dataset(rows, train.names, None, train.scaling, kinds=kinds)
        return Benchmark(
            train=train,
            graph=whole.graph,
            test=test,
            description=self.description,
            provenance={"dataset": plugins.configuration(self), "seed": seed},
        )

    def _measured(self) -> Synthetic:
        return Synthetic(
            self.num_variables,
            edges_per_node=self.edges_per_node,
            mechanism=self.mechanism,
            scaling="standardised",
            num_train=self.num_train,
            num_test=self.num_test,
        )


def _thresholds(rng: np.random.Generator, column: np.ndarray, kind: Kind) -> np.ndarray:
    """Quantiles, far enough apart that every level has rows."""
    number = len(kind.levels) - 1
    steps = rng.uniform(0.5, 1.5, number + 1).cumsum()
    places = CUTS[0] + (CUTS[1] - CUTS[0]) * steps[:-1] / steps[-1] if number > 0 else []
    return np.quantile(column, places)


def _coded(data: Dataset, kinds: tuple[Kind, ...], cuts: list[np.ndarray]) -> np.ndarray:
    pairs = zip(data.values.T, kinds, cuts, strict=True)
    return np.stack(
        [cut(column, own) if kind.is_discrete else column for column, kind, own in pairs], axis=1
    )


build = Discretised
