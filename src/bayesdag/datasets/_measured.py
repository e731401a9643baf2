"""Published measurements: rows from an archive, and the graph that experts agree on."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._download import Archive


class Split(NamedTuple):
    """Rows to learn from, and rows to be judged on."""

    train: Int[np.ndarray, " n"]
    test: Int[np.ndarray, " m"]


def benchmark(
    dataset: Any,
    seed: int,
    archive: Archive,
    names: tuple[str, ...],
    values: Float[np.ndarray, "rows d"],
    graph: np.ndarray,
    split: Split | None,
) -> Benchmark:
    """The measurements with their truth; without a split all rows are to learn from."""
    train = Dataset(values if split is None else values[split.train], names)
    test = None
    if split is not None and len(split.test):
        test = Dataset(values[split.test], names, scaling=train.scaling)
    origin = {"dataset": plugins.configuration(dataset), "seed": seed, **archive.provenance()}
    return Benchmark(
        train=train,
        graph=graph.astype(np.int8),
        test=test,
        description=dataset.description,
        provenance=origin,
    )
