"""Likelihoods of levels and counts given linear predictors: logistic, ordered, negative binomial.

All take designs of m regressions at once, padded with columns of zeros, whose first column is 1,
and weights: how often each row occurs.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, gammaln, softmax

from bayesdag.scores._mixed.newton import Derivatives

LEAST_PROBABILITY = 0.01  # of a level in a residual: a single surprise is no pattern
MOST_LOG_MEAN = 30.0  # of a count: predictors are cut off there, far from any data


RowWeights = Float[np.ndarray, " n"] | Float[np.ndarray, ""]
ONCE = np.ones(())  # every row


class Residuals(NamedTuple):
    """Values less their means, and deviations by the model; of levels: of their indicators."""

    left: Float[np.ndarray, "n k"]
    deviation: Float[np.ndarray, "n k"]


def _of_levels(probability: Float[np.ndarray, "n k"], codes: Int[np.ndarray, " n"]) -> Residuals:
    is_level = codes[:, None] == np.arange(1, probability.shape[1])
    expected = np.clip(probability[:, 1:], LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return Residuals(is_level - expected, np.sqrt(expected * (1 - expected)))


class MultinomialLogistic(NamedTuple):
    """Levels by multinomial logistic regression; level 0 is the reference.

    Parameters are the weights, column by column of the design, of every level but the first.
    """

    design: Float[np.ndarray, "m n p"]
    codes: Int[np.ndarray, " n"]
    num_levels: int
    weights: RowWeights = ONCE

    def derivatives(self, theta: Float[np.ndarray, "m q"]) -> Derivatives:
        """At weights in the order (column, level)."""
        m, n, p = self.design.shape
        others = self.num_levels - 1
        predictor = self.design @ theta.reshape(m, p, others)
        highest = np.maximum(predictor.max(axis=2), 0.0)  # that of the reference is 0
        probability = np.exp(predictor - highest[:, :, None])
        total = probability.sum(axis=2) + np.exp(-highest)
        probability /= total[:, :, None]
        log_total = highest + np.log(total)
        is_level = self.codes[:, None] == np.arange(1, self.num_levels)
        value = (((predictor * is_level).sum(axis=2) - log_total) * self.weights).sum(axis=1)
        across = np.swapaxes(self.design, 1, 2)
        gradient = across @ ((is_level - probability) * self.weights[..., None])
        hessian = np.empty((m, p, others, p, others))
        for a in range(others):
            for b in range(a + 1):
                weight = probability[:, :, a] * ((a == b) - probability[:, :, b]) * self.weights
                block = across @ (self.design * weight[:, :, None])
                hessian[:, :, a, :, b] = hessian[:, :, b, :, a] = block
        return Derivatives(value, gradient.reshape(m, -1), hessian.reshape(m, p * others, -1))

    def of_rows(self, rows: slice) -> "MultinomialLogistic":
        """The same in some of the rows."""
        weights = np.broadcast_to(self.weights, self.codes.shape)[rows]
        return self._replace(design=self.design[:, rows], codes=self.codes[rows], weights=weights)

    def residuals(self, theta: Float[np.ndarray, " q"]) -> Residuals:
        """Of every level but the first, in the first regression."""
        predictor = self.design[0] @ theta.reshape(self.design.shape[2], -1)
        every = np.concatenate([np.zeros((len(predictor), 1)), predictor], axis=1)
        return _of_levels(softmax(every, axis=1), self.codes)

    def prior(self, precision: Float[np.ndarray, " p"]) -> Float[np.ndarray, "q q"]:
        """The same for all levels: weights of each are independent, and only differences count."""
        k = self.num_levels
        return np.kron(np.diag(precision), np.eye(k - 1) - 1 / k)

    def start(self) -> Float[np.ndarray, "m q"]:
        """All levels equally probable."""
        return np.zeros((len(self.design), self.design.shape[2] * (self.num_levels - 1)))

    @property
    def log_constant(self) -> float:
        """Log factor of the prior beside its Gaussian density."""
        return 0.0


class OrderedLogistic(NamedTuple):
    """Ordered levels by proportional odds: P(code ≤ k) = σ(threshold_k - predictor).

    Parameters are the K - 1 thresholds, then the weights of the columns after the first.
    """

    design: Float[np.ndarray, "m n p"]
    codes: Int[np.ndarray, " n"]
    num_levels: int
    weights: RowWeights = ONCE

    def derivatives(self, theta: Float[np.ndarray, "m q"]) -> Derivatives:
        """The log likelihood is concave in the upper and the lower threshold of each row."""
        m, n, p = self.design.shape
        cuts = self.num_levels - 1
        ordered = (np.diff(theta[:, :cuts], axis=1) > 0).all(axis=1)
        ends = np.full((m, 1), np.inf)
        thresholds = np.concatenate([-ends, theta[:, :cuts], ends], axis=1)
        predictor = (self.design[:, :, 1:] @ theta[:, cuts:, None])[:, :, 0]
        upper = thresholds[:, self.codes + 1] - predictor
        lower = thresholds[:, self.codes] - predictor
        above, below = expit(upper), expit(lower)
        # Differences of tail probabilities keep their digits on either side.
        mass = np.where(lower > 0, expit(-lower) - expit(-upper), above - below)
        mass = np.maximum(mass, 1e-300)
        value = np.where(ordered, (np.log(mass) * self.weights).sum(axis=1), -np.inf)
        bell_u, bell_l = above * (1 - above), below * (1 - below)
        slope_u, slope_l = bell_u / mass, -bell_l / mass
        bend_uu = (bell_u * (1 - 2 * above) / mass - slope_u**2) * self.weights
        bend_ll = (-bell_l * (1 - 2 * below) / mass - slope_l**2) * self.weights
        bend_ul = -slope_u * slope_l * self.weights
        slope_u, slope_l = slope_u * self.weights, slope_l * self.weights
        read = self.design[:, :, 1:]
        at_u = (self.codes[:, None] == np.arange(cuts)).astype(float)
        at_l = (self.codes[:, None] == np.arange(1, cuts + 1)).astype(float)
        gradient = np.empty((m, cuts + p - 1))
        gradient[:, :cuts] = slope_u @ at_u + slope_l @ at_l
        across = np.swapaxes(read, 1, 2)
        gradient[:, cuts:] = -(across @ (slope_u + slope_l)[:, :, None])[:, :, 0]
        hessian = np.zeros((m, cuts + p - 1, cuts + p - 1))
        steps = np.arange(cuts)
        hessian[:, steps, steps] = -(bend_uu @ at_u + bend_ll @ at_l)
        joint = -(bend_ul @ (at_u[:, 1:] * at_l[:, :-1])) if cuts > 1 else np.zeros((m, 0))
        hessian[:, steps[1:], steps[:-1]] = hessian[:, steps[:-1], steps[1:]] = joint
        mixed = (bend_uu + bend_ul)[:, :, None] * at_u + (bend_ll + bend_ul)[:, :, None] * at_l
        hessian[:, cuts:, :cuts] = across @ mixed
        hessian[:, :cuts, cuts:] = np.swapaxes(hessian[:, cuts:, :cuts], 1, 2)
        hessian[:, cuts:, cuts:] = across @ (read * ((bell_u + bell_l) * self.weights)[:, :, None])
        return Derivatives(value, gradient, hessian)

    def of_rows(self, rows: slice) -> "OrderedLogistic":
        """The same in some of the rows."""
        weights = np.broadcast_to(self.weights, self.codes.shape)[rows]
        return self._replace(design=self.design[:, rows], codes=self.codes[rows], weights=weights)

    def residuals(self, theta: Float[np.ndarray, " q"]) -> Residuals:
        """Of every level but the first, in the first regression."""
        cuts = self.num_levels - 1
        predictor = self.design[0][:, 1:] @ theta[cuts:]
        up_to = expit(theta[:cuts] - predictor[:, None])
        ends = np.zeros((len(predictor), 1)), np.ones((len(predictor), 1))
        probability = np.diff(np.concatenate([ends[0], up_to, ends[1]], axis=1), axis=1)
        return _of_levels(probability, self.codes)

    def prior(self, precision: Float[np.ndarray, " p"]) -> Float[np.ndarray, "q q"]:
        """Thresholds have half the precision of the constant, as the difference of two levels."""
        thresholds = np.full(self.num_levels - 1, precision[0] / 2)
        return np.diag(np.concatenate([thresholds, precision[1:] / 2]))

    def start(self) -> Float[np.ndarray, "m q"]:
        """Thresholds at the shares of the codes."""
        occurring = np.broadcast_to(self.weights, self.codes.shape)
        counts = np.bincount(self.codes, occurring, minlength=self.num_levels) + 0.5
        share = np.cumsum(counts)[:-1] / counts.sum()
        zero = np.zeros(self.design.shape[2] - 1)
        return np.tile(np.append(np.log(share / (1 - share)), zero), (len(self.design), 1))

    @property
    def log_constant(self) -> float:
        """Thresholds are sorted independent variables: (K - 1)! orders are one."""
        return float(gammaln(self.num_levels))


class NegativeBinomial(NamedTuple):
    """Counts of mean exp(predictor) and variance mean + mean² / dispersion."""

    design: Float[np.ndarray, "m n p"]
    counts: Float[np.ndarray, " n"]
    dispersion: float
    weights: RowWeights = ONCE

    def derivatives(self, theta: Float[np.ndarray, "m q"]) -> Derivatives:
        """The log likelihood is concave in the predictor."""
        y, r = self.counts[None, :], self.dispersion
        predictor = (self.design @ theta[:, :, None])[:, :, 0]
        predictor = np.clip(predictor, -MOST_LOG_MEAN, MOST_LOG_MEAN)
        log_sum = np.logaddexp(np.log(r), predictor)
        value = y * predictor - (y + r) * log_sum
        constant = gammaln(self.counts + r) - gammaln(r) - gammaln(self.counts + 1) + r * np.log(r)
        share = np.exp(predictor - log_sum)
        across = np.swapaxes(self.design, 1, 2)
        gradient = (across @ ((y - (y + r) * share) * self.weights)[:, :, None])[:, :, 0]
        weight = (y + r) * share * (1 - share) * self.weights
        hessian = across @ (self.design * weight[:, :, None])
        return Derivatives(((value + constant) * self.weights).sum(axis=1), gradient, hessian)

    def of_rows(self, rows: slice) -> "NegativeBinomial":
        """The same in some of the rows."""
        weights = np.broadcast_to(self.weights, self.counts.shape)[rows]
        return self._replace(design=self.design[:, rows], counts=self.counts[rows], weights=weights)

    def residuals(self, theta: Float[np.ndarray, " q"]) -> Residuals:
        """In the first regression."""
        mean = np.exp(np.clip(self.design[0] @ theta, -MOST_LOG_MEAN, MOST_LOG_MEAN))
        variance = mean + mean**2 / self.dispersion
        return Residuals((self.counts - mean)[:, None], np.sqrt(variance + 1e-6)[:, None])

    def prior(self, precision: Float[np.ndarray, " p"]) -> Float[np.ndarray, "q q"]:
        """The constant, a log mean, may be of any size that counts have."""
        return np.diag(np.concatenate([[1 / 25], precision[1:]]))

    def start(self) -> Float[np.ndarray, "m q"]:
        """The mean of all counts."""
        theta = np.zeros((len(self.design), self.design.shape[2]))
        occurring = np.broadcast_to(self.weights, self.counts.shape)
        if occurring.sum():
            theta[:, 0] = np.log(np.average(self.counts, weights=occurring) + 0.1)
        return theta

    @property
    def log_constant(self) -> float:
        """Log factor of the prior beside its Gaussian density."""
        return 0.0
