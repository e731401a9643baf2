"""One small network as a function: its predictions, and their slopes in the parameters.

A hidden layer of rectifiers beside a linear part, on whitened inputs. Everything here is for ONE
network, of NumPy or JAX arrays; `jax.vmap` handles thousands at once.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms import networks
from bayesdag.scores._neural.linear_algebra import dot, weighted_gram, with_added_diagonal

INTERCEPT_PRECISION = 0.01  # next to none, for a standardised target


class Network(NamedTuple):
    """Mean of a variable: second · [units, inputs, 1].

    Attributes:
        first: weights of the hidden units.
        bias: of the hidden units.
        second: weights of the units, of the inputs themselves, and the intercept.
    """

    first: Float[Array, "k h"]
    bias: Float[Array, " h"]
    second: Float[Array, " q"]


class TrainingRows(NamedTuple):
    """Inputs (whitened), target (standardised) and the weight of each row."""

    inputs: Float[Array, "n k"]
    target: Float[Array, " n"]
    weight: Float[Array, " n"]


def units(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, "n h"]:
    """Rectified hidden units."""
    return networks.units(network.first, network.bias, inputs)


def features(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, "n q"]:
    """Rectified units, the inputs themselves, and 1."""
    return networks.features(network.first, network.bias, inputs)


def means(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, " n"]:
    """What the network predicts."""
    return means_given(network, inputs, units(network, inputs))


def means_given(
    network: Network, inputs: Float[Array, "n k"], seen: Float[Array, "n h"]
) -> Float[Array, " n"]:
    """What the network predicts, given its hidden units."""
    h = seen.shape[1]
    return dot(seen, network.second[:h]) + dot(inputs, network.second[h:-1]) + network.second[-1]


def slopes(
    network: Network, inputs: Float[Array, "n k"], seen: Float[Array, "n h"]
) -> Float[Array, "n p"]:
    """Derivatives of the predictions with respect to all parameters, given the hidden units."""
    if isinstance(inputs, np.ndarray):
        return _slopes_in_place(network, inputs, np.asarray(seen))
    xp, (n, k), h = namespace(inputs), inputs.shape, seen.shape[1]
    gate = xp.where(seen > 0, network.second[None, :h], 0.0)
    first = (inputs[:, :, None] * gate[:, None, :]).reshape(n, k * h)
    return xp.concatenate([first, gate, seen, inputs, xp.ones_like(inputs[:, :1])], axis=1)


def _slopes_in_place(
    network: Network, inputs: Float[np.ndarray, "n k"], seen: Float[np.ndarray, "n h"]
) -> Float[np.ndarray, "n p"]:
    """The same, written once and column by column: most of the memory that a fit moves is here."""
    (n, k), h = inputs.shape, seen.shape[1]
    columns = np.empty((k * h + 2 * h + k + 1, n), inputs.dtype)
    gate = columns[k * h : k * h + h]
    np.multiply(seen.T > 0, network.second[:h, None], out=gate)
    np.multiply(inputs.T[:, None, :], gate[None, :, :], out=columns[: k * h].reshape(k, h, n))
    columns[k * h + h : k * h + 2 * h] = seen.T
    columns[-1 - k : -1] = inputs.T
    columns[-1] = 1.0
    return columns.T


def flat(network: Network) -> Float[Array, " p"]:
    """All parameters in one vector, in the order of `slopes`."""
    return namespace(network.bias).concatenate([leaf.reshape(-1) for leaf in network])


def of_flat(parameters: Float[Array, " p"], like: Network) -> Network:
    """Inverse of `flat`, for networks of the same shape."""
    k, h = like.first.shape
    first, rest = parameters[: k * h].reshape(k, h), parameters[k * h :]
    return Network(first, rest[:h], rest[h:])


def prior_precision(network: Network, used: Float[Array, " k"]) -> Float[Array, " p"]:
    """Of every parameter: units, and the sums over them, are about 1 whatever their number.

    Inputs and target are standardised, so this says that functions explain a good part of
    the target and no more; the intercept is free.
    """
    (k, h), xp = network.first.shape, namespace(used)
    count = xp.maximum(used.sum(), 1.0)
    sizes = ((k * h, count), (h, 1.0), (h, float(h)), (k, count), (1, INTERCEPT_PRECISION))
    return xp.concatenate([xp.full(num, size, used.dtype) for num, size in sizes])


def residuals(network: Network, rows: TrainingRows) -> Float[Array, " n"]:
    """What the network leaves of the target."""
    return rows.target - means(network, rows.inputs)


def curvature(
    slopes: Float[Array, "n p"], weight: Float[Array, " n"], prior: Float[Array, " p"]
) -> tuple[Float[Array, "p p"], Float[Array, "n p"]]:
    """Of the penalised sum of squares, and the slopes of the weighted residuals."""
    gram, slopes = weighted_gram(slopes, weight)
    return with_added_diagonal(gram, prior), slopes
