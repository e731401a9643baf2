"""SCORE, NoGAM and CaPS: orders from derivatives of the log density, then pruned edges.

Rivals for the benchmark, not methods of the package; no package on PyPI offers them. All find
a leaf, take it away and go on; SCORE by the variance of the diagonal of the Hessian, NoGAM by how
well a leaf's score is a function of its own residual, CaPS by the mean of the diagonal, which
depends on units. Edges of the order are pruned as in CAM; CaPS leaves out weak ones before and
adds strong ones afterwards, as its parent scores say.

References:
    Rolland, Cevher, Kleindessner, Russell, Janzing, Schölkopf, Locatello (2022), Score matching
    enables causal discovery of nonlinear additive noise models, ICML.
    Montagna, Noceti, Rosasco, Zhang, Locatello (2023), Causal discovery with score matching on
    additive models with arbitrary noise, CLeaR.
    Xu, Li, Liu, Gui (2024), Ordering-based causal discovery for linear and nonlinear relations,
    NeurIPS.
    Li & Turner (2018), Gradient estimators for implicit models, ICLR (the Stein estimators).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int8
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist, squareform

from bayesdag.baselines import additive, cam
from bayesdag.bench.runners import OneByOne, opponent_measures
from bayesdag.bench.suite import Measures, Trial
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.graphs import ancestors
from bayesdag.knowledge import Constraints

STEIN_RIDGE = 0.001  # as published
RIDGE, GAMMA, NUM_FOLDS = 0.01, 0.1, 5  # of NoGAM's regressions
CUTOFF, NUM_BASIS = 0.001, 8  # of CAM's pruning
WEAK, STRONG = 50, 50  # of CaPS, as published: below the best parent's score, above the mean
Sample = Float[np.ndarray, "n d"]
LeafOf = Callable[[Sample], int]


@dataclass(frozen=True)
class ScoreMatching(OneByOne):
    """SCORE, NoGAM or CaPS on one data set, in this process.

    Attributes:
        name: "score", "nogam" or "caps".
        raw: columns in their own units instead of standardised ones, as CaPS is published.
    """

    name: str = "score"
    raw: bool = False

    def measure_one(self, trial: Trial) -> Measures:
        """Quality and time of the one graph it returns."""
        source = trial.dataset(trial.seed)
        return opponent_measures(self.found(source.train), source)

    def found(self, data: Dataset) -> dict[str, np.ndarray]:
        """The graph, and the time that it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        graph = estimate(data, self.name, self.raw)
        spent = (time.perf_counter() - wall, time.process_time() - cpu)
        times = dict(zip(("seconds", "cpu"), map(np.asarray, spent), strict=True))
        return {"edge": graph.astype(float), "graphs": graph[None], **times}


def estimate(data: Dataset, name: str, raw: bool = False) -> Int8[np.ndarray, "d d"]:
    """The graph that "score", "nogam" or "caps" returns."""
    if name not in LEAVES:
        raise InputError(f"no rival is called {name!r}; there are: {', '.join(LEAVES)}")
    x = data.values - data.values.mean(axis=0) if raw else data.scaled
    place = np.argsort(order_by_leaves(x, LEAVES[name]))
    allowed = place[:, None] < place[None, :]
    scores = parent_scores(x) if name == "caps" else np.zeros(allowed.shape)
    allowed &= scores >= scores.max(axis=0) / WEAK
    basis = additive.spline_basis(data.scaled, NUM_BASIS)
    stats = additive.additive_stats(basis, basis.features(data.scaled), data.observed)
    graph = cam.pruned(stats, allowed, Constraints.free(data.names), CUTOFF)
    return supplemented(graph, scores) if name == "caps" else graph


def order_by_leaves(x: Sample, leaf_of: LeafOf) -> list[int]:
    """Variables from first to last: leaves are found one by one, the last first."""
    left, leaves = list(range(x.shape[1])), []
    while len(left) > 1:
        leaves.append(left.pop(leaf_of(x[:, left])))
    return [*left, *reversed(leaves)]


def score_leaf(x: Sample) -> int:
    """The variable whose entry of the Hessian's diagonal varies least."""
    return int(np.argmin(stein_estimates(x)[1].var(axis=0)))


def nogam_leaf(x: Sample) -> int:
    """The variable whose score its own residual predicts best."""
    gradient = stein_estimates(x)[0]
    errors = []
    for node in range(x.shape[1]):
        others = np.delete(x, node, axis=1)
        residual = x[:, node] - cross_validated(others, x[:, node])
        predicted = cross_validated(residual[:, None], gradient[:, node])
        errors.append(float(((predicted - gradient[:, node]) ** 2).mean()))
    return int(np.argmin(errors))


def caps_leaf(x: Sample) -> int:
    """The variable whose entry of the Hessian's diagonal is the largest on average."""
    return int(np.argmax(stein_estimates(x)[1].mean(axis=0)))


def parent_scores(x: Sample) -> Float[np.ndarray, "d d"]:
    """By how much the mean entry of i in the Hessian's diagonal changes without j, at [i, j]."""
    d = x.shape[1]
    whole, scores = stein_estimates(x)[1].mean(axis=0), np.zeros((d, d))
    for child in range(d if d > 1 else 0):
        others = np.delete(np.arange(d), child)
        without = stein_estimates(x[:, others])[1].mean(axis=0)
        scores[others, child] = np.abs(without - whole[others])
    return scores


def supplemented(
    graph: Int8[np.ndarray, "d d"], scores: Float[np.ndarray, "d d"]
) -> Int8[np.ndarray, "d d"]:
    """Adds edges far above the mean over all pairs of the scores of edges, the strongest first.

    An edge that closes a cycle is left out; where nothing was kept, nothing is added.
    """
    graph, least = graph.copy(), STRONG * float((graph * scores).mean())
    if not graph.any():
        return graph
    found = np.argwhere((scores >= least) & (graph == 0) & ~np.eye(len(graph), dtype=bool))
    for i, j in sorted(found.tolist(), key=lambda pair: -scores[pair[0], pair[1]]):
        graph[i, j] = not ancestors(graph)[j, i]
    return graph


def stein_estimates(x: Sample) -> tuple[Sample, Sample]:
    """Gradient of the log density and diagonal of its Hessian, at every row.

    Kernel exp(-|x - y|² / 2s²), s the median distance of two rows.
    """
    distance = squareform(pdist(x))
    width = float(np.median(distance[np.triu_indices(len(x), k=1)]))
    kernel = np.exp(-(distance**2) / (2 * width**2))
    factor = cho_factor(kernel + STEIN_RIDGE * np.eye(len(x)))
    total = kernel.sum(axis=1)[:, None]
    # Sums over k of derivatives of kernel(x_i, x_k) in x_k, first and second.
    first = (x * total - kernel @ x) / width**2
    square = x**2 * total - 2 * x * (kernel @ x) + kernel @ x**2
    second = square / width**4 - total / width**2
    gradient = -cho_solve(factor, first)
    return gradient, cho_solve(factor, second) - gradient**2


def cross_validated(x: Sample, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Predictions of kernel ridge regressions that have not seen the row they predict."""
    predicted = np.empty_like(y)
    for fold in np.array_split(np.arange(len(y)), NUM_FOLDS):
        rest = np.setdiff1d(np.arange(len(y)), fold)
        factor = cho_factor(_kernel(x[rest], x[rest]) + RIDGE * np.eye(len(rest)))
        predicted[fold] = _kernel(x[fold], x[rest]) @ cho_solve(factor, y[rest])
    return predicted


def _kernel(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
    square = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * x @ y.T
    return np.exp(-GAMMA * np.maximum(square, 0))


LEAVES: dict[str, LeafOf] = {"score": score_leaf, "nogam": nogam_leaf, "caps": caps_leaf}
