"""No preference among graphs."""

from dataclasses import dataclass

import numpy as np

from bayesdag.model.priors._normaliser import normalised
from bayesdag.types import Components


@dataclass(frozen=True)
class Uniform:
    """Every DAG (or every pair of an order and a DAG) is as probable as any other."""

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """One component without a penalty."""
        return normalised(np.zeros((1, d)), order_modular, num_contexts)

    def describe(self) -> str:
        """The prior in words."""
        return "uniform over graphs"


build = Uniform
