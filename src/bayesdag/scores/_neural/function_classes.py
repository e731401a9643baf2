"""Classes of functions inside a family: straight lines, sums of curves, networks.

The evidence of a network pays for hidden units, so that a line which a network could be is
charged for what it does not need, and the charge decides about arrows. Lines and sums of curves
are therefore hypotheses of their own, equally probable beforehand in every family: no family
scores worse than a simpler one that it contains by more than those odds.

Both are linear in a fixed basis, the inputs and their kinks: a network without hidden units
that reads the basis, fitted by ridge regression, with Laplace's approximation as for any other.
What a curve may change its slope by at a knot has a variance in proportion to the distance to the
next ones, as a smoothing spline has (Wahba, 1978): curves then pay for being wavy, and not for
the number of their knots. How wavy they are, one of two amounts, the rows decide.
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

# Quantiles of a variable at which its curve may bend, and at which the scale of the noise may.
KNOTS = (0.02, 0.1, 0.27, 0.5, 0.73, 0.9, 0.98)
_KNOTS_OF_SCALE = (0.1, 0.5, 0.9)
# Variance of the change of slope of a curve per unit of its variable, both standardised: of a
# dozen pairs tried on development sets this one has the most evidence, by little.
SMOOTHING = (1.0, 10.0)
_LEAST_GAP = 0.02  # between knots, in standard deviations
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


def members_of_scale(used: Float[Array, " k"]) -> Float[Array, " q"]:
    """What the scale of the noise around a sum of curves may depend on."""
    xp = namespace(used)
    bent = xp.asarray([knot in _KNOTS_OF_SCALE for knot in KNOTS], used.dtype)
    return xp.append(used, (used[:, None] * bent[None, :]).reshape(-1))


def sizes_of_curves(
    spread: Float[Array, " k"],
    knots: Float[Array, "k m"],
    used: Float[Array, " k"],
    smoothing: float,
) -> Float[Array, " q"]:
    """Units of the basis in which all weights of a sum of curves have the prior of a network.

    There, weights are N(0, 1 / number of columns); the slope and the bends of each of k curves are
    to be N(0, 1 / k) and N(0, smoothing · gap / k), for a standardised input.

    Args:
        spread: standard deviation of each input.
    """
    xp = namespace(spread)
    spread = xp.maximum(spread, 1e-6)
    wide = xp.concatenate(
        [2 * knots[:, :1] - knots[:, 1:2], knots, 2 * knots[:, -1:] - knots[:, -2:-1]], axis=1
    )
    gaps = xp.maximum((wide[:, 2:] - wide[:, :-2]) / 2 / spread[:, None], _LEAST_GAP)
    per_parent = float(1 + knots.shape[1]) ** -0.5
    bends = (spread[:, None] / xp.sqrt(smoothing * gaps)).reshape(-1)
    sizes = per_parent * xp.concatenate([spread, bends])
    return xp.where(members_of_basis(used)[1] > 0, sizes, 1.0)


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
