"""Classes of functions inside a family: straight lines, sums of curves, networks.

The evidence of a network pays for hidden units, so that a line which a network could be is
charged for what it does not need, and the charge decides about arrows. Lines and sums of curves
are therefore hypotheses of their own, equally probable beforehand in every family: no family
scores worse than a simpler one that it contains by more than those odds.

Both are linear in a fixed basis, the inputs and their kinks: a network without hidden units
that reads the basis, fitted by ridge regression, with Laplace's approximation as for any other.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms.networks import kinks
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_shape
from bayesdag.scores._neural.control_flow import repeat
from bayesdag.scores._neural.linear_algebra import diagonal_of, dot, solve
from bayesdag.scores._neural.network import Network, TrainingRows

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
    xp = namespace(inputs)
    bent = kinks(inputs, knots) * xp.repeat(used, knots.shape[1])[None, :]
    return xp.concatenate([inputs * used[None, :], bent], axis=1)


def members_of_basis(used: Float[Array, " k"]) -> Float[Array, "2 q"]:
    """What a line and a sum of curves use of the basis."""
    xp = namespace(used)
    bent = xp.repeat(used, len(KNOTS))
    lines, curves = xp.append(used, 0 * bent), xp.append(used, bent)
    return xp.stack([lines, curves])


def regress(rows: TrainingRows, used: Float[Array, " q"]) -> Network:
    """Ridge regression of the target on whitened inputs; its last steps weigh the rows."""
    q, xp, dtype = rows.inputs.shape[1], namespace(rows.inputs), rows.inputs.dtype
    network = Network(*(xp.zeros(shape, dtype) for shape in ((q, 0), (0,), (q + 1,))))
    precision = functions.prior_precision(network, used)
    read = functions.features(network, rows.inputs)
    count = xp.maximum(rows.weight.sum(), 1.0)

    def solved(second: Array, residual: Array, weight: Array) -> Array:
        mean_square = (rows.weight * residual**2).sum() / count
        prior = xp.maximum(mean_square, _LEAST_VARIANCE) * precision
        matrix = dot((read * weight[:, None]).T, read) + diagonal_of(prior)
        better = solve(matrix, dot(read.T, weight * rows.target))
        # Where columns nearly determine one another, rounding may leave no solution.
        return xp.where(xp.isfinite(better).all(), better, second)

    def robust(second: Array, _: Any) -> Array:
        residual = rows.target - dot(read, second)
        shape = noise_shape.fit_symmetric(residual, rows.weight)
        weight = rows.weight * noise_shape.tail_weights(residual, shape)
        return solved(second, residual, weight)

    second = network.second
    for _ in range(_PLAIN_STEPS):
        second = solved(second, rows.target - dot(read, second), rows.weight)
    second = repeat(read, _ROBUST_STEPS, robust, second)
    return network._replace(second=second)
