"""Data sets as a suite wants them: other units, or the sets of the published code."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesdag.data import Dataset, Scaling, read
from bayesdag.datasets import Benchmark
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError

ANCHORS = "BAYESDAG_ANCHORS"
_GAPS = 4242  # beside the seed: not the numbers that made the rows


def five_linear(graph: str) -> Synthetic:
    """The paper's linear data: five variables, five edges, in expectation of random graphs."""
    return Synthetic(
        num_variables=5,
        graph=graph,
        edges_per_node=1,
        expected=graph == "er",
        mechanism="linear",
        num_train=500,
        num_test=100,
    )


def standardised_columns(
    num_variables: int,
    num_rows: int,
    mechanism: str = "mlp",
    edges_per_node: int = 1,
    **others: Any,
) -> Synthetic:
    """Random data whose columns do not tell the order by their variances; none held out."""
    return Synthetic(
        num_variables=num_variables,
        edges_per_node=edges_per_node,
        mechanism=mechanism,
        num_train=num_rows,
        num_test=0,
        scaling="standardised",
        **others,
    )


@dataclass(frozen=True)
class Standardised:
    """Another data set, its columns brought to mean 0 and variance 1 for all who see it."""

    dataset: Callable[[int], Benchmark]

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed."""
        source = self.dataset(seed)
        scaling = Scaling.of(source.train.values)

        def scaled(data: Dataset) -> Dataset:
            return Dataset(scaling.apply(data.values), data.names)

        test = source.test and scaled(source.test)
        return replace(source, train=scaled(source.train), test=test)


@dataclass(frozen=True)
class OriginalUnits:
    """Another data set, fitted in the units of its columns, as the paper's runs were."""

    dataset: Callable[[int], Benchmark]

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed."""
        source = self.dataset(seed)
        scaling = Scaling.of(source.train.values, "none")
        return replace(source, train=replace(source.train, scaling=scaling))


@dataclass(frozen=True)
class WithGaps:
    """Another data set, some of whose cells were not measured.

    Attributes:
        dataset: without gaps.
        fraction: of the cells that are missing, on average.
        at_random: cells are missing where another column is high (missing at random), instead of
            anywhere.
        whole_rows: rows with a gap are thrown away, as people do.
    """

    dataset: Callable[[int], Benchmark]
    fraction: float = 0.1
    at_random: bool = False
    whole_rows: bool = False

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed; the gaps depend on nothing but the seed and the rows."""
        source = self.dataset(seed)
        missing = self._gaps(np.random.default_rng([_GAPS, seed]), source.train.values)
        if not self.whole_rows:
            values = np.where(missing, np.nan, source.train.values)
            return replace(source, train=read(pd.DataFrame(values, columns=source.train.names)))
        whole = ~missing.any(axis=1)
        return replace(source, train=Dataset(source.train.values[whole], source.train.names))

    def _gaps(self, rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
        """The first column is whole, and decides which cells of others are missing at random."""
        chance = np.full(values.shape, self.fraction)
        if self.at_random:
            high = values[:, :1] > np.median(values[:, 0])
            chance = self.fraction * np.where(high, 1.75, 0.25) * np.ones(values.shape)
        chance[:, 0] = 0.0
        return rng.random(values.shape) < chance


@dataclass(frozen=True)
class PublishedSet:
    """A data set of the published generator: an .npz file in the folder BAYESDAG_ANCHORS.

    Attributes:
        name: of the file, which holds `X_train`, `X_test` and `adj`.
    """

    name: str

    def __call__(self, seed: int = 0) -> Benchmark:
        """The same rows whatever the seed."""
        del seed
        folder = os.environ.get(ANCHORS)
        path = Path(folder or "") / f"{self.name}.npz"
        if not folder or not path.is_file():
            raise InputError(
                f"there is no {path.name}: name the folder of the published data sets in {ANCHORS}"
            )
        with np.load(path) as file:
            train, test, graph = (np.asarray(file[k], float) for k in ("X_train", "X_test", "adj"))
        names = tuple(f"x{i}" for i in range(train.shape[1]))
        return Benchmark(Dataset(train, names), graph.astype(np.int8), Dataset(test, names))
