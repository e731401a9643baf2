"""Protein signalling under nine experimental conditions: all cells of Sachs et al. (2005).

Reagents activate or inhibit single proteins. An inhibitor changes what a protein does, not
always the level that is measured, so `targets` marks what was aimed at. The truth is what the
field agreed on, and disputed: never judge a method by it alone.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesdag.datasets import _conditions
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._conditions import MeasuredFile
from bayesdag.datasets._measured import Split
from bayesdag.datasets._streams import stream
from bayesdag.errors import InputError

NUM_VARIABLES, NUM_ROWS = 11, 7466
GRAPHS = {17: "adj", 20: "adj20"}
FILE = MeasuredFile("sachs_full.npz")


@dataclass(frozen=True)
class SachsFull:
    """7466 cells, 11 proteins, nine conditions, 17 or 20 edges.

    Attributes:
        marking: what a method is told: "nothing", "targets" (the proteins that the reagents
            of a condition aim at are marked as set) or "environment" (the condition of each
            row is given).
        num_edges: the graph of 17 edges or the one of 20.
        num_rows: rows drawn without replacement by the seed; None gives all, whatever the seed.
        logarithm: take the logarithm of the readings.
    """

    description: ClassVar[str] = "protein signalling, nine conditions (Sachs et al., 2005)"

    marking: str = _conditions.NOTHING
    num_edges: int = 17
    num_rows: int | None = None
    logarithm: bool = False

    def __post_init__(self) -> None:
        _conditions.check_options(self.marking, self.num_rows)
        if self.num_edges not in GRAPHS:
            raise InputError(f"num_edges is {self.num_edges}; there are graphs of 17 and of 20")

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return NUM_VARIABLES, self.num_rows or NUM_ROWS

    def __call__(self, seed: int = 0) -> Benchmark:
        """The cells, or those that the seed chooses."""
        arrays = FILE.arrays()
        if self.logarithm:
            arrays["X"] = np.log(arrays["X"].astype(np.float64))
        everyone = np.arange(len(arrays["X"]))
        chosen = _conditions.subsample(stream(seed, "sachs_full"), everyone, self.num_rows)
        rows = Split(chosen, everyone[:0])
        return _conditions.benchmark(self, seed, FILE, arrays, arrays[GRAPHS[self.num_edges]], rows)


build = SachsFull
