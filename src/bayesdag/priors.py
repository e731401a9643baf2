"""Priors: what is believed before the data are seen.

A structure prior is a mixture of components; each charges a node with k parents the log
weight `penalty[k]`. That is all a score table needs, and enough for every usual prior. Under
the *order-modular* reading (the one that node potentials induce) these weights are shared
out over pairs of an order and a DAG that agrees with it, so a DAG counts once for each of its
orders; under the *graph-modular* one over DAGs.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesdag.types import InputError

Components = tuple[Float[np.ndarray, " c"], Float[np.ndarray, "c d"]]


@runtime_checkable
class StructurePrior(Protocol):
    """A mixture of local in-degree penalties; a frozen dataclass of its settings."""

    def components(self, d: int, order_modular: bool = True) -> Components:
        """Log weights, less each component's log normaliser, and penalties by in-degree.

        So Σ_c exp(log_weights[c] + Σ_i penalty[c, in-degree of i]) sums to one, over all
        pairs of order and DAG or over all DAGs.
        """
        ...

    def describe(self) -> str:
        """The prior in words."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Every DAG (or every pair of an order and a DAG) is as probable as any other."""

    def components(self, d: int, order_modular: bool = True) -> Components:
        """One component without a penalty."""
        return _normalised(np.zeros((1, d)), order_modular)

    def describe(self) -> str:
        """The prior in words."""
        return "uniform over graphs"


@dataclass(frozen=True)
class ErdosRenyi:
    """Given an order, every earlier variable is a parent with one fixed probability.

    Attributes:
        probability: of each edge that the order allows.
        expected_parents: mean number of parents a node, instead of `probability`. With
            neither, one parent a node, and never more than every second possible edge.
    """

    probability: float | None = None
    expected_parents: float | None = None

    def __post_init__(self) -> None:
        if self.probability is not None and self.expected_parents is not None:
            raise InputError("give ErdosRenyi a probability or expected_parents, not both")
        if self.probability is not None and not 0 < self.probability < 1:
            raise InputError(f"an edge probability is between 0 and 1, not {self.probability:g}")

    def components(self, d: int, order_modular: bool = True) -> Components:
        """One component."""
        return _normalised(_edge_penalty(np.array([self._density(d)]), d), order_modular)

    def describe(self) -> str:
        """The prior in words."""
        if self.probability is not None:
            return f"each edge that the order allows has probability {self.probability:g}"
        return f"{self.expected_parents or 1:g} expected parents a variable, edges independent"

    def _density(self, d: int) -> float:
        if self.probability is not None:
            return self.probability
        possible = max(d - 1, 1) / 2
        if self.expected_parents is None:
            return min(0.5, 1 / possible)
        if not 0 < self.expected_parents < possible:
            raise InputError(
                f"{self.expected_parents:g} expected parents are impossible with {d} variables: "
                f"choose a number between 0 and {possible:g}"
            )
        return self.expected_parents / possible


@dataclass(frozen=True)
class FairInDegree:
    """Every in-degree is as probable as any other: k parents cost log C(d - 1, k)."""

    def components(self, d: int, order_modular: bool = True) -> Components:
        """One component."""
        return _normalised(-_log_choose(d - 1, np.arange(d))[None, :], order_modular)

    def describe(self) -> str:
        """The prior in words."""
        return "every number of parents equally probable, and every set of that size"


@dataclass(frozen=True)
class DensityGrid:
    """An unknown edge density, on a grid of equally probable values.

    The densities are spaced evenly in the logarithm, from 1/(2d) (a quarter of a parent a
    node) to one half (no preference among graphs). Each is normalised, so that the data
    choose between them: this is what keeps many variables from producing many false edges.

    Attributes:
        num: number of densities.
    """

    num: int = 16

    def __post_init__(self) -> None:
        if self.num < 1:
            raise InputError(f"a grid of {self.num} densities is empty; choose 1 or more")

    def components(self, d: int, order_modular: bool = True) -> Components:
        """One component a density."""
        return _normalised(_edge_penalty(self.densities(d), d), order_modular)

    def densities(self, d: int) -> Float[np.ndarray, " c"]:
        """Edge probabilities given an order, sparsest first."""
        return np.geomspace(1 / (2 * d), 0.5, self.num)

    def describe(self) -> str:
        """The prior in words."""
        return f"unknown edge density, {self.num} values up to one half equally probable"


GRAPH_PRIORS: dict[str, type[StructurePrior]] = {
    "uniform": Uniform,
    "erdos_renyi": ErdosRenyi,
    "fair": FairInDegree,
    "density": DensityGrid,
}


def by_name(name: str) -> StructurePrior:
    """The prior with its default settings."""
    if name not in GRAPH_PRIORS:
        raise InputError(f"no prior is called {name!r}; there are: {', '.join(GRAPH_PRIORS)}")
    return GRAPH_PRIORS[name]()


def log_normaliser(
    penalty: Float[np.ndarray, "c d"], order_modular: bool
) -> Float[np.ndarray, " c"]:
    """log Σ exp(Σ_i penalty[in-degree of i]) over (order, DAG) pairs, or over DAGs."""
    d = penalty.shape[1]
    # sets[m]: log total weight of the parent sets within m given nodes.
    sets = np.stack([_log_subsets(penalty, m) for m in range(d)], axis=1)
    if order_modular:
        return gammaln(d + 1) + sets.sum(axis=1)
    return _log_weighted_dags(sets)


def _log_weighted_dags(sets: Float[np.ndarray, "c d"]) -> Float[np.ndarray, " c"]:
    """log of the weighted number of labelled DAGs, without a subtraction of large numbers.

    The usual inclusion-exclusion over sinks cancels when edges are rare. Counting by layers
    (each node lies one below its lowest parent) adds positive terms only: a node in the
    last layer has a parent among the s nodes of the layer before, so its sets weigh
    exp(sets[m]) - exp(sets[m - s]) when m nodes lie above.
    """
    num, d = sets.shape
    layered = np.full((num, d + 1, d + 1), -np.inf)  # n nodes, k of them in the last layer
    for n in range(1, d + 1):
        layered[:, n, n] = n * sets[:, 0]
        for k in range(1, n):
            above = n - k
            whole = sets[:, above, None]
            missing = sets[:, above - 1 :: -1]  # s = 1 .. above
            touching = whole + np.log(-np.expm1(missing - whole))
            terms = layered[:, above, 1 : above + 1] + k * touching
            layered[:, n, k] = _log_choose(n, k) + np.logaddexp.reduce(terms, axis=1)
    return np.logaddexp.reduce(layered[:, d], axis=1)


def _normalised(penalty: Float[np.ndarray, "c d"], order_modular: bool) -> Components:
    """Equal weights, less each component's own normaliser."""
    return -np.log(len(penalty)) - log_normaliser(penalty, order_modular), penalty


def _edge_penalty(density: Float[np.ndarray, " c"], d: int) -> Float[np.ndarray, "c d"]:
    """The log odds of an edge, for each parent."""
    return np.log(density / (1 - density))[:, None] * np.arange(d)


def _log_subsets(penalty: Float[np.ndarray, "c d"], m: int) -> Float[np.ndarray, " c"]:
    """log Σ_{S ⊆ m nodes} exp(penalty[|S|])."""
    sizes = np.arange(m + 1)
    return np.logaddexp.reduce(penalty[:, : m + 1] + _log_choose(m, sizes), axis=1)


def _log_choose(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
