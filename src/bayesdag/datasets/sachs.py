"""Protein signalling in human immune cells: the field's best-known real data set.

Sachs, Perez, Pe'er, Lauffenburger and Nolan, "Causal protein-signaling networks derived from
multiparameter single-cell data", Science 308 (2005). Each row is one cell, measured by flow
cytometry without any intervention on the proteins. The truth is the network of 17 edges that
the literature compares with; biologists would add to it, so no method should reach it fully.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._download import Archive
from bayesdag.datasets._measured import Split, benchmark
from bayesdag.datasets._streams import stream
from bayesdag.errors import InputError

NUM_ROWS = 853
PROTEINS = ("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk")
ARCHIVE = Archive(
    name="sachs.zip",
    sha256="7fc02c1cf6919804684e06962c5f963a240fed28ec14b5c122c35c70ac3753b2",
)


@dataclass(frozen=True)
class Sachs:
    """853 cells, 11 proteins, 17 edges.

    Attributes:
        num_bootstrap: rows drawn with replacement by the seed, the cells left out becoming
            the test rows (the paper draws 800); None gives all cells, whatever the seed.
        logarithm: take the logarithm of the readings, as cytometry usually does; they are
            counts from 1 to thousands with a long tail.
    """

    description: ClassVar[str] = "protein signalling in single cells (Sachs et al., 2005)"
    size: ClassVar[tuple[int, int]] = (len(PROTEINS), NUM_ROWS)

    num_bootstrap: int | None = None
    logarithm: bool = False

    def __post_init__(self) -> None:
        if self.num_bootstrap is not None and self.num_bootstrap < 2:
            raise InputError(f"num_bootstrap is {self.num_bootstrap}; it must be 2 or more")

    def __call__(self, seed: int = 0) -> Benchmark:
        """The cells, or the bootstrap sample of this seed."""
        values, graph = ARCHIVE.arrays("sachs/continuous/data1.npy", "sachs/continuous/DAG1.npy")
        values = np.log(values) if self.logarithm else values
        return benchmark(self, seed, ARCHIVE, PROTEINS, values, graph, self._split(seed))

    def _split(self, seed: int) -> Split | None:
        if self.num_bootstrap is None:
            return None
        chosen = stream(seed, "sachs").integers(NUM_ROWS, size=self.num_bootstrap)
        return Split(chosen, np.setdiff1d(np.arange(NUM_ROWS), chosen))


build = Sachs
