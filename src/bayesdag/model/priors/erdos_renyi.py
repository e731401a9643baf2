"""Edges with one fixed probability, independent of one another."""

from dataclasses import dataclass

import numpy as np

from bayesdag.errors import InputError
from bayesdag.model.priors._normaliser import edge_penalty, normalised
from bayesdag.types import Components


@dataclass(frozen=True)
class ErdosRenyi:
    """Given an order, every earlier variable is a parent with one fixed probability.

    Attributes:
        probability: of each edge that the order allows.
        expected_parents: mean number of parents per node, instead of `probability`. With
            neither, one parent per node, and never more than every second possible edge.
    """

    probability: float | None = None
    expected_parents: float | None = None

    def __post_init__(self) -> None:
        if self.probability is not None and self.expected_parents is not None:
            raise InputError("give ErdosRenyi a probability or expected_parents, not both")
        if self.probability is not None and not 0 < self.probability < 1:
            raise InputError(f"an edge probability is between 0 and 1, not {self.probability:g}")

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """One component."""
        density = np.array([self._density(d, num_contexts)])
        return normalised(edge_penalty(density, d), order_modular, num_contexts)

    def describe(self) -> str:
        """The prior in words."""
        if self.probability is not None:
            return f"each edge that the order allows has probability {self.probability:g}"
        return f"{self.expected_parents or 1:g} expected parents per variable, edges independent"

    def _density(self, d: int, num_contexts: int) -> float:
        if self.probability is not None:
            return self.probability
        # Mean number of earlier variables, of a variable: all contexts and half of the others.
        possible = max(d - num_contexts - 1, 1) / 2 + num_contexts
        if self.expected_parents is None:
            return min(0.5, 1 / possible)
        if not 0 < self.expected_parents < possible:
            raise InputError(
                f"{self.expected_parents:g} expected parents are impossible with {d} variables: "
                f"choose a number between 0 and {possible:g}"
            )
        return self.expected_parents / possible


build = ErdosRenyi
