"""Laplace's approximation around one trained network: its evidence and its predictions."""

from typing import NamedTuple

from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_forms, noise_shape
from bayesdag.scores._neural.linear_algebra import cholesky, diagonal_of, dot, lower_inverse
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.noise_forms import NoiseFits

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


def fit(
    network: Network,
    rows: TrainingRows,
    used: Float[Array, " k"],
    scale: Float[Array, " k"] | None = None,
) -> Fit:
    """Noise of the residuals, and what the rows leave open about the parameters.

    The scale is that of n - γ rows, γ being the number of parameters that the rows and not
    the prior determine.

    Args:
        scale: of a network without hidden units, the inputs that the scale of the noise may
            depend on; all, unless told.
    """
    xp, seen = namespace(rows.target), functions.units(network, rows.inputs)
    residual = rows.target - functions.means_given(network, rows.inputs, seen)
    shapes = noise_shape.fit(residual, rows.weight)
    symmetric = shapes.symmetric
    weight = rows.weight * noise_shape.tail_weights(residual, symmetric)
    precision = functions.prior_precision(network, used)
    prior = symmetric.scale**2 * precision
    matrix, _ = functions.curvature(functions.slopes(network, rows.inputs, seen), weight, prior)
    root = cholesky(matrix + diagonal_of(JITTER * xp.diagonal(matrix)))
    # Rounding may leave no factor of a nearly singular matrix: then the diagonal serves.
    root = xp.where(xp.isfinite(root).all(), root, diagonal_of(xp.sqrt(xp.diagonal(matrix))))
    inverse = lower_inverse(root)
    undetermined = (inverse**2 * prior[None, :]).sum()  # tr(A⁻¹ σ²Λ)
    count = xp.maximum(rows.weight.sum(), 1.0)
    free = xp.maximum(1 - (len(matrix) - undetermined) / count, _MIN_FREE_ROWS)
    penalty = 0.5 * (precision * functions.flat(network) ** 2).sum()
    # Half the log determinant of the curvature over that of the prior.
    shrinkage = xp.log(xp.diagonal(root)).sum() - 0.5 * xp.log(prior).sum()
    # What solves must wait for what solved before: see `lower_inverse`.
    features = functions.features(network, rows.inputs) + 0 * undetermined
    if scale is not None:
        features = features * xp.append(scale, xp.ones_like(scale[:1]))[None, :]
    noise = noise_forms.describe(features, residual, rows.weight, shapes)
    q = len(network.second)
    return Fit(
        network=network,
        noise=noise.fits._replace(scale=noise.fits.scale / xp.sqrt(free)),
        inverse=inverse,
        last=matrix[-q:, -q:],
        log_posterior=symmetric.log_likelihood - penalty,
        log_marginal=noise.log_marginal - penalty - shrinkage,
    )


def predict(fitted: Fit, rows: TrainingRows) -> Predicted:
    """Log predictive density of each row, and its residual in units of the scale.

    The uncertainty of the parameters widens the density: σ² (1 + leverage).
    """
    return _predicted(fitted, rows, seen_before=False)


def leave_one_out(fitted: Fit, rows: TrainingRows) -> Predicted:
    """The same for the rows that were fitted, each as a fit without it would see it.

    Without row i of leverage h, the residual is r / (1 - h) and the leverage h / (1 - h).
    """
    return _predicted(fitted, rows, seen_before=True)


def _predicted(fitted: Fit, rows: TrainingRows, seen_before: bool) -> Predicted:
    seen = functions.units(fitted.network, rows.inputs)
    residual = rows.target - functions.means_given(fitted.network, rows.inputs, seen)
    xp, slopes = namespace(residual), functions.slopes(fitted.network, rows.inputs, seen)
    leverage = (dot(fitted.inverse, slopes.T) ** 2).sum(axis=0)
    if seen_before:
        left = xp.maximum(1 - rows.weight * leverage, _MIN_FREE_ROWS)
        residual, leverage = residual / left, leverage / left
    wider = xp.sqrt(1 + leverage)
    features = slopes[:, -len(fitted.network.second) :]
    factor = log_scale_factor(features, fitted.noise.log_scale_weights.T)
    scale = fitted.noise.scale[None, :] * xp.exp(factor)
    wide = scale * wider[:, None]
    density = noise_shape.log_density(residual[:, None] / wide, fitted.noise.shape[None, :])
    return Predicted(density - xp.log(wide), residual[:, None] / scale)
