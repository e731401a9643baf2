"""Conjugate evidence of Gaussian regressions on features, from sums of squares and products.

Given σ, weights are N(0, σ² / t) and the constant N(0, σ²); σ² is inverse gamma with shape
(3 + parents) / 2 and scale t / 2. With the values of the parents as features this is BGe with
alpha_mu = 1 and alpha_w = d + 2, so that lines of Gaussian variables keep their equivalence.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

# t, equally probable: from effects as large as the noise to noise that hardly shows.
PRIOR_SCALES = (0.5, 0.05, 0.005)
_LEAST = 1e-12  # of a sum of squares; less is rounding


class Regression(NamedTuple):
    """Posteriors of m regressions under one t.

    Attributes:
        mean: of the weights, the first of which is the constant.
        precision: of the weights, over σ².
        shape: of the inverse gamma posterior of σ².
        scale: of that posterior.
        log_evidence: log density of the target.
    """

    mean: Float[np.ndarray, "m p"]
    precision: Float[np.ndarray, "m p p"]
    shape: Float[np.ndarray, " m"]
    scale: Float[np.ndarray, " m"]
    log_evidence: Float[np.ndarray, " m"]


def regress(
    gram: Float[np.ndarray, "m p p"],
    products: Float[np.ndarray, "m p"],
    total: Float[np.ndarray, " m"],
    num_rows: Float[np.ndarray, " m"],
    num_parents: Int[np.ndarray, " m"],
    t: float,
) -> Regression:
    """Regressions of targets on features, the first of which is the constant.

    Args:
        gram: sums of products of the features; rows and columns of zeros are padding.
        products: of the features with the target.
        total: sum of squares of the target.
    """
    p = gram.shape[1]
    prior = np.append(1.0, np.full(p - 1, t))
    precision = gram + np.diag(prior)
    root = np.linalg.cholesky(precision)
    mean = np.linalg.solve(precision, products[:, :, None])[:, :, 0]
    left = np.maximum(total - (products * mean).sum(axis=1), _LEAST * np.maximum(total, _LEAST))
    shape = (3 + num_parents) / 2
    scale = t / 2 + left / 2
    after = shape + num_rows / 2
    volume = 0.5 * np.log(prior).sum() - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    value = gammaln(after) - gammaln(shape) + shape * np.log(t / 2) - after * np.log(scale)
    value += volume - num_rows / 2 * np.log(2 * np.pi)
    return Regression(mean, precision, after, scale, value)


def draw(
    rng: np.random.Generator, found: Regression, which: int
) -> tuple[Float[np.ndarray, " p"], float]:
    """Weights and log σ of one regression."""
    variance = found.scale[which] / rng.gamma(found.shape[which])
    root = np.linalg.cholesky(found.precision[which])
    noise = np.linalg.solve(root.T, rng.standard_normal(len(root)))
    return found.mean[which] + np.sqrt(variance) * noise, 0.5 * float(np.log(variance))
