"""Calibration of BGe's alpha_mu over random linear worlds, fitted exactly.

Densities of the true graphs come from the prior on graphs itself, so that alpha_mu alone is judged.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.bench.runners import OneByOne
from bayesdag.bench.suite import Measures, Trial
from bayesdag.data import Dataset, Scaling
from bayesdag.knowledge import Constraints
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.density import DensityGrid
from bayesdag.scores.bge import BGe

EFFECTS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "N(0, .3²)": lambda rng, shape: 0.3 * rng.normal(size=shape),
    "N(0, 1)": lambda rng, shape: rng.normal(size=shape),
    "±U(.5, 1.5)": lambda rng, shape: rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape),
}
STANDARDISED, EXPERIMENTS, RAW = "standardised", "experiments", "raw"
INTEGRATED = "integrated out"
FLOOR = 1e-3  # of a probability in the log score
LOW, HIGH = 0.05, 0.95  # probabilities below and above which an edge counts as decided


class World(NamedTuple):
    """A data set, and the graph behind it."""

    data: Dataset
    graph: Bool[np.ndarray, "d d"]


@dataclass(frozen=True)
class LinearWorlds:
    """Random linear Gaussian worlds whose edge densities come from the structure prior.

    Attributes:
        num_variables: of each world.
        num_rows: of each data set.
        effects: the distribution of edge weights, one of `EFFECTS`.
        kind: "standardised" columns; "experiments": each third of the rows but the first has
            one variable set to 2, two deviations of its noise; "raw": columns as they are,
            with means three standard deviations from zero, where BGe expects them.
        num_worlds: how many there are.
    """

    num_variables: int
    num_rows: int
    effects: str
    kind: str = STANDARDISED
    num_worlds: int = 1

    def __call__(self, seed: int) -> list[World]:
        """The worlds of this seed and those after it."""
        return [self._world(number) for number in range(seed, seed + self.num_worlds)]

    def _world(self, seed: int) -> World:
        d, num_rows = self.num_variables, self.num_rows
        rng = np.random.default_rng([d, num_rows, list(EFFECTS).index(self.effects), seed])
        density = rng.choice(DensityGrid().densities(d))
        order = rng.permutation(d)
        graph = np.zeros((d, d), dtype=bool)
        graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < density, k=1)
        weights = graph * EFFECTS[self.effects](rng, (d, d))
        noise = rng.normal(size=(num_rows, d)) * np.exp(0.3 * rng.normal(size=d))
        names = tuple(f"v{i}" for i in range(d))
        if self.kind == EXPERIMENTS:
            mask = _set_in_turn(num_rows, order)
            return World(
                Dataset(_with_experiments(order, weights, noise, mask), names, mask), graph
            )
        values = noise @ np.linalg.inv(np.eye(d) - weights)
        if self.kind == RAW:
            values = values + 3 * values.std(axis=0)
            return World(Dataset(values, names, None, Scaling.of(values, "none")), graph)
        return World(Dataset(values, names), graph)


def _set_in_turn(num_rows: int, order: np.ndarray) -> Bool[np.ndarray, "n d"]:
    """Rows in three blocks: observed, with the first variable set, with the second set."""
    mask = np.zeros((num_rows, len(order)), dtype=bool)
    for part, node in zip(np.array_split(np.arange(num_rows), 3)[1:], order, strict=False):
        mask[part, node] = True
    return mask


def _with_experiments(
    order: np.ndarray, weights: np.ndarray, noise: np.ndarray, mask: np.ndarray
) -> Float[np.ndarray, "n d"]:
    values = np.zeros(noise.shape)
    for node in order:
        caused = values @ weights[:, node] + noise[:, node]
        values[:, node] = np.where(mask[:, node], 2.0, caused)
    return values


@dataclass(frozen=True)
class AlphaMuCalibration(OneByOne):
    """Edge probabilities under each alpha_mu, and with alpha_mu integrated out, beside the truth.

    Integrated out: the posteriors averaged with the evidence of the whole table as weights.

    Attributes:
        alpha_mu: the values.
    """

    alpha_mu: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

    def measure_one(self, trial: Trial) -> Measures:
        """Under `series`, the measures over all worlds of the trial for every alpha_mu."""
        pairs: dict[float | str, list[_Pairs]] = {}
        for data, graph in trial.dataset(trial.seed):
            for name, edge in self._edge_probabilities(data).items():
                pairs.setdefault(name, []).append(_pairs(edge, graph))
        series = [{"alpha_mu": name, **_judged(found)} for name, found in pairs.items()]
        for kind in _Pairs._fields:
            best = max(row[f"{kind}_log_score"] for row in series)
            for row in series:
                row[f"{kind}_shortfall"] = best - row[f"{kind}_log_score"]
        return {"series": series}

    def _edge_probabilities(self, data: Dataset) -> dict[float | str, Float[np.ndarray, "d d"]]:
        free = Constraints.free(data.names)
        found = [Exact(BGe(value)).edges_and_log_evidence(data, free) for value in self.alpha_mu]
        log_evidence = np.array([own for _, own in found])
        weight = np.exp(log_evidence - np.logaddexp.reduce(log_evidence))
        edges = [edge for edge, _ in found]
        single = dict(zip(self.alpha_mu, edges, strict=True))
        return {**single, INTEGRATED: np.tensordot(weight, edges, 1)}


class _Pairs(NamedTuple):
    """Probability and truth of every ordered pair, and of every unordered one."""

    edge: Float[np.ndarray, "2 m"]
    adjacency: Float[np.ndarray, "2 k"]


def _pairs(edge: np.ndarray, graph: np.ndarray) -> _Pairs:
    ordered, unordered = ~np.eye(len(graph), dtype=bool), np.triu_indices(len(graph), k=1)
    linked, either = graph | graph.T, edge + edge.T
    return _Pairs(
        np.stack([edge[ordered], graph[ordered]]), np.stack([either[unordered], linked[unordered]])
    )


def _judged(found: Iterable[_Pairs]) -> Measures:
    return {
        f"{kind}_{measure}": value
        for kind, some in zip(_Pairs._fields, zip(*found, strict=True), strict=True)
        for measure, value in judge(*np.concatenate(some, axis=1)).items()
    }


def judge(probability: Float[np.ndarray, " m"], truth: Float[np.ndarray, " m"]) -> Measures:
    """Log score, calibration error over ten bins, and how often what seems decided is true.

    The share that is true is left out where no pair is that improbable, or that probable.
    """
    said, true = np.clip(probability, FLOOR, 1 - FLOOR), truth == 1
    bins = np.minimum((said * 10).astype(int), 9)
    gap = np.abs(np.bincount(bins, said, 10) - np.bincount(bins, true, 10))
    measures: Measures = {
        "log_score": float(np.where(true, np.log(said), np.log1p(-said)).mean()),
        "calibration_error": float(gap.sum() / len(said)),
    }
    for name, decided in (("low", said <= LOW), ("high", said >= HIGH)):
        measures[f"num_{name}"] = int(decided.sum())
        if decided.any():
            measures[f"true_if_{name}"] = float(true[decided].mean())
    return measures
