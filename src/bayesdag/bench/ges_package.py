"""Greedy equivalence search as written here beside that of a package, on the same correlations."""

import time
from dataclasses import dataclass, field

import numpy as np

from bayesdag import metrics
from bayesdag.baselines.ges import GaussianBIC, search
from bayesdag.bench.runners import OneByOne, Opponent
from bayesdag.bench.suite import Measures, Trial
from bayesdag.graphs import cpdag
from bayesdag.graphs.class_members import member_that_starts_with
from bayesdag.methods.bootstrap_ges import correlations


@dataclass(frozen=True)
class BesideSearch(OneByOne):
    """Whether both end in the same class, and which of two classes has the better score.

    Attributes:
        package: with the penalty of BIC, which is ours.
    """

    package: Opponent = field(default_factory=Opponent)

    def lacking(self) -> str | None:
        """What the package needs."""
        return self.package.lacking()

    def measure_one(self, trial: Trial) -> Measures:
        """Distance between the classes, difference of their scores in nats, time of each."""
        source = trial.dataset(trial.seed)
        theirs = self.package.found(source.train)
        started = time.process_time()
        score = GaussianBIC(correlations(source.train.scaled), len(source.train.values))
        ours = search(score)
        spent = time.process_time() - started
        truth = cpdag(source.graph)
        best, other = (score.total(member_that_starts_with(c)) for c in (ours, theirs["cpdag"]))
        return {
            "same": float(np.array_equal(ours, theirs["cpdag"])),
            "distance": float(metrics.shd(ours, theirs["cpdag"])),
            "gain": best - other,
            "cpdag_shd_ours": float(metrics.shd(ours, truth)),
            "cpdag_shd_package": float(metrics.shd(theirs["cpdag"], truth)),
            "cpu_ours": spent,
            "cpu_package": float(theirs["cpu"]),
            "package_version": str(theirs["package_version"]),
        }
