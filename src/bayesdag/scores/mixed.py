"""Mixed: evidence of columns of every kind, each with a likelihood that it can have.

Levels are tables of probabilities where all parents have levels, too (BDeu), and logistic or
ordered logistic regressions elsewhere; counts are negative binomial regressions on a log scale;
measurements are Gaussian, as they are or by their normal scores. Functions are lines, sums of
curves, quadratic, or lines of their own at every level of the parents, and small networks where
these leave something unexplained; equally probable beforehand. All are densities or masses of the
same cells, so that they can be compared.

No direction comes from the shape of a margin (`_mixed.turning`): dependence between kinds is
scored levels given measurements, whichever way the arrow points.

Where the table as a whole is more probable if its levels are measurements that were recorded in
intervals, graphs are scored by the normal variables behind them (`_mixed.intervals`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import softmax

from bayesdag.data import Dataset
from bayesdag.data.kinds import KINDS
from bayesdag.errors import InputError
from bayesdag.model.scm import SCM
from bayesdag.scores import _sufficient_statistics
from bayesdag.scores._mixed import contingency, intervals, parameter_draws, surrogate
from bayesdag.scores._mixed.families import FamilyModels
from bayesdag.scores._mixed.features import MixedClass, columns_of
from bayesdag.scores._mixed.intervals import IntervalModel
from bayesdag.scores._mixed.surrogate import DegenerateGaussian, DegenerateMoments
from bayesdag.scores._mixed.turning import TurningScores
from bayesdag.types import Key, Params, ParentSets, Recorder


@dataclass(frozen=True, eq=False)
class MixedStats:
    """Families of one data set, as far as they were computed, and moments for the surrogate.

    Attributes:
        intervals: scores graphs where levels are rather recorded in intervals than act.
        gain: nats by which that is the more probable of the two.
    """

    models: FamilyModels
    scores: TurningScores
    moments: DegenerateMoments
    intervals: IntervalModel | None = None
    gain: float = 0.0


@dataclass(frozen=True)
class MixedScore:
    """Evidence of continuous, count, ordinal, binary and categorical columns together.

    The direction of an arrow between a measurement and a level, or to or from a count, is not
    decided by which way its distribution is simple, but by independences, interventions and
    knowledge. Regressions of levels and counts are integrated by Laplace's approximation over
    weights, and by a grid over the scales of their priors and the dispersion of counts; tables
    and Gaussian regressions exactly. Rows where a node was set do not count for it.

    Attributes:
        ess: rows that the Dirichlet prior of a table is worth.
        networks: train networks where simpler functions leave something unexplained.
        intervals: allow for levels that are measurements recorded in intervals.
    """

    takes_kinds: ClassVar[frozenset[str]] = frozenset(KINDS)

    ess: float = 1.0
    networks: bool = True
    intervals: bool = True

    def __post_init__(self) -> None:
        if not self.ess > 0:
            raise InputError(f"ess is {self.ess:g}; a prior is worth more than 0 rows")

    def describe(self) -> str:
        """The score and its prior, in words."""
        networks = ", networks where these leave something" * self.networks
        return (
            "tables, logistic, negative binomial and Gaussian regressions by kind"
            f"{networks}, equivalent sample size {self.ess:g}"
        )

    def prepare(self, data: Dataset, recorder: Recorder | None = None) -> MixedStats:
        """Features of the columns, and an empty memory of families.

        Args:
            recorder: not needed: families cost little to compute again.
        """
        del recorder
        columns = columns_of(data)
        rows = contingency.level_rows(columns.codes, columns.observed, columns.num_levels)
        models = FamilyModels(columns, rows, self.ess, networks=self.networks)
        scores = TurningScores(
            models.log_evidence, columns.rank, columns.contexts, columns.observed
        )
        moments = surrogate.moments_of(columns)
        if not self.intervals:
            return MixedStats(models, scores, moments)
        found = intervals.where_more_probable(columns, models, moments)
        return MixedStats(models, scores, moments, *found)

    def notes(self, stats: MixedStats) -> list[str]:
        """What of the data decided how they are modelled, in words."""
        if stats.intervals is None:
            return []
        return [
            "levels are taken for measurements that were recorded in intervals, of jointly normal "
            f"variables, which explains the table better by {stats.gain:.0f} nats; functions and "
            "effects are those between the columns as they are"
        ]

    def log_evidence(
        self, stats: MixedStats, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log p(x_node | x_parents), for m parent sets."""
        return self.log_evidence_of_families(stats, np.full(len(parents), node), parents)

    def log_evidence_of_families(
        self, stats: MixedStats, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """The same for families of several nodes."""
        found = stats.scores if stats.intervals is None else stats.intervals.log_evidence
        return found(nodes, parents)

    def approximate_gain(
        self, stats: MixedStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """What each variable adds to these parents by the surrogate, in nats."""
        d = parents.shape[1]
        now = DegenerateGaussian().of_families(stats.moments, nodes, parents)
        larger = parents[:, None, :] | np.eye(d, dtype=bool)[None]
        larger[np.arange(len(nodes)), nodes] = parents  # nobody is a parent of itself
        then = DegenerateGaussian().of_families(
            stats.moments, np.repeat(nodes, d), larger.reshape(-1, d)
        )
        return then.reshape(-1, d) - now[:, None]

    def surrogate(self, stats: MixedStats) -> tuple[DegenerateGaussian, DegenerateMoments]:
        """Indicators and curves as if they were Gaussian."""
        return DegenerateGaussian(), stats.moments

    def queue_retraining(
        self, stats: MixedStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Nothing: a family has one optimum, which is found the first time."""

    def retrain_queued(self, stats: MixedStats) -> set[tuple[int, int]]:
        """None: no score ever changes."""
        del stats
        return set()

    def power(self, stats: MixedStats) -> float:
        """1: the evidence is taken at its word."""
        del stats
        return 1.0

    def scm(self, data: Dataset) -> SCM:
        """Regressions and tables by the kinds of the columns."""
        return parameter_draws.scm_of(data)

    def draw(self, key: Key, stats: MixedStats, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """Functions in the direction of the arrows, from their posteriors.

        The class of a function and its hyperparameters are drawn with the probability that the
        rows give them, tables and Gaussian regressions then exactly, others from the Gaussian
        around their mode.
        """
        return parameter_draws.draw(key, stats.models, graphs)

    def function_weights(
        self, stats: MixedStats, graphs: Shaped[np.ndarray, "s d d"]
    ) -> dict[str, Float[np.ndarray, " d"]]:
        """Probability of tables and of every class of functions, by variable."""
        nodes, parents = _sufficient_statistics.of_graphs(graphs)
        num, d = graphs.shape[:2]
        weights = np.zeros((len(nodes), len(MixedClass) + 1))
        for node in range(d):
            which = np.flatnonzero(nodes == node)
            different, index = np.unique(parents[which], axis=0, return_inverse=True)
            weights[which] = self._class_weights(stats.models, node, different)[index.reshape(-1)]
        by_node = weights.reshape(num, d, -1).mean(axis=0)
        names = [kind.name.lower().replace("_", " ") for kind in MixedClass]
        return {name: by_node[:, c] for c, name in enumerate([*names, "table"])}

    def _class_weights(
        self, models: FamilyModels, node: int, parents: Bool[np.ndarray, "m d"]
    ) -> Float[np.ndarray, "m c"]:
        labels, values = models.components(node, parents)
        weights = softmax(values, axis=1)
        kinds = np.array([len(MixedClass) if one.kind is None else int(one.kind) for one in labels])
        return np.stack(
            [weights[:, kinds == k].sum(axis=1) for k in range(len(MixedClass) + 1)], axis=1
        )


build = MixedScore
