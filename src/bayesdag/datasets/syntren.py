"""Simulated gene expression: networks cut from known regulation, kinetics from biology.

Van den Bulcke et al., "SynTReN: a generator of synthetic gene expression data", BMC
Bioinformatics 7 (2006); the ten sets that Lachapelle et al., "Gradient-based neural DAG
learning" (2020), made with it. The archive does not name the genes.
"""

from dataclasses import dataclass
from typing import ClassVar

from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._download import Archive
from bayesdag.datasets._measured import Split, benchmark
from bayesdag.datasets._streams import stream
from bayesdag.errors import InputError

NUM_ROWS = 500
NUM_SETS = 10
GENES = tuple(f"gene{number:02d}" for number in range(1, 21))
ARCHIVE = Archive(
    name="syntren_p20.zip",
    sha256="ff866971370d6b6eb9648845d69eb81ec5ad9d3640cb33794f876552dc29fe51",
)


@dataclass(frozen=True)
class Syntren:
    """500 experiments on 20 genes; ten networks of 19 to 34 edges.

    Attributes:
        index: which of the ten sets, 1 to 10; the paper uses 1 to 5.
        num_test: rows kept back for testing, chosen by the seed (the paper's code keeps 100);
            0 gives all rows to learn from, whatever the seed.
    """

    description: ClassVar[str] = "simulated gene expression, ten networks (SynTReN, 2006)"
    size: ClassVar[tuple[int, int]] = (len(GENES), NUM_ROWS)

    index: int = 1
    num_test: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.index <= NUM_SETS:
            raise InputError(f"index is {self.index}; the sets are numbered 1 to {NUM_SETS}")
        if not 0 <= self.num_test <= NUM_ROWS - 2:
            raise InputError(f"num_test is {self.num_test}; it must be 0 to {NUM_ROWS - 2}")

    def __call__(self, seed: int = 0) -> Benchmark:
        """The set, split by the seed if test rows are asked for."""
        values, graph = ARCHIVE.arrays(
            f"syntren/data{self.index}.npy", f"syntren/DAG{self.index}.npy"
        )
        return benchmark(self, seed, ARCHIVE, GENES, values, graph, self._split(seed))

    def _split(self, seed: int) -> Split | None:
        if not self.num_test:
            return None
        order = stream(seed, "syntren", self.index).permutation(NUM_ROWS)
        return Split(order[self.num_test :], order[: self.num_test])


build = Syntren
