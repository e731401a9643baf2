"""Every number of parents equally probable."""

from dataclasses import dataclass

import numpy as np

from bayesdag.model.priors._normaliser import log_choose, normalised
from bayesdag.types import Components


@dataclass(frozen=True)
class FairInDegree:
    """Every in-degree is as probable as any other: k parents cost log C(d - 1, k)."""

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """One component."""
        penalty = -log_choose(d - 1, np.arange(d))[None, :]
        return normalised(penalty, order_modular, num_contexts)

    def describe(self) -> str:
        """The prior in words."""
        return "every number of parents equally probable, and every set of that size"


build = FairInDegree
