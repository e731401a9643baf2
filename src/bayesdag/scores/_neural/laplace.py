"""Laplace's approximation around one trained network: its evidence and its predictions."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_forms, noise_shape
from bayesdag.scores._neural.linear_algebra import dot, lower_inverse
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.noise_forms import NoiseFits
from bayesdag.types import Array

JITTER = 1e-5  # of whitening: inputs that agree to five digits count as one
_MIN_FREE_ROWS = 0.1  # fraction of the rows that the parameters leave for the scale, at least


class Fit(NamedTuple):
    """A trained network and the uncertainty about it.

    Attributes:
        network: on whitened inputs, for a standardised target.
        noise: of the residuals, in every form.
        inverse: of the Cholesky factor of the curvature; its square, times the squared scale,
            is the covariance of the parameters.
        last: curvature of the last layer, hidden units given.
        log_posterior: of the training rows, up to a constant.
        log_marginal: of the training rows, by form of the noise: log posterior and Laplace's
            volume.
    """

    network: Network
    noise: NoiseFits
    inverse: Float[Array, "p p"]
    last: Float[Array, "q q"]
    log_posterior: Float[Array, ""]
    log_marginal: Float[Array, " form"]


class Predicted(NamedTuple):
    """Of each row, by form of the noise: log density, and residual in units of the scale."""

    log_density: Float[Array, "n form"]
    residual: Float[Array, "n form"]


def fit(network: Network, rows: TrainingRows, used: Float[Array, " k"]) -> Fit:
    """Noise of the residuals, and what the rows leave open about the parameters.

    The scale is that of n - γ rows, γ being the number of parameters that the rows and not
    the prior determine.
    """
    residual = functions.residuals(network, rows)
    shapes = noise_shape.fit(residual, rows.weight)
    symmetric = shapes.symmetric
    weighted = rows._replace(weight=rows.weight * noise_shape.tail_weights(residual, symmetric))
    precision = functions.prior_precision(network, used)
    prior = symmetric.scale**2 * precision
    matrix, _ = functions.curvature(network, weighted, prior)
    root = jnp.linalg.cholesky(matrix + jnp.diag(JITTER * jnp.diagonal(matrix)))
    # Rounding may leave no factor of a nearly singular matrix: then the diagonal serves.
    root = jnp.where(jnp.isfinite(root).all(), root, jnp.diag(jnp.sqrt(jnp.diagonal(matrix))))
    inverse = lower_inverse(root)
    undetermined = (inverse**2 * prior[None, :]).sum()  # tr(A⁻¹ σ²Λ)
    count = jnp.maximum(rows.weight.sum(), 1.0)
    free = jnp.maximum(1 - (len(matrix) - undetermined) / count, _MIN_FREE_ROWS)
    penalty = 0.5 * (precision * functions.flat(network) ** 2).sum()
    # Half the log determinant of the curvature over that of the prior.
    shrinkage = jnp.log(jnp.diagonal(root)).sum() - 0.5 * jnp.log(prior).sum()
    # What solves must wait for what solved before: see `lower_inverse`.
    features = functions.features(network, rows.inputs) + 0 * undetermined
    noise = noise_forms.describe(features, residual, rows.weight, shapes)
    q = len(network.second)
    return Fit(
        network=network,
        noise=noise.fits._replace(scale=noise.fits.scale / jnp.sqrt(free)),
        inverse=inverse,
        last=matrix[-q:, -q:],
        log_posterior=symmetric.log_likelihood - penalty,
        log_marginal=noise.log_marginal - penalty - shrinkage,
    )


def predict(fitted: Fit, rows: TrainingRows) -> Predicted:
    """Log predictive density of each row, and its residual in units of the scale.

    The uncertainty of the parameters widens the density: σ² (1 + leverage).
    """
    residual = functions.residuals(fitted.network, rows)
    slopes = functions.slopes(fitted.network, rows.inputs)
    wider = jnp.sqrt(1 + (dot(slopes, fitted.inverse.T) ** 2).sum(axis=1))
    features = functions.features(fitted.network, rows.inputs)
    factor = log_scale_factor(features, fitted.noise.log_scale_weights.T)
    scale = fitted.noise.scale[None, :] * jnp.exp(factor)
    wide = scale * wider[:, None]
    density = noise_shape.log_density(residual[:, None] / wide, fitted.noise.shape[None, :])
    return Predicted(density - jnp.log(wide), residual[:, None] / scale)
