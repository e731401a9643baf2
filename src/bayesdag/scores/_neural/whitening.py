"""Units in which a network sees its rows, and the way back to the units of the engine.

Inputs are whitened: strongly correlated parents would otherwise hide a kink from the
optimiser. A network in engine units can be handed to another set of parents.
"""

from typing import NamedTuple

from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.scores._neural.laplace import JITTER, Fit
from bayesdag.scores._neural.linear_algebra import (
    cholesky,
    diagonal_of,
    dot,
    lower_inverse,
    with_added_diagonal,
)
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.noise_forms import NoiseFits


class Whitening(NamedTuple):
    """z = (x - mean) inverseᵀ for the inputs, (y - centre) / spread for the target."""

    mean: Float[Array, " k"]
    root: Float[Array, "k k"]
    inverse: Float[Array, "k k"]
    centre: Float[Array, ""]
    spread: Float[Array, ""]


def whitening(x: Array, y: Array, weight: Array, used: Array) -> Whitening:
    """Means and covariance of the rows that count; unused inputs stay zero."""
    count, mean, centre, spread = _moments(x, y, weight, used)
    centred = (x - mean[None, :]) * used[None, :]
    covariance = dot((centred * weight[:, None]).T, centred) / count
    root = cholesky(with_added_diagonal(covariance, 1 - used + JITTER))
    return Whitening(mean, root, lower_inverse(root), centre, spread)


def _moments(x: Array, y: Array, weight: Array, used: Array) -> tuple[Array, Array, Array, Array]:
    """Number of rows that count, means of the inputs, and mean and deviation of the target."""
    xp = namespace(x)
    count = xp.maximum(weight.sum(), 1.0)
    mean = used * (weight @ x) / count
    centre = (weight * y).sum() / count
    return count, mean, centre, xp.sqrt((weight * (y - centre) ** 2).sum() / count + 1e-12)


def scaling(x: Array, y: Array, weight: Array, used: Array, size: Array) -> Whitening:
    """Means of the rows that count, and given units, which leave inputs correlated."""
    _, mean, centre, spread = _moments(x, y, weight, used)
    return Whitening(mean, diagonal_of(size), diagonal_of(1 / size), centre, spread)


def whitened(by: Whitening, x: Array, y: Array, weight: Array, used: Array) -> TrainingRows:
    """The rows in the units a network sees."""
    centred = (x - by.mean[None, :]) * used[None, :]
    return TrainingRows(dot(centred, by.inverse.T), (y - by.centre) / by.spread, weight)


def scaled(by: Whitening, x: Array, y: Array, weight: Array, used: Array) -> TrainingRows:
    """The same where units leave the inputs correlated: nothing has to be multiplied out."""
    per_unit = used * namespace(x).diagonal(by.inverse)
    inputs = (x - by.mean[None, :]) * per_unit[None, :]
    return TrainingRows(inputs, (y - by.centre) / by.spread, weight)


def in_engine_units(by: Whitening, network: Network) -> Network:
    """The network as a function of the inputs themselves; the target stays standardised."""
    first = dot(by.inverse.T, network.first)
    second = _weights_in_engine_units(by, network.second)
    return Network(first, network.bias - by.mean @ first, second)


def noise_in_engine_units(by: Whitening, fit: Fit) -> NoiseFits:
    """Noise of a network: its scale, and what the scale depends on, in terms of the inputs."""
    return fit.noise._replace(
        scale=fit.noise.scale * by.spread,
        log_scale_weights=_weights_in_engine_units(by, fit.noise.log_scale_weights),
    )


def in_whitened_units(by: Whitening, network: Network) -> Network:
    """Inverse of `in_engine_units`."""
    (_, h), second = network.first.shape, network.second
    linear, intercept = second[h:-1], second[-1:]
    parts = [second[:h], by.root.T @ linear, intercept + (by.mean * linear).sum()]
    return Network(
        dot(by.root.T, network.first),
        network.bias + by.mean @ network.first,
        namespace(second).concatenate(parts),
    )


def _weights_in_engine_units(
    by: Whitening, weights: Float[Array, "*forms q"]
) -> Float[Array, "*forms q"]:
    """Weights of units, of inputs and of 1, when the inputs are no longer whitened."""
    h = weights.shape[-1] - len(by.mean) - 1
    linear = dot(weights[..., h:-1], by.inverse)
    mean = by.mean[(None,) * (weights.ndim - 1)]
    intercept = weights[..., -1:] - (mean * linear).sum(axis=-1, keepdims=True)
    return namespace(weights).concatenate([weights[..., :h], linear, intercept], axis=-1)
