"""Groups of rows that nobody marked: where a table may have been put together from several.

Clusters are found by mixtures of Gaussians, of the values and of their normal scores, and each
row is given to one of them at random, as probably as it belongs there: clusters may overlap.
Whether they are groups in earnest is not decided here. A model that is told the labels z gives
log p(x, z) - log q(z | x), which is in expectation a lower bound on its log p(x), and for rows of
a model without groups at most what that model gives: one that describes the rows well gains
nothing by them.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, logsumexp, ndtri  # pyright: ignore[reportMissingTypeStubs]

MOST_GROUPS = 4
FEWEST_ROWS = 100  # of a table that is divided
FEWEST_IN_GROUP = 20
FEWEST_VALUES = 20  # of a column: codes would be clusters by themselves
MOST_DIRECTIONS = 10  # of the largest variance, among many columns
_MOST_ROWS = 1000  # that mixtures are fitted to; the others are assigned
_NUM_STARTS, _NUM_STEPS, _CONVERGED = 3, 50, 1e-4
_PRIOR_SCALE = 0.1  # variance of a cluster that is one point, in those of the columns


class Groups(NamedTuple):
    """A division of the rows.

    Attributes:
        labels: number of the group of each row.
        log_odds: log p(z) - log q(z | x) of these labels z: their probability when nothing is
            known of the groups but their number, against that with which they were drawn.
    """

    labels: Int[np.ndarray, " n"]
    log_odds: float

    @property
    def num(self) -> int:
        """Groups."""
        return int(self.labels.max()) + 1


class _Mixture(NamedTuple):
    """Weights, means and Cholesky factors of covariances."""

    log_weights: Float[np.ndarray, " k"]
    means: Float[np.ndarray, "k d"]
    factors: Float[np.ndarray, "k d d"]


def candidates(values: Float[np.ndarray, "n d"], rng: np.random.Generator) -> list[Groups]:
    """The best mixture of the values and that of their normal scores, where they are several."""
    many = [column for column in values.T if np.unique(column).size >= FEWEST_VALUES]
    if len(values) < FEWEST_ROWS or len(many) < 2:
        return []
    x = np.column_stack(many)
    found = [_best(_directions(space), rng) for space in (x, _normal_scores(x))]
    distinct = {one.labels.tobytes(): one for one in found if one is not None}
    return list(distinct.values())


def _normal_scores(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    ranks = x.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return ndtri((ranks + 0.5) / len(x))


def _directions(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
    """Standardised columns, or their first principal components where there are many."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    if z.shape[1] <= MOST_DIRECTIONS:
        return z
    _, vectors = np.linalg.eigh(z.T @ z)
    return z @ vectors[:, -MOST_DIRECTIONS:]


def _best(x: Float[np.ndarray, "n d"], rng: np.random.Generator) -> Groups | None:
    """Labels of as many clusters as raise the BIC, one by one; None if that is one."""
    some = x[rng.permutation(len(x))[:_MOST_ROWS]]
    best = _fit(some, 1, rng)
    for num in range(2, MOST_GROUPS + 1):
        finer = _fit(some, num, rng)
        if _bic(some, finer) <= _bic(some, best):
            break
        best = finer
    log_joint = _log_densities(x, best)
    log_belonging = log_joint - np.asarray(logsumexp(log_joint, axis=1))[:, None]
    drawn = (rng.random((len(x), 1)) > np.exp(log_belonging).cumsum(axis=1)).sum(axis=1)
    drawn = np.minimum(drawn, len(best.means) - 1)  # sums may round to less than 1
    labels = np.unique(drawn, return_inverse=True)[1]
    counts = np.bincount(labels)
    if len(counts) < 2 or counts.min() < FEWEST_IN_GROUP:
        return None
    log_drawn = float(np.take_along_axis(log_belonging, drawn[:, None], axis=1).sum())
    return Groups(labels, _log_probability(counts) - log_drawn)


def _log_probability(counts: Int[np.ndarray, " k"]) -> float:
    """Of labels with these counts, under Jeffreys' prior on the frequencies of the groups."""
    half = np.full(len(counts), 0.5)
    whole = gammaln(half.sum()) - gammaln(half.sum() + counts.sum())
    return float(whole + (gammaln(half + counts) - gammaln(half)).sum())


def _bic(x: Float[np.ndarray, "n d"], mixture: _Mixture) -> float:
    k, d = mixture.means.shape
    size = k * (d + d * (d + 1) / 2) + k - 1
    return _log_likelihood(x, mixture) - size / 2 * float(np.log(len(x)))


def _log_likelihood(x: Float[np.ndarray, "n d"], mixture: _Mixture) -> float:
    return float(np.sum(logsumexp(_log_densities(x, mixture), axis=1)))


def _fit(x: Float[np.ndarray, "n d"], num: int, rng: np.random.Generator) -> _Mixture:
    """The most likely mixture of several searches (expectation maximisation)."""
    fits = [_climb(x, _seeds(x, num, rng)) for _ in range(_NUM_STARTS if num > 1 else 1)]
    return max(fits, key=lambda fit: _log_likelihood(x, fit))


def _seeds(x: Float[np.ndarray, "n d"], num: int, rng: np.random.Generator) -> np.ndarray:
    """Rows far from one another, and the nearest of them for every row, as probabilities."""
    chosen = [x[rng.integers(len(x))]]
    while len(chosen) < num:
        nearest = np.min([((x - row) ** 2).sum(axis=1) for row in chosen], axis=0)
        chosen.append(x[rng.choice(len(x), p=nearest / nearest.sum())])
    distance = np.stack([((x - row) ** 2).sum(axis=1) for row in chosen], axis=1)
    return np.eye(num)[distance.argmin(axis=1)]


def _climb(x: Float[np.ndarray, "n d"], belonging: Float[np.ndarray, "n k"]) -> _Mixture:
    """The mixture that rows which belong so lead to, step by step."""
    mixture, last = _maximised(x, belonging), -np.inf
    for _ in range(_NUM_STEPS):
        density = _log_densities(x, mixture)
        total = np.asarray(logsumexp(density, axis=1))
        mixture = _maximised(x, np.exp(density - total[:, None]))
        if total.mean() - last < _CONVERGED:
            break
        last = total.mean()
    return mixture


def _maximised(x: Float[np.ndarray, "n d"], belonging: Float[np.ndarray, "n k"]) -> _Mixture:
    """Weights, means and covariances given to which cluster rows belong; covariances shrunk."""
    n, d = x.shape
    counts = belonging.sum(axis=0) + 1e-9
    means = belonging.T @ x / counts[:, None]
    factors = np.empty((len(counts), d, d))
    for k, mean in enumerate(means):
        z = x - mean
        scatter = (z.T * belonging[:, k]) @ z + (d + 2) * _PRIOR_SCALE * np.eye(d)
        factors[k] = np.linalg.cholesky(scatter / (counts[k] + d + 2))
    return _Mixture(np.log(counts / n), means, factors)


def _log_densities(x: Float[np.ndarray, "n d"], mixture: _Mixture) -> Float[np.ndarray, "n k"]:
    """Log joint density of a row and its cluster."""
    columns = []
    # Factors are small and bounded from below: with their inverses nothing is lost, and solving
    # for all rows at once would start threads that wait for one another.
    inverses = np.linalg.inv(mixture.factors)
    for log_weight, mean, factor, inverse in zip(*mixture, inverses, strict=True):
        z = inverse @ (x - mean).T
        log_scale = np.log(np.diag(factor)).sum() + x.shape[1] / 2 * np.log(2 * np.pi)
        columns.append(log_weight - 0.5 * (z**2).sum(axis=0) - log_scale)
    return np.stack(columns, axis=1)
