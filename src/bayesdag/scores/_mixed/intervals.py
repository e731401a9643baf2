"""Levels as measurements that were recorded in intervals: jointly normal columns behind them.

Where income is asked for in brackets, it acts as it is and not as the bracket: what the levels
leave out still acts, so that they separate nothing, and a model in which levels act takes what
passes them by for further arrows. Here every column of levels is a normal variable Z that is
known up to an interval. It is drawn given all columns X by Gibbs sampling under sparse linear
Gaussian models, and the evidence of a graph is

    log p(X | G) = E[log p(Z | G)] + H,

with H the entropy of Z given X. Both are taken over the draws and not anew for every graph, so
that H is one constant, and the evidence a sum over families. Levels without an order are put into
that one in which they tell most of the other columns.

Whether levels act or are recorded like this is decided by the evidence of the whole table, as
masses and densities of the same cells. Where nothing acts on levels in a measurable way, both
models say the same, and levels are left as they are.

References:
    Hoff (2007), Extending the rank likelihood for semiparametric copula estimation, Annals of
    Applied Statistics; Geweke (1991), Hajivassiliou & McFadden (1998), for the probability of
    the intervals.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp, ndtr, ndtri, xlogy

from bayesdag.scores._mixed import gaussian
from bayesdag.scores._mixed.families import FamilyModels
from bayesdag.scores._mixed.features import MixedColumns
from bayesdag.scores._mixed.surrogate import DegenerateGaussian, DegenerateMoments

MOST_CELLS = 1_000_000  # of a table beyond which levels are left as they are
MOST_UNORDERED = 6  # levels without an order that may be put into one
NUM_WARMUP, NUM_COMPLETIONS, THINNING = 60, 12, 6
NUM_PATHS = 30  # of the simulated probability of a row's intervals
LEAST_GAIN = float(np.log(20))  # nats by which intervals must be the more probable model
SAFE = 1e-12  # probabilities are kept so far from 0 and 1
_RIDGE = 1e-6


class Intervals(NamedTuple):
    """Where the normal variables behind all columns lie.

    Attributes:
        start: measurements, and the middles of intervals.
        lower: ends of the intervals; -inf and inf for measurements.
        upper: the other ends.
        levels: numbers of the columns with levels.
        log_orders: of ways in which levels without an order may be put into one.
    """

    start: Float[np.ndarray, "n d"]
    lower: Float[np.ndarray, "n d"]
    upper: Float[np.ndarray, "n d"]
    levels: Int[np.ndarray, " l"]
    log_orders: float

    def drawn(
        self, rng: np.random.Generator, j: int, mean: np.ndarray, scale: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Column j from its normal distribution within the intervals, and their probability."""
        low, high = ndtr((self.lower[:, j] - mean) / scale), ndtr((self.upper[:, j] - mean) / scale)
        mass = np.maximum(high - low, SAFE)
        place = np.clip(low + mass * rng.random(mean.shape), SAFE, 1 - SAFE)
        return mean + scale * ndtri(place), mass


@dataclass(frozen=True, eq=False)
class IntervalModel:
    """Draws of the normal variables behind the columns, and the evidence of families by them.

    Attributes:
        completions: draws of all columns.
        constant: what the families leave out of the evidence of a graph.
    """

    completions: Float[np.ndarray, "k n d"]
    constant: float

    @cached_property
    def moments(self) -> Float[np.ndarray, "k q q"]:
        """Sums of products of 1 and all columns."""
        ones = np.ones((*self.completions.shape[:2], 1))
        columns = np.concatenate([ones, self.completions], axis=2)
        return np.swapaxes(columns, 1, 2) @ columns

    def log_evidence(
        self, nodes: Int[np.ndarray, " m"], parents: Bool[np.ndarray, "m d"]
    ) -> Float[np.ndarray, " m"]:
        """Mean over completions of the log evidence of linear Gaussian families."""
        result, sizes = np.empty(len(nodes)), parents.sum(axis=1)
        num = len(self.moments)
        for size in np.unique(sizes).tolist():
            which = np.flatnonzero(sizes == size)
            members = 1 + np.nonzero(parents[which])[1].reshape(len(which), size)
            read = np.concatenate([np.zeros((len(which), 1), int), members], axis=1)
            target = 1 + nodes[which]
            gram = self.moments[:, read[:, :, None], read[:, None, :]]
            products = self.moments[:, read, target[:, None]]
            total = self.moments[:, target, target]
            found = gaussian.regress(
                gram.reshape(-1, size + 1, size + 1),
                products.reshape(-1, size + 1),
                total.reshape(-1),
                np.full(num * len(which), float(self.completions.shape[1])),
                np.full(num * len(which), size),
                gaussian.PRIOR_SCALES[0],
            )
            result[which] = found.log_evidence.reshape(num, -1).mean(axis=0)
        return result + self.constant / parents.shape[1]


def where_more_probable(
    columns: MixedColumns, models: FamilyModels, moments: DegenerateMoments, seed: int = 0
) -> tuple[IntervalModel | None, float]:
    """The model of intervals if it is more probable than levels that act, and by how much."""
    intervals = _intervals(columns)
    if intervals is None:
        return None, 0.0
    found = _sampled(np.random.default_rng(seed), intervals)
    slopes = sum(_log_slope(columns, j) for j in range(len(columns.kinds)))
    cost = _too_much(found, columns, models) + intervals.log_orders
    found = replace(found, constant=found.constant + slopes - cost)
    gain = _best_evidence(found, columns) - _evidence_of_levels(columns, models, moments)
    return (found, gain) if gain > LEAST_GAIN else (None, gain)


def _intervals(columns: MixedColumns) -> Intervals | None:
    """None where the model does not apply: counts, cells that were set, only levels or none."""
    n, d = columns.codes.shape
    levels = np.flatnonzero(columns.is_level)
    unordered = [j for j in levels.tolist() if columns.kinds[j].name == "categorical"]
    has_counts = any(kind.name == "count" for kind in columns.kinds)
    too_many = any(columns.num_levels[j] > MOST_UNORDERED for j in unordered) or n * d > MOST_CELLS
    if has_counts or too_many or not columns.observed.all() or len(levels) in (0, d):
        return None
    start = _as_numbers(columns)
    lower, upper = np.full((n, d), -np.inf), np.full((n, d), np.inf)
    for j in levels.tolist():
        codes = columns.codes[:, j]
        if j in unordered:
            codes = _ordered(codes, int(columns.num_levels[j]), np.delete(start, j, axis=1))
        below = np.append(0, np.cumsum(np.bincount(codes, minlength=columns.num_levels[j])) / n)
        ends = ndtri(np.minimum(below, 1))
        lower[:, j], upper[:, j] = ends[codes], ends[codes + 1]
        start[:, j] = ndtri((below[codes] + below[codes + 1]) / 2)
    log_orders = sum(lgamma(columns.num_levels[j] + 1) - np.log(2) for j in unordered)
    return Intervals(start, lower, upper, levels, float(log_orders))


def _as_numbers(columns: MixedColumns) -> Float[np.ndarray, "n d"]:
    """Measurements, by normal scores where they have some, and codes; all standardised."""
    numbers = np.where(columns.is_level, columns.codes, columns.numbers).astype(float)
    numbers[:, columns.margins.warped] = columns.margins.values
    return (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)


def _ordered(
    codes: Int[np.ndarray, " n"], num: int, others: Float[np.ndarray, "n o"]
) -> Int[np.ndarray, " n"]:
    """Codes in the order of the first canonical direction between levels and other columns."""
    inside = np.eye(num)[codes]
    share = inside.mean(axis=0)
    means = (inside.T @ others) / len(codes) / share[:, None]
    whiten = np.linalg.cholesky(np.linalg.inv(np.cov(others.T) + _RIDGE * np.eye(len(others.T))))
    weighed = np.sqrt(share)[:, None] * (means @ whiten)
    direction = np.linalg.svd(weighed, full_matrices=False)[0][:, 0] / np.sqrt(share)
    return np.argsort(np.argsort(direction))[codes]


def _sampled(rng: np.random.Generator, intervals: Intervals) -> IntervalModel:
    """Completions by Gibbs sampling, and the constant that makes their mean an evidence."""
    z, kept, covariances = intervals.start.copy(), [], []
    for sweep in range(NUM_WARMUP + NUM_COMPLETIONS * THINNING):
        precision = _sparse_precision(rng, z, intervals.levels)
        for j in intervals.levels.tolist():
            variance = 1 / precision[j, j]
            mean = z[:, j] - variance * (z @ precision[j])
            z[:, j] = intervals.drawn(rng, j, mean, float(np.sqrt(variance)))[0]
        if sweep >= NUM_WARMUP:
            covariances.append(np.linalg.inv(precision))
            if (sweep - NUM_WARMUP) % THINNING == 0:
                kept.append(z.copy())
    completions, covariance = np.stack(kept), np.mean(covariances, axis=0)
    constant = _log_likelihood(rng, intervals, covariance) - np.mean(
        [_log_normal(one, covariance) for one in completions]
    )
    return IntervalModel(completions, float(constant))


def _sparse_precision(
    rng: np.random.Generator, z: Float[np.ndarray, "n d"], levels: Int[np.ndarray, " l"]
) -> Float[np.ndarray, "d d"]:
    """Precision of regressions on predecessors in a random order, drawn from their posteriors.

    Columns with levels have unit variance, as their intervals say.
    """
    n, d = z.shape
    order, gram = rng.permutation(d), z.T @ z + _RIDGE * np.eye(d)
    weights, variance = np.zeros((d, d)), np.empty(d)
    for place, i in enumerate(order.tolist()):
        chosen = _forward(gram, i, order[:place], n)
        inverse = np.linalg.inv(gram[np.ix_(chosen, chosen)])
        mean = inverse @ gram[chosen, i]
        variance[i] = (gram[i, i] - mean @ gram[chosen, i]) / rng.chisquare(n - len(chosen))
        noise = np.linalg.cholesky(inverse) @ rng.standard_normal(len(chosen))
        weights[chosen, i] = mean + np.sqrt(variance[i]) * noise
    effects = np.eye(d) - weights
    precision = (effects / variance) @ effects.T
    unit = np.ones(d)
    unit[levels] = np.sqrt(np.diag(np.linalg.inv(precision))[levels])
    return precision * np.outer(unit, unit)


def _forward(
    gram: Float[np.ndarray, "d d"], target: int, candidates: Int[np.ndarray, " c"], num_rows: int
) -> list[int]:
    """Regressors, each of which explains more than half the log number of rows, best first."""
    left, chosen = gram.copy(), []
    least = 1 - num_rows ** (-1 / num_rows)  # of the variance that is left
    while len(candidates) and len(chosen) < num_rows // 2:
        own = left[candidates, candidates]
        explained = left[candidates, target] ** 2 / (own * left[target, target])
        best = int(np.argmax(explained))
        if explained[best] <= least:
            break
        j = int(candidates[best])
        chosen.append(j)
        left = left - np.outer(left[:, j], left[j]) / left[j, j]
        # Neither what is chosen nor copies of it.
        candidates = candidates[left[candidates, candidates] > _RIDGE * np.diag(gram)[candidates]]
    return chosen


def _log_normal(z: Float[np.ndarray, "n d"], covariance: Float[np.ndarray, "d d"]) -> float:
    """Log density of all rows, with mean 0."""
    root = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(root, z.T)
    each = 0.5 * np.log(2 * np.pi) + np.log(np.diag(root))
    return float(-0.5 * (whitened**2).sum() - len(z) * each.sum())


def _log_likelihood(
    rng: np.random.Generator, intervals: Intervals, covariance: Float[np.ndarray, "d d"]
) -> float:
    """Log density of measurements times probability of intervals; paths drawn in turn."""
    n, d = intervals.start.shape
    measured = np.setdiff1d(np.arange(d), intervals.levels)
    order = np.concatenate([measured, intervals.levels])
    within = covariance[np.ix_(measured, measured)]
    value = _log_normal(intervals.start[:, measured], within)
    root, num = np.linalg.cholesky(covariance[np.ix_(order, order)]), len(measured)
    whitened = np.linalg.solve(root[:num, :num], intervals.start[:, measured].T).T
    noise = np.empty((NUM_PATHS, n, d))
    noise[:, :, :num] = whitened
    log_mass = np.zeros((NUM_PATHS, n))
    for place, j in enumerate(intervals.levels.tolist(), start=num):
        mean, scale = noise[:, :, :place] @ root[place, :place], float(root[place, place])
        drawn, mass = intervals.drawn(rng, j, mean, scale)
        noise[:, :, place] = (drawn - mean) / scale
        log_mass += np.log(mass)
    return value + float((logsumexp(log_mass, axis=0) - np.log(NUM_PATHS)).sum())


def _log_slope(columns: MixedColumns, j: int) -> float:
    """From the density of standardised normal scores to that of the values themselves."""
    if columns.is_level[j]:
        return 0.0
    numbers = columns.numbers[:, j]
    if j in columns.margins.warped:
        numbers = columns.margins.values[:, columns.margins.warped == j]
    return float(columns.margins.log_slope[j]) - len(numbers) * float(np.log(numbers.std()))


def _best_evidence(found: IntervalModel, columns: MixedColumns) -> float:
    """Of a graph with measurements first, parents added one by one."""
    order, total = np.argsort(columns.is_level, kind="stable"), 0.0
    for place, i in enumerate(order.tolist()):
        chosen = np.zeros(len(order), dtype=bool)
        best = float(found.log_evidence(np.array([i]), chosen[None])[0])
        while (free := order[:place][~chosen[order[:place]]]).size:
            larger = chosen | np.eye(len(order), dtype=bool)[free]
            values = found.log_evidence(np.full(len(free), i), larger)
            if values.max() <= best:
                break
            best, chosen = float(values.max()), larger[int(np.argmax(values))]
        total += best
    return total


def _too_much(found: IntervalModel, columns: MixedColumns, models: FamilyModels) -> float:
    """What intervals seem to be better at for columns alone, which are evidence of neither.

    The ends of intervals were fitted at no cost; the mean and variance of a family cost something,
    which those ends have fixed; and models of measurements differ in their scales.
    """
    d, total = len(columns.kinds), 0.0
    nobody = np.zeros((d, d), dtype=bool)
    families = found.log_evidence(np.arange(d), nobody) - found.constant / d
    for j, family in enumerate(families.tolist()):
        alone = family + _log_slope(columns, j)
        if columns.is_level[j]:
            counts = np.bincount(columns.codes[:, j]).astype(float)
            z = found.completions[:, :, j]
            alone += 0.5 * float((z**2 + np.log(2 * np.pi)).sum(axis=1).mean())
            alone += float(xlogy(counts, counts / counts.sum()).sum())
        total += alone - float(models.log_evidence(j, nobody[:1])[0])
    return total


def _evidence_of_levels(
    columns: MixedColumns, models: FamilyModels, moments: DegenerateMoments
) -> float:
    """Of levels that act: levels first or measurements first, whichever is the better."""
    levels_last = np.argsort(columns.is_level, kind="stable")
    levels_first = np.argsort(~columns.is_level, kind="stable")
    return max(
        sum(
            _best_family(models, moments, i, order[:place])
            for place, i in enumerate(order.tolist())
        )
        for order in (levels_last, levels_first)
    )


def _best_family(
    models: FamilyModels, moments: DegenerateMoments, node: int, before: Int[np.ndarray, " b"]
) -> float:
    """The best of the sets that the surrogate adds up, parent by parent."""
    d, surrogate = len(moments.group), DegenerateGaussian()
    chosen, sets = np.zeros(d, dtype=bool), [np.zeros(d, dtype=bool)]
    best = float(surrogate.log_evidence(moments, node, chosen[None])[0])
    while (free := before[~chosen[before]]).size:
        larger = chosen | np.eye(d, dtype=bool)[free]
        values = surrogate.log_evidence(moments, node, larger)
        if values.max() <= best:
            break
        best, chosen = float(values.max()), larger[int(np.argmax(values))]
        sets.append(chosen)
    return float(models.log_evidence(node, np.stack(sets)).max())
