"""Few variables with many parents: in-degrees that follow a power law."""

from dataclasses import dataclass

import numpy as np

from bayesdag.model.priors._normaliser import normalised
from bayesdag.types import Components


@dataclass(frozen=True)
class ScaleFree:
    """A node with k parents has weight (1 + k)^-exponent.

    Attributes:
        exponent: 3 is that of preferential attachment.
    """

    exponent: float = 3.0

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """One component."""
        penalty = -self.exponent * np.log1p(np.arange(d))[None, :]
        return normalised(penalty, order_modular, num_contexts)

    def describe(self) -> str:
        """The prior in words."""
        return f"in-degrees k with weight (1 + k)^-{self.exponent:g} (scale-free)"


build = ScaleFree
