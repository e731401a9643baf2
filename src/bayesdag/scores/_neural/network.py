"""One small network as a function: its predictions, and their slopes in the parameters.

A hidden layer of rectifiers beside a linear part, on whitened inputs. Everything here is for ONE
network; `jax.vmap` handles thousands at once.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Bool, Float

from bayesdag.model.mechanisms import networks
from bayesdag.scores._neural.linear_algebra import dot
from bayesdag.types import Array


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


def means(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, " n"]:
    """What the network predicts."""
    return dot(features(network, inputs), network.second)


def features(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, "n q"]:
    """Rectified units, the inputs themselves, and 1."""
    return networks.features(network.first, network.bias, inputs)


def active(network: Network, inputs: Float[Array, "n k"]) -> Bool[Array, "n h"]:
    """Which hidden units answer to which rows."""
    return networks.pre_activations(network.first, network.bias, inputs) > 0


def slopes(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, "n p"]:
    """Derivatives of the predictions with respect to all parameters."""
    n, (k, h) = inputs.shape[0], network.first.shape
    gate = jnp.where(active(network, inputs), network.second[None, :h], 0.0)
    first = (inputs[:, :, None] * gate[:, None, :]).reshape(n, k * h)
    return jnp.concatenate([first, gate, features(network, inputs)], axis=1)


def flat(network: Network) -> Float[Array, " p"]:
    """All parameters in one vector, in the order of `slopes`."""
    return jnp.concatenate([leaf.reshape(-1) for leaf in network])


def moved(network: Network, step: Float[Array, " p"], used: Float[Array, " k"]) -> Network:
    """The network after a step of all its parameters; unused inputs stay without weight."""
    k, h = network.first.shape
    first, bias, second = jnp.split(step, [k * h, k * h + h])
    first = first.reshape(k, h) * used[:, None]
    return Network(network.first + first, network.bias + bias, network.second + second)


def prior_precision(network: Network, used: Float[Array, " k"]) -> Float[Array, " p"]:
    """Of every parameter: units, and the sums over them, are about 1 whatever their number.

    Inputs and target are standardised, so this says that functions explain a good part of
    the target and no more; the intercept is free.
    """
    (k, h), count = network.first.shape, jnp.maximum(used.sum(), 1.0)
    inputs, units = jnp.full(k, count), jnp.full(h, float(h))
    parts = (jnp.full(k * h, count), jnp.ones(h), units, inputs, jnp.full(1, 0.01))
    return jnp.concatenate(parts)


def residuals(network: Network, rows: TrainingRows) -> Float[Array, " n"]:
    """What the network leaves of the target."""
    return rows.target - means(network, rows.inputs)


def curvature(
    network: Network, rows: TrainingRows, prior: Float[Array, " p"]
) -> tuple[Float[Array, "p p"], Float[Array, "n p"]]:
    """Of the penalised sum of squares, and the slopes of the weighted residuals.

    The root of the weights goes into the slopes: one large array is written, not two.
    """
    weighted = slopes(network, rows.inputs) * jnp.sqrt(rows.weight)[:, None]
    return dot(weighted.T, weighted) + jnp.diag(prior), weighted
