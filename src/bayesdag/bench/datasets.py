"""Data sets as a suite wants them: other units, or the sets of the published code."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesdag.data import Dataset, Scaling
from bayesdag.datasets import Benchmark
from bayesdag.errors import InputError

ANCHORS = "BAYESDAG_ANCHORS"


@dataclass(frozen=True)
class Standardised:
    """Another data set, its columns brought to mean 0 and variance 1 for all who see it."""

    dataset: Any

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

    dataset: Any

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed."""
        source = self.dataset(seed)
        scaling = Scaling.of(source.train.values, "none")
        return replace(source, train=replace(source.train, scaling=scaling))


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
