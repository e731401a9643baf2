"""Networks of columns with levels whose tables of probabilities are known."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.data.kinds import Kind
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._networks import ASIA, TableNetwork, read_bif
from bayesdag.datasets._streams import stream
from bayesdag.errors import InputError


@dataclass(frozen=True)
class DiscreteNetwork:
    """Rows of a Bayesian network of tables: asia, or one in a BIF file.

    Levels that do not occur in the rows are left out; a column with one level is refused.

    Attributes:
        path: a file in the BIF format (.bif or .bif.gz), such as those of child, insurance or
            alarm that other packages distribute; empty: asia, with eight columns.
        num_train: rows.
    """

    description: ClassVar[str] = "columns with levels and known tables: asia, or a BIF file"

    path: str = ""
    num_train: int = 1000

    def __post_init__(self) -> None:
        if self.num_train < 2:
            raise InputError(f"num_train is {self.num_train}; it must be 2 or more")

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return len(self._network.levels), self.num_train

    @property
    def _network(self) -> TableNetwork:
        return read_bif(Path(self.path)) if self.path else ASIA

    def __call__(self, seed: int = 0) -> Benchmark:
        """Rows of this seed."""
        network = self._network
        codes = network.sample(stream(seed, "discrete_network"), self.num_train)
        kinds = []
        for j, (name, labels) in enumerate(network.levels.items()):
            seen, codes[:, j] = np.unique(codes[:, j], return_inverse=True)
            if len(seen) < 2:
                raise InputError(
                    f"column {name!r} is {labels[int(seen[0])]!r} in all {self.num_train} rows; "
                    "draw more rows, or others (seed)"
                )
            kind = "binary" if len(seen) == 2 else "categorical"
            kinds.append(Kind(kind, tuple(labels[int(k)] for k in seen)))
        return Benchmark(
            train=Dataset(codes, tuple(network.levels), kinds=tuple(kinds)),
            graph=network.graph,
            description=self.description,
            provenance={"dataset": plugins.configuration(self), "seed": seed},
        )


build = DiscreteNetwork
