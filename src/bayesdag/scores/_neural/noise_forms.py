"""Descriptions of the residuals of a network: one scale or several, symmetric or skewed."""

from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.model.mechanisms.networks import log_scale_factor
from bayesdag.scores._neural import heteroscedastic, noise_shape
from bayesdag.scores._neural.noise_shape import ShapeFit
from bayesdag.types import Array


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


class _Described(NamedTuple):
    fits: NoiseFits
    log_marginal: Float[Array, ""]


def describe(
    features: Float[Array, "n q"],
    residual: Float[Array, " n"],
    weight: Float[Array, " n"],
    symmetric: ShapeFit,
) -> DescribedNoise:
    """Every form fitted to the residuals, in the order of `NoiseForm`.

    Args:
        symmetric: the best shape without a skew.
    """
    found: list[_Described] = []
    skewed = noise_shape.fit(residual, weight)
    for num_shapes, best in ((noise_shape.NUM_SYMMETRIC, symmetric), (None, skewed)):
        constant = NoiseFits(best.scale, best.shape, jnp.zeros_like(features[0]))
        dependent = _heteroscedastic(features, residual, weight, best, num_shapes)
        found += [_Described(constant, best.log_likelihood), dependent.described]
        features = features + 0 * dependent.log_likelihood  # one solution after the other
    return DescribedNoise(*jax.tree.map(lambda *leaves: jnp.stack(leaves), *found))


class _Dependent(NamedTuple):
    described: _Described
    log_likelihood: Float[Array, ""]


def _heteroscedastic(
    features: Array, residual: Array, weight: Array, constant: ShapeFit, num_shapes: int | None
) -> _Dependent:
    """A scale that depends on the features, and the shape of what it leaves."""
    degrees = noise_shape.degrees_of(constant.shape)
    scale = heteroscedastic.fit(
        features + 0 * constant.log_likelihood, residual / constant.scale, weight, degrees
    )
    factor = log_scale_factor(features, scale.weights)
    best = noise_shape.fit(residual * jnp.exp(-factor), weight, num_shapes)
    log_marginal = best.log_likelihood - (weight * factor).sum() + scale.log_volume
    fits = NoiseFits(best.scale, best.shape, scale.weights)
    return _Dependent(_Described(fits, log_marginal), best.log_likelihood)
