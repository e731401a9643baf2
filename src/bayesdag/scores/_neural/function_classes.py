"""Classes of functions inside a family: straight lines, sums of curves, networks.

The evidence of a network pays for hidden units, so that a line which a network could be is
charged for what it does not need, and the charge decides about arrows. Lines and sums of curves
are therefore hypotheses of their own, equally probable beforehand in every family: no family
scores worse than a simpler one that it contains by more than those odds.

Both are linear in a fixed basis, the inputs and their kinks: a network without hidden units
that reads the basis, fitted by ridge regression, with Laplace's approximation as for any other.
"""

from enum import IntEnum

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from bayesdag.model.mechanisms.networks import kinks
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_shape
from bayesdag.scores._neural.linear_algebra import dot, solve
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.types import Array

KNOTS = (0.15, 0.5, 0.85)  # quantiles of a variable at which its curve may bend
_PLAIN_STEPS, _ROBUST_STEPS = 2, 2
_LEAST_VARIANCE = 1e-6  # fraction of a variance; a better fit is rounding


class FunctionClass(IntEnum):
    """What a function may be; the position of its results in arrays over all classes."""

    NETWORK = 0
    LINEAR = 1
    ADDITIVE = 2


def knots_of(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d m"]:
    """Where the curve of each variable may bend."""
    return np.quantile(values, KNOTS, axis=0).T


def basis(
    inputs: Float[Array, "n k"], knots: Float[Array, "k m"], used: Float[Array, " k"]
) -> Float[Array, "n q"]:
    """The inputs, then the kinks of each of them; zero where an input is not used."""
    bent = kinks(inputs, knots) * jnp.repeat(used, knots.shape[1])[None, :]
    return jnp.concatenate([inputs * used[None, :], bent], axis=1)


def members_of_basis(used: Float[Array, " k"]) -> Float[Array, "2 q"]:
    """What a line and a sum of curves use of the basis."""
    bent = jnp.repeat(used, len(KNOTS))
    lines, curves = jnp.append(used, 0 * bent), jnp.append(used, bent)
    return jnp.stack([lines, curves])


def regress(rows: TrainingRows, used: Float[Array, " q"]) -> Network:
    """Ridge regression of the target on whitened inputs; its last steps weigh the rows."""
    q = rows.inputs.shape[1]
    network = Network(jnp.zeros((q, 0)), jnp.zeros(0), jnp.zeros(q + 1))
    precision = functions.prior_precision(network, used)
    read = functions.features(network, rows.inputs)
    count = jnp.maximum(rows.weight.sum(), 1.0)

    def solved(residual: Array, weight: Array) -> Array:
        mean_square = (rows.weight * residual**2).sum() / count
        prior = jnp.maximum(mean_square, _LEAST_VARIANCE) * precision
        matrix = dot((read * weight[:, None]).T, read) + jnp.diag(prior)
        return solve(matrix, dot(read.T, weight * rows.target))

    def robust(second: Array, _: None) -> tuple[Array, None]:
        residual = rows.target - dot(read, second)
        shape = noise_shape.fit_symmetric(residual, rows.weight)
        return solved(residual, rows.weight * noise_shape.tail_weights(residual, shape)), None

    second = network.second
    for _ in range(_PLAIN_STEPS):
        second = solved(rows.target - dot(read, second), rows.weight)
    second, _ = lax.scan(robust, second, None, length=_ROBUST_STEPS)
    return network._replace(second=second)
