"""Laplace's approximation around one trained network: its evidence and its predictions."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_forms, noise_shape
from bayesdag.scores._neural.control_flow import either
from bayesdag.scores._neural.linear_algebra import (
    cholesky,
    diagonal_of,
    dot,
    lower_inverse,
    with_added_diagonal,
)
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.noise_forms import NoiseFits

JITTER = 1e-5  # of whitening: inputs that agree to five digits count as one
_MIN_FREE_ROWS = 0.1  # fraction of the rows that the parameters leave for the scale, at least


class Linearised(NamedTuple):
    """A network around its parameters: residuals of the rows, and slopes of the predictions."""

    residual: Float[Array, " n"]
    slopes: Float[Array, "n p"]


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
        seen: of the rows it was fitted to.
    """

    network: Network
    noise: NoiseFits
    inverse: Float[Array, "p p"]
    last: Float[Array, "q q"]
    log_posterior: Float[Array, ""]
    log_marginal: Float[Array, " form"]
    seen: Linearised


class Predicted(NamedTuple):
    """Of each row, by form of the noise: log density, and residual in units of the scale."""

    log_density: Float[Array, "n form"]
    residual: Float[Array, "n form"]


def fit(
    network: Network,
    rows: TrainingRows,
    used: Float[Array, " k"],
    scale: Int[np.ndarray, " c"] | None = None,
) -> Fit:
    """Noise of the residuals, and what the rows leave open about the parameters.

    The scale is that of n - γ rows, γ being the number of parameters that the rows and not
    the prior determine.

    Args:
        scale: positions of the features that the scale of the noise may depend on; all, unless
            told.
    """
    xp, seen = namespace(rows.target), _linearised(network, rows)
    residual, q = seen.residual, len(network.second)
    shapes = noise_shape.fit(residual, rows.weight)
    symmetric = shapes.symmetric
    weight = rows.weight * noise_shape.tail_weights(residual, symmetric)
    precision = functions.prior_precision(network, used)
    prior = symmetric.scale**2 * precision
    matrix, _ = functions.curvature(seen.slopes, weight, prior)
    diagonal = xp.diagonal(matrix)
    found = cholesky(with_added_diagonal(matrix, JITTER * diagonal))
    # Rounding may leave no factor of a nearly singular matrix: then the diagonal serves.
    usable = xp.isfinite(xp.diagonal(found)).all()
    root = either(usable, lambda: found, lambda: diagonal_of(xp.sqrt(diagonal)))
    inverse = lower_inverse(root)
    undetermined = dot((inverse**2).sum(axis=0), prior)  # tr(A⁻¹ σ²Λ)
    count = xp.maximum(rows.weight.sum(), 1.0)
    free = xp.maximum(1 - (len(matrix) - undetermined) / count, _MIN_FREE_ROWS)
    penalty = 0.5 * (precision * functions.flat(network) ** 2).sum()
    # Half the log determinant of the curvature over that of the prior.
    shrinkage = xp.log(xp.diagonal(root)).sum() - 0.5 * xp.log(prior).sum()
    positions = slice(None) if scale is None else scale
    features = seen.slopes[:, -q:].T[positions].T
    # What solves must wait for what solved before: see `lower_inverse`.
    noise = noise_forms.describe(features, residual, rows.weight + 0 * undetermined, shapes)
    in_place = xp.eye(q, dtype=features.dtype)[positions]
    return Fit(
        network=network,
        noise=noise.fits._replace(
            scale=noise.fits.scale / xp.sqrt(free),
            log_scale_weights=dot(noise.fits.log_scale_weights, in_place),
        ),
        inverse=inverse,
        last=matrix[-q:, -q:],
        log_posterior=symmetric.log_likelihood - penalty,
        log_marginal=noise.log_marginal - penalty - shrinkage,
        seen=seen,
    )


def predict(fitted: Fit, rows: TrainingRows) -> Predicted:
    """Log predictive density of each row, and its residual in units of the scale.

    The uncertainty of the parameters widens the density: σ² (1 + leverage).
    """
    seen = _linearised(fitted.network, rows)
    return _predicted(fitted, seen, _leverage(fitted, seen))


def as_fitted(fitted: Fit) -> Predicted:
    """The same for the rows that were fitted, as the fit itself sees them."""
    seen = fitted.seen
    return _predicted(fitted, seen, 0 * seen.residual)


def leave_one_out(fitted: Fit, weight: Float[Array, " n"]) -> Predicted:
    """The same for the rows that were fitted, each as a fit without it would see it.

    Without row i of leverage h, the residual is r / (1 - h) and the leverage h / (1 - h).

    Args:
        weight: of each row, 0 or 1.
    """
    seen, leverage = fitted.seen, _leverage(fitted, fitted.seen)
    left = namespace(weight).maximum(1 - weight * leverage, _MIN_FREE_ROWS)
    return _predicted(fitted, seen._replace(residual=seen.residual / left), leverage / left)


def _linearised(network: Network, rows: TrainingRows) -> Linearised:
    units = functions.units(network, rows.inputs)
    residual = rows.target - functions.means_given(network, rows.inputs, units)
    return Linearised(residual, functions.slopes(network, rows.inputs, units))


def _leverage(fitted: Fit, seen: Linearised) -> Float[Array, " n"]:
    return (dot(fitted.inverse, seen.slopes.T) ** 2).sum(axis=0)


def _predicted(fitted: Fit, seen: Linearised, leverage: Float[Array, " n"]) -> Predicted:
    residual, slopes = seen
    xp, wider = namespace(residual), namespace(residual).sqrt(1 + leverage)
    features = slopes[:, -len(fitted.network.second) :]
    factor = log_scale_factor(features, fitted.noise.log_scale_weights.T)
    scale = fitted.noise.scale[None, :] * xp.exp(factor)
    wide = scale * wider[:, None]
    density = noise_shape.log_density(residual[:, None] / wide, fitted.noise.shape[None, :])
    return Predicted(density - xp.log(wide), residual[:, None] / scale)
