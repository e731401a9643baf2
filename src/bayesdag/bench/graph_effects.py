"""Effects that follow from the graph of a rival, which states none: by linear regression.

The parents of the cause are held fixed. Where a class of graphs leaves several sets of parents
possible, all of them are (Maathuis, Kalisch & Bühlmann, 2009, "Estimating high-dimensional
intervention effects from observational data"): the mean of their effects, and the hull of their
intervals.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from bayesdag.bench import usage
from bayesdag.bench.effects import judge_stated
from bayesdag.bench.runners import OneByOne, Opponent, opponent_measures
from bayesdag.bench.score_matching import ScoreMatching
from bayesdag.bench.suite import Measures, Trial
from bayesdag.bench.treatments import OUTCOME, TREATMENT, judge, judge_each
from bayesdag.data import read

Rival = Opponent | ScoreMatching
LEVEL = 0.95  # of the intervals
_MOST_NEIGHBOURS = 12  # undirected ones of a cause whose subsets are gone through


class StatedEffect(NamedTuple):
    """Effect of one more unit of the cause, with its interval."""

    mean: float
    low: float
    high: float


NO_EFFECT = StatedEffect(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class GraphEffects(OneByOne):
    """A rival's graph, and the effects of interventions that follow from it.

    Attributes:
        rival: what finds the graph.
        num_effects: pairs whose effects are judged.
    """

    rival: Rival
    num_effects: int = 0

    def lacking(self) -> str | None:
        """Packages that the rival lacks."""
        return self.rival.lacking()

    def measure_one(self, trial: Trial) -> Measures:
        """Quality of the graph and of the effects, and the time that the graph took."""
        source = trial.dataset(trial.seed)
        found = self.rival.found(source.train)
        x, spread = source.train.values, source.train.values.std(axis=0)

        def stated(cause: int, outcome: int) -> StatedEffect:
            one = effect_of(x, found["edge"], cause, outcome)
            return StatedEffect(*(2 * spread[cause] * value for value in one))

        effects = judge_stated(stated, source, self.num_effects)
        return opponent_measures(found, source) | effects


@dataclass(frozen=True)
class TreatmentEffect(OneByOne):
    """The effect of a treatment where a rival's graph says what is adjusted for.

    What everyone is told, that covariates precede the treatment and the outcome follows it, leaves
    one set of parents: covariates adjacent to the treatment. There is no effect where the outcome
    is not adjacent to it.
    """

    rival: Rival

    def lacking(self) -> str | None:
        """Packages that the rival lacks."""
        return self.rival.lacking()

    def measure_one(self, trial: Trial) -> Measures:
        """Errors of the mean and of single rows, and whether the intervals hold the truth."""
        source = trial.dataset(trial.seed)
        wall, cpu = time.perf_counter(), usage.cpu_seconds()
        names = list(source.table)
        treated, outcome = names.index(TREATMENT), names.index(OUTCOME)
        adjacent = _adjacent(self.rival.found(read(source.table))["edge"])[treated]
        covariates = np.flatnonzero(adjacent & (np.arange(len(names)) != outcome))
        x = source.table.to_numpy(float)
        one = regressed(x, treated, outcome, covariates) if adjacent[outcome] else NO_EFFECT
        spent = {"seconds": time.perf_counter() - wall, "cpu": usage.cpu_seconds() - cpu}
        truth = source.effects[source.some]
        same = [np.full(len(truth), value) for value in one]
        average = judge(one.mean, (one.low, one.high), source.average_effect)
        return average | judge_each(same[0], (same[1], same[2]), truth) | spent


def effect_of(
    x: Float[np.ndarray, "n d"], edge: Float[np.ndarray, "d d"], cause: int, outcome: int
) -> StatedEffect:
    """Effect of a cause under a DAG, or a class with undirected edges half and half.

    It is 0 without a path from cause to outcome that is directed, or may be.
    """
    if not _reached(edge > 0, cause)[outcome]:
        return NO_EFFECT
    found = [
        NO_EFFECT if outcome in parents else regressed(x, cause, outcome, parents)
        for parents in possible_parents(edge, cause)
    ]
    means, lows, highs = zip(*found, strict=True)
    return StatedEffect(float(np.mean(means)), min(lows), max(highs))


def possible_parents(edge: Float[np.ndarray, "d d"], node: int) -> Iterator[np.ndarray]:
    """Sets of parents of a node that make no new collider: its own, with cliques of neighbours."""
    into, out_of, adjacent = edge[:, node] > 0, edge[node] > 0, _adjacent(edge)
    certain = np.flatnonzero(into & ~out_of)
    neighbours = np.flatnonzero(into & out_of)[:_MOST_NEIGHBOURS]
    subsets = (combinations(neighbours, size) for size in range(len(neighbours) + 1))
    for chosen in chain.from_iterable(subsets):
        others = [*certain, *chosen]
        if all(adjacent[one, other] for one in chosen for other in others if other != one):
            yield np.array(others, dtype=int)


def regressed(
    x: Float[np.ndarray, "n d"], cause: int, outcome: int, given: np.ndarray
) -> StatedEffect:
    """Slope of the outcome in the cause by least squares, given others, with Student's interval."""
    design = np.column_stack([x[:, cause], x[:, given], np.ones(len(x))])
    y = x[:, outcome]
    slopes = np.linalg.lstsq(design, y, rcond=None)[0]
    residues = len(y) - design.shape[1]
    variance = float(((y - design @ slopes) ** 2).sum() / residues)
    error = float(np.sqrt(variance * np.linalg.pinv(design.T @ design)[0, 0]))
    half = error * float(stats.t.ppf((1 + LEVEL) / 2, residues))
    return StatedEffect(float(slopes[0]), float(slopes[0] - half), float(slopes[0] + half))


def _adjacent(edge: Float[np.ndarray, "d d"]) -> Bool[np.ndarray, "d d"]:
    return (edge > 0) | (edge.T > 0)


def _reached(edges: Bool[np.ndarray, "d d"], start: int) -> Bool[np.ndarray, " d"]:
    """Nodes at the ends of paths from a node; graphs of classes have cycles."""
    found = edges[start].copy()
    while (more := found | edges[found].any(axis=0)).sum() > found.sum():
        found = more
    return found
