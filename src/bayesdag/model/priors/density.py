"""An edge probability that is unknown, marginalised over a log grid."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesdag.errors import InputError
from bayesdag.model.priors._normaliser import edge_penalty, normalised
from bayesdag.types import Components


@dataclass(frozen=True)
class DensityGrid:
    """An unknown edge density, on a grid of equally probable values.

    The densities are spaced evenly in the logarithm, from 1/(2d) (a quarter of a parent per
    node) to one half (no preference among graphs). Each is normalised, so that the data
    choose between them: this is what keeps many variables from producing many false edges.

    Attributes:
        num: number of densities.
    """

    num: int = 16

    def __post_init__(self) -> None:
        if self.num < 1:
            raise InputError(f"a grid of {self.num} densities is empty; choose 1 or more")

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """One component per density."""
        return normalised(edge_penalty(self.densities(d), d), order_modular, num_contexts)

    def densities(self, d: int) -> Float[np.ndarray, " c"]:
        """Edge probabilities given an order, sparsest first."""
        return np.geomspace(1 / (2 * d), 0.5, self.num)

    def describe(self) -> str:
        """The prior in words."""
        return f"edge probability marginalised over a log grid of {self.num} values up to one half"


build = DensityGrid
