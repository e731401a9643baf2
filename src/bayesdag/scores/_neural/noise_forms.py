"""Descriptions of the residuals of a network: one scale or several, symmetric or skewed."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural import heteroscedastic, noise_shape
from bayesdag.scores._neural.noise_shape import ShapeFits

# Log odds of a scale that depends on the parents below which its shape is not fitted anew: the
# plain form then has all but a thousandth of the evidence.
_LEAST_ODDS = -7.0


class NoiseForm(IntEnum):
    """What is assumed of the noise; the position of its results in arrays over all forms."""

    SYMMETRIC = 0
    SYMMETRIC_HETEROSCEDASTIC = 1
    SKEWED = 2
    SKEWED_HETEROSCEDASTIC = 3


def noise_forms(*, heteroscedastic: bool, skewed: bool) -> tuple[NoiseForm, ...]:
    """The forms that a score averages over: a scale that depends on the parents may not."""
    if skewed:
        plain, dependent = NoiseForm.SKEWED, NoiseForm.SKEWED_HETEROSCEDASTIC
    else:
        plain, dependent = NoiseForm.SYMMETRIC, NoiseForm.SYMMETRIC_HETEROSCEDASTIC
    return (plain, dependent) if heteroscedastic else (plain,)


class NoiseFits(NamedTuple):
    """Residuals described in every form; the leading dimension is `NoiseForm`.

    Attributes:
        scale: of the residuals.
        shape: number of their shape in `noise_shape.SHAPES`.
        log_scale_weights: of the features in the log factor of the scale; 0 where it is
            constant.
    """

    scale: Float[Array, "*form"]
    shape: Int[Array, "*form"]
    log_scale_weights: Float[Array, "*form q"]


class DescribedNoise(NamedTuple):
    """Fits in every form, and the log marginal likelihood of each."""

    fits: NoiseFits
    log_marginal: Float[Array, " form"]


def describe(
    features: Float[Array, "n q"],
    residual: Float[Array, " n"],
    weight: Float[Array, " n"],
    shapes: ShapeFits,
) -> DescribedNoise:
    """Every form fitted to the residuals, in the order of `NoiseForm`.

    What the scale depends on is learned without a skew, and serves both forms: a skew moves the
    weights by less than the rows leave open.

    Args:
        shapes: of the residuals, where one scale serves all rows.
    """
    xp, plain = namespace(residual), shapes.symmetric
    degrees = noise_shape.degrees_of(plain.shape)
    scale = heteroscedastic.fit(features, residual / plain.scale, weight, degrees)
    factor = log_scale_factor(features, scale.weights)
    if xp is np and scale.gain + scale.log_volume < _LEAST_ODDS:
        evened, dependent = shapes, scale.log_volume + scale.gain
    else:
        evened = noise_shape.fit(residual * xp.exp(-factor), weight)
        dependent = scale.log_volume - (weight * factor).sum()
    in_order = (plain, evened.symmetric, shapes.any, evened.any)
    constant = xp.zeros_like(scale.weights)
    fits = NoiseFits(
        scale=xp.asarray([best.scale for best in in_order]),
        shape=xp.asarray([best.shape for best in in_order]),
        log_scale_weights=xp.asarray([constant, scale.weights] * 2),
    )
    likelihood = xp.asarray([best.log_likelihood for best in in_order])
    return DescribedNoise(fits, likelihood + xp.asarray([0 * dependent, dependent] * 2))
