"""A real light tunnel: lamps and filters that act on sensors, wired by hand.

Causal Chambers (Gamella, Peters and Bühlmann, "Causal chambers as a real-world physical testbed
for AI methodology", 2025). The truth is physics: actuators are set independently of everything,
so they are roots. The infrared and the visible sensor of one position share a fluctuation, a
hidden common cause: whether an arrow joins them has no answer, and is never scored.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesdag.datasets import _conditions
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._conditions import MeasuredFile
from bayesdag.datasets._measured import Split
from bayesdag.datasets._streams import stream

NUM_VARIABLES, NUM_ROWS, NUM_TRAIN = 11, 13_000, 9000
FIRST_HELD_OUT = 6  # conditions from here on have stronger settings of the actuators
FILE = MeasuredFile("chamber_light.npz")


@dataclass(frozen=True)
class LightTunnel:
    """13000 readings, 11 variables, eleven settings of the actuators, 21 edges.

    Attributes:
        marking: what a method is told: "nothing", "targets" (actuators whose distribution a
            condition moved are marked as set) or "environment" (the condition of each row is
            given).
        num_rows: rows drawn without replacement by the seed; None gives all, whatever the seed.
        held_out: the five conditions with stronger settings are test rows, and not learnt from.
    """

    description: ClassVar[str] = "a real light tunnel, eleven conditions (Causal Chambers)"

    marking: str = _conditions.NOTHING
    num_rows: int | None = None
    held_out: bool = True

    def __post_init__(self) -> None:
        _conditions.check_options(self.marking, self.num_rows)

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return NUM_VARIABLES, self.num_rows or (NUM_TRAIN if self.held_out else NUM_ROWS)

    def __call__(self, seed: int = 0) -> Benchmark:
        """The readings, or those that the seed chooses."""
        arrays = FILE.arrays()
        kept = arrays["env"] < FIRST_HELD_OUT
        kept = kept if self.held_out else np.ones_like(kept)
        chosen = np.flatnonzero(kept)
        chosen = _conditions.subsample(stream(seed, "light_tunnel"), chosen, self.num_rows)
        rows = Split(chosen, np.flatnonzero(~kept))
        return _conditions.benchmark(self, seed, FILE, arrays, arrays["adj"], rows)


build = LightTunnel
