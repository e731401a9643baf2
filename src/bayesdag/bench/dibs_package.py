"""DiBS as written here beside the package of its authors, on the same rows and settings."""

from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from jaxtyping import Float

from bayesdag import fitting, metrics
from bayesdag.bench.runners import OneByOne, Opponent, timed
from bayesdag.bench.suite import Measures, Trial
from bayesdag.datasets import Benchmark
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.exact import Exact
from bayesdag.posterior import Posterior

Edges = list[Float[np.ndarray, "d d"]]


@dataclass(frozen=True)
class BesidePackage(OneByOne):
    """Two runs or more of each, so that their difference stands beside that of equal programs.

    Attributes:
        method: ours.
        package: theirs, with the same settings.
        num_runs: of each, with seeds of their own.
        exact: whose edge probabilities both estimate, where they can be computed.
    """

    method: DiBS = DiBS()
    package: Opponent = field(default_factory=Opponent)
    num_runs: int = 2
    exact: Exact | None = None

    def lacking(self) -> str | None:
        """What the package needs."""
        return self.package.lacking()

    def measure_one(self, trial: Trial) -> Measures:
        """Distances between edge probabilities, and what each is worth."""
        source = trial.dataset(trial.seed)
        theirs = self.package.found(source.train)
        ours: list[Posterior] = []

        def run() -> None:
            for seed in range(self.num_runs):
                ours.append(fitting.fit(source.train, self.method, seed=seed, progress=False))

        spent = timed(run)
        edges = {
            "ours": [posterior.edge_matrix() for posterior in ours],
            "package": list(theirs["run_edge"]),
        }
        measures: Measures = {
            "cpu_ours": spent["cpu"],
            "cpu_package": float(theirs["cpu"]),
            "cyclic_ours": float(np.mean([p.provenance["num_cyclic"] for p in ours])),
            "cyclic_package": float(np.mean(theirs["num_cyclic"])),
            "package_version": str(theirs["package_version"]),
            **differences(edges["ours"], edges["package"]),
        }
        for name, found in edges.items():
            measures |= {f"{what}_{name}": value for what, value in _quality(found, source).items()}
            measures |= self._error(name, found, source)
        measures["shd_difference"] = measures["shd_ours"] - measures["shd_package"]
        return measures

    def _error(self, name: str, edges: Edges, source: Benchmark) -> Measures:
        """Mean distance from the exact edge probabilities."""
        if self.exact is None:
            return {}
        exact = fitting.fit(source.train, self.exact, progress=False).edge_matrix()
        return {f"error_{name}": float(np.mean([_distance(edge, exact) for edge in edges]))}


def differences(ours: Edges, theirs: Edges) -> Measures:
    """Mean difference of edge probabilities between the programs, and between runs of each."""
    return {
        "between": _mean(list(product(ours, theirs))),
        "within_ours": _mean(list(combinations(ours, 2))),
        "within_package": _mean(list(combinations(theirs, 2))),
    }


def _mean(pairs: list) -> float:
    return float(np.mean([_distance(*pair) for pair in pairs]))


def _distance(first: Float[np.ndarray, "d d"], second: Float[np.ndarray, "d d"]) -> float:
    """Mean absolute difference over pairs of different variables."""
    d = len(first)
    return float(np.abs(first - second).sum() / (d * (d - 1)))


def _quality(edges: Edges, source: Benchmark) -> Measures:
    """Means over the runs."""
    return {
        "shd": float(np.mean([metrics.shd_of_marginals(e, source.graph) for e in edges])),
        "auroc": float(np.mean([metrics.auroc(e, source.graph) for e in edges])),
        "edges": float(np.mean([e.sum() for e in edges])),
    }
