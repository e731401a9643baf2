"""Additive regression on splines, from one matrix of sums of squares and products.

Every variable contributes a block of features: itself first, then smooth functions of it that
are uncorrelated with it. All regressions of all variables on all sets of others are then in one
Gram matrix of the features, and none of them touches the rows again.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.model.mechanisms.splines import curvature_matrix
from bayesdag.scores._sufficient_statistics import RowMoments, rows_of

# Outermost knots as shares of the rows: a few rows far out must not bend a function.
OUTERMOST = 0.02
FLAT = 1e-6  # variance, relative to the largest, below which a feature is rounding
RIDGE = 1e-7  # of every feature's variance: blocks that others explain stay invertible
PERFECT = 1e-10  # least share of a variance that is left; less is rounding
LEAST = 1e-200  # sum of squares of a node without rows: it has a logarithm


@dataclass(frozen=True, eq=False)
class SplineBasis:
    """Features of every variable: natural cubic splines through common knots.

    Attributes:
        knots: of each variable, ascending.
        at_knots: values of its features at its knots; blocks of variables with few different
            values are filled up with zeros.
        sizes: features of each variable that are not zero.
    """

    knots: Float[np.ndarray, "d k"]
    at_knots: Float[np.ndarray, "d k q"]
    sizes: Int[np.ndarray, " d"]

    def features(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d q"]:
        """All features of all rows."""
        columns = zip(self.knots, self.at_knots, x.T, strict=True)
        return np.stack([cardinal(k, column) @ at for k, at, column in columns], axis=1)


def spline_basis(x: Float[np.ndarray, "n d"], size: int) -> SplineBasis:
    """A basis of `size` functions per variable, with knots at its quantiles."""
    found = [_block(column, size) for column in x.T]
    knots, at_knots, sizes = (np.stack(part) for part in zip(*found, strict=True))
    return SplineBasis(knots, at_knots, sizes)


def cardinal(
    knots: Float[np.ndarray, " k"], x: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n k"]:
    """Natural cubic splines that are 1 at one knot and 0 at the others, straight outside."""
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    gap = (knots[left + 1] - knots[left])[:, None]
    a, b = (knots[left + 1] - x)[:, None] / gap, (x - knots[left])[:, None] / gap
    unit, bends = np.eye(len(knots)), curvature_matrix(knots)
    bend = (np.maximum(a, 0) ** 3 - a) * bends[left] + (np.maximum(b, 0) ** 3 - b) * bends[left + 1]
    return a * unit[left] + b * unit[left + 1] + bend * gap**2 / 6


class AdditiveFit(NamedTuple):
    """Least squares of one variable on the features of its parents.

    Attributes:
        coefficients: of each parent's features, in units of the variable.
        variance: of the residuals, over the degrees of freedom that are left.
        p_values: of the F-test that a parent's function is zero, given all others.
        log_likelihood: at the fit.
        num_coefficients: that were fitted, the intercept included.
    """

    coefficients: Float[np.ndarray, "p q"]
    variance: float
    p_values: Float[np.ndarray, " p"]
    log_likelihood: float
    num_coefficients: int


@dataclass(frozen=True, eq=False)
class AdditiveStats:
    """Sums of squares and products of all features, of the rows that count for each node.

    Attributes:
        moments: of the features, block by block.
        sizes: features of each variable that are not zero.
        size: features of each block.
    """

    moments: RowMoments
    sizes: Int[np.ndarray, " d"]
    size: int

    def num_rows(self, node: int) -> int:
        """Rows in which nobody set the node."""
        return int(self.moments.num_rows[self.moments.group[node]])

    def gram(self, node: int) -> Float[np.ndarray, "c c"]:
        """Of the rows that count for this node."""
        return self.moments.scatter[self.moments.group[node]]

    def mean(self, node: int) -> Float[np.ndarray, "d q"]:
        """Feature means over the rows that count for this node."""
        return self.moments.mean[self.moments.group[node]].reshape(-1, self.size)

    def columns(self, variables: Int[np.ndarray, " p"]) -> Int[np.ndarray, " c"]:
        """Columns of the Gram matrix that hold the blocks of these variables."""
        return (variables[:, None] * self.size + np.arange(self.size)).reshape(-1)

    def fit(self, node: int, parents: Int[np.ndarray, " p"]) -> AdditiveFit:
        """Regression of the node on all functions of its parents."""
        gram, columns, target = self.gram(node), self.columns(parents), node * self.size
        total, num_rows = max(gram[target, target], LEAST), self.num_rows(node)
        inverse = np.linalg.inv(gram[np.ix_(columns, columns)] + _ridge(gram, columns))
        slopes = inverse @ gram[columns, target]
        left = max(total - slopes @ gram[columns, target], PERFECT * total)
        sizes = self.sizes[parents]
        num = 1 + int(sizes.sum())
        freedom = max(num_rows - num, 1)
        blocks = slopes.reshape(len(parents), self.size)
        lost = np.array([_lost(inverse, blocks, k) for k in range(len(parents))])
        p_values = _tail(lost / sizes / (left / freedom), sizes, freedom)
        log_likelihood = -0.5 * num_rows * (np.log(2 * np.pi * left / max(num_rows, 1)) + 1)
        return AdditiveFit(blocks, left / freedom, p_values, float(log_likelihood), num)


def additive_stats(
    basis: SplineBasis, features: Float[np.ndarray, "n d q"], observed: Bool[np.ndarray, "n d"]
) -> AdditiveStats:
    """One Gram matrix, or one for each pattern of nodes that were set."""
    num, _, size = features.shape
    moments = rows_of(features.reshape(num, -1), observed)
    return AdditiveStats(moments, basis.sizes, size)


class GrowingRegression:
    """A regression of one node that takes in block after block, and knows each next one's gain.

    What earlier blocks explain is projected out of all others; `gains` holds what each of
    them would add to the log likelihood now. Only `candidates` are looked at.
    """

    def __init__(self, stats: AdditiveStats, node: int, candidates: Int[np.ndarray, " m"]) -> None:
        gram, columns = stats.gram(node), stats.columns(candidates)
        self.candidates, self._num_rows = candidates, stats.num_rows(node)
        num, size = len(candidates), stats.size
        self._gram = gram[np.ix_(columns, columns)] + _ridge(gram, columns)
        self._target = gram[columns, node * stats.size].reshape(num, size)
        self._explained = np.empty((0, num * size))
        self._left = gram[node * stats.size, node * stats.size]
        self._least = PERFECT * self._left
        blocks = self._gram.reshape(num, size, num, size)
        self._blocks = blocks[np.arange(num), :, np.arange(num)].copy()
        self._inside = np.zeros(num, dtype=bool)
        self.gains = self._gains()

    def add(self, variable: int) -> None:
        """Take in the block of this candidate."""
        k = int(np.flatnonzero(self.candidates == variable)[0])
        num, size = self._target.shape
        own = slice(k * size, (k + 1) * size)
        rest = self._gram[own] - self._explained[:, own].T @ self._explained
        root = np.linalg.cholesky(self._blocks[k])
        fresh = np.linalg.solve(root, rest)
        whitened = np.linalg.solve(root, self._target[k])
        self._explained = np.concatenate([self._explained, fresh])
        by_block = fresh.reshape(size, num, size)
        self._blocks -= np.einsum("abc,abe->bce", by_block, by_block)
        self._target -= np.einsum("abc,a->bc", by_block, whitened)
        self._left = max(self._left - whitened @ whitened, self._least)
        self._inside[k] = True
        self.gains = self._gains()

    def _gains(self) -> Float[np.ndarray, " m"]:
        gains = np.full(len(self.candidates), -np.inf)
        out = np.flatnonzero(~self._inside)
        if len(out) and self._left > 0:
            target = self._target[out]
            solved = np.linalg.solve(self._blocks[out], target[:, :, None])[:, :, 0]
            left = self._left - np.einsum("bc,bc->b", target, solved)
            gained = np.log(self._left / np.maximum(left, self._least))
            gains[out] = 0.5 * self._num_rows * gained
        return gains


def _block(
    x: Float[np.ndarray, " n"], size: int
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k q"], Int[np.ndarray, ""]]:
    """Knots and features of one variable: itself, then what is uncorrelated with it."""
    knots = _knots(x, size + 1)
    design = cardinal(knots, x)
    # Splines reproduce straight lines: 1 and x are combinations of the columns of the design.
    line = np.stack([np.ones_like(knots), knots], axis=1)
    straight = design @ line
    slopes = np.linalg.lstsq(straight, design, rcond=None)[0]
    curved = design - straight @ slopes
    variance, direction = np.linalg.eigh(curved.T @ curved / len(x))
    kept = np.argsort(-variance)[: size - 1]
    kept = kept[variance[kept] > FLAT * max(variance.max(), 1.0 / len(x))]
    at_knots = np.zeros((len(knots), size))
    spread = max(float(x.std()), np.finfo(float).tiny)
    at_knots[:, 0] = knots / spread
    bent = (np.eye(len(knots)) - line @ slopes) @ direction[:, kept]
    at_knots[:, 1 : 1 + len(kept)] = bent / np.sqrt(variance[kept])
    return knots, at_knots, np.array(1 + len(kept))


def _knots(x: Float[np.ndarray, " n"], num: int) -> Float[np.ndarray, " k"]:
    """Quantiles; where values repeat so often that some coincide, evenly spaced points."""
    knots = np.quantile(x, np.linspace(OUTERMOST, 1 - OUTERMOST, num))
    if np.diff(knots).min() > 1e-3 * np.ptp(knots) / num:
        return knots
    spread = np.ptp(x) if np.ptp(x) > 0 else 1.0
    return np.linspace(x.min(), x.min() + spread, num)


def _ridge(gram: Float[np.ndarray, "c c"], columns: Int[np.ndarray, " k"]) -> np.ndarray:
    """A little of each variance; empty features of a block count as if they had one."""
    variance = np.diagonal(gram)[columns]
    return np.diag(np.where(variance > 0, RIDGE * variance, 1.0))


def _lost(inverse: np.ndarray, blocks: np.ndarray, k: int) -> float:
    """By how much the sum of squares grows without block k."""
    size = blocks.shape[1]
    own = slice(k * size, (k + 1) * size)
    return float(blocks[k] @ np.linalg.solve(inverse[own, own], blocks[k]))


def _tail(f: np.ndarray, num: np.ndarray, freedom: int) -> np.ndarray:
    """P(F > f) with `num` and `freedom` degrees of freedom."""
    from scipy.special import fdtrc

    return fdtrc(num.astype(float), float(freedom), np.maximum(f, 0.0))
