"""Classes of functions inside a family: lines, sums of curves, Gaussian processes, networks.

The evidence of a network pays for hidden units, so that a line which a network could be is
charged for what it does not need, and the charge decides about arrows. Lines and sums of curves
are therefore hypotheses of their own in every family, whose probabilities beforehand are fixed: no
family scores worse than a simpler one that it contains by more than those odds.

Both are linear in a fixed basis, the inputs and their kinks: a network without hidden units
that reads the basis, fitted by ridge regression, with Laplace's approximation as for any other.
What a curve may change its slope by at a knot has a variance in proportion to the distance to the
next ones, as a smoothing spline has (Wahba, 1978): curves then pay for being wavy, and not for
the number of their knots. How wavy they are, one of two amounts, the rows decide.
"""

from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms.networks import kinks
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_shape
from bayesdag.scores._neural.control_flow import repeat
from bayesdag.scores._neural.linear_algebra import (
    cholesky,
    dot,
    solve,
    weighted_gram,
    with_added_diagonal,
)
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
    GAUSSIAN_PROCESS = 3


# Before any rows are seen. Lines are as probable as all that bends: what a graph of lines pays
# for the other classes then does not grow with their number.
CLASS_PROBABILITY = np.array([1 / 6, 1 / 2, 1 / 6, 1 / 6])


def knots_of(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d m"]:
    """Where the curve of each variable may bend."""
    return np.quantile(values, KNOTS, axis=0).T


def basis(
    inputs: Float[Array, "n k"], knots: Float[Array, "k m"], used: Float[Array, " k"]
) -> Float[Array, "n q"]:
    """The inputs, then the kinks of each of them; zero where an input is not used."""
    xp = namespace(inputs)
    bent = kinks(inputs, xp.where(used[:, None] > 0, knots, xp.inf))
    return xp.concatenate([inputs * used[None, :], bent], axis=1)


def basis_of(is_line: Array, table: Float[Array, "n q"], k: int) -> Float[Array, "n _"]:
    """What of the basis of k inputs a class uses; NumPy leaves the others out."""
    if isinstance(table, np.ndarray):
        return table[:, :k] if is_line else table
    return namespace(table).where(is_line & (np.arange(table.shape[1]) >= k)[None, :], 0.0, table)


def members_of_basis(used: Float[Array, " k"]) -> Float[Array, "2 q"]:
    """What a line and a sum of curves use of the basis."""
    xp = namespace(used)
    bent = xp.repeat(used, len(KNOTS))
    lines, curves = xp.append(used, 0 * bent), xp.append(used, bent)
    return xp.stack([lines, curves])


@cache
def features_of_scale(k: int) -> Int[np.ndarray, " c"]:
    """Which of the basis of k inputs, and 1, the scale around a sum of curves may depend on."""
    num = k * (1 + len(KNOTS))
    bent = np.reshape(np.arange(k, num), (k, -1))[:, np.isin(KNOTS, _KNOTS_OF_SCALE)]
    return np.concatenate([np.arange(k), bent.reshape(-1), [num]])


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


class _Equations(NamedTuple):
    """Of weighted least squares, without a prior: they serve any."""

    matrix: Float[Array, "q q"]
    vector: Float[Array, " q"]


def regress(rows: TrainingRows, used: Float[Array, " q"]) -> Network:
    """Ridge regression of the target on whitened inputs; its last steps weigh the rows."""
    network = _nothing(rows)
    precision = functions.prior_precision(network, used)
    read = functions.features(network, rows.inputs)
    second = _plain(read, rows, precision)
    return network._replace(second=_robust(read, rows, precision, second, _ROBUST_STEPS))


def regress_in_best_units(
    rows: TrainingRows, used: Float[Array, " q"], factors: Float[Array, "o q"]
) -> tuple[Network, Int[Array, ""], Float[Array, ""]]:
    """The same in the units that have the most evidence, and which of them these are.

    The last result is what the choice adds to the log evidence of these units: that of the mean
    over all of them.

    The first weighted step chooses, by the evidence of the weighted rows under Gaussian noise: all
    units share its sums over the rows, and the steps before it.

    Args:
        factors: of the units of the inputs, for every choice of them.
    """
    network = _nothing(rows)
    precision = functions.prior_precision(network, used)
    read = functions.features(network, rows.inputs)
    start = _plain(read, rows, precision)
    weight, scale = _weights(rows, rows.target - dot(read, start))
    factors = _with_constant(factors)
    precisions = precision[None, :] * factors**2
    second, best, choice = _chosen(read, rows._replace(weight=weight), precisions, scale, start)
    factor = factors[best]
    second = _robust(read, rows, precision * factor**2, second, _ROBUST_STEPS - 1)
    return network._replace(second=second * factor), best, choice


def regress_beside(
    rows: TrainingRows,
    used: Float[Array, " q"],
    factors: Float[Array, "o q"],
    residual: Float[Array, " n"],
) -> tuple[Network, Int[Array, ""], Float[Array, ""]]:
    """The same in two steps, of which the second weighs the rows.

    Sums over the rows of many columns take the time of this. The noise is at first taken for as
    large as the residuals of another regression.
    """
    network = _nothing(rows)
    xp, precision = namespace(rows.inputs), functions.prior_precision(network, used)
    read, factors = functions.features(network, rows.inputs), _with_constant(factors)
    precisions = precision[None, :] * factors**2
    scale = xp.sqrt(_mean_square(rows, residual))
    second, best, choice = _chosen(read, rows, precisions, scale, xp.zeros_like(precision))
    second = _robust(read, rows, precisions[best], second, 1)
    return network._replace(second=second * factors[best]), best, choice


def _with_constant(factors: Float[Array, "o q"]) -> Float[Array, "o p"]:
    xp = namespace(factors)
    return xp.concatenate([factors, xp.ones_like(factors[:, :1])], axis=1)


def _nothing(rows: TrainingRows) -> Network:
    q, xp, dtype = rows.inputs.shape[1], namespace(rows.inputs), rows.inputs.dtype
    return Network(*(xp.zeros(shape, dtype) for shape in ((q, 0), (0,), (q + 1,))))


def _plain(read: Array, rows: TrainingRows, precision: Array) -> Float[Array, " q"]:
    """Weights of a regression that knows no outliers."""
    equations = _equations(read, rows.target, rows.weight)
    second = namespace(read).zeros_like(precision)
    for _ in range(_PLAIN_STEPS):
        prior = _mean_square(rows, rows.target - dot(read, second)) * precision
        second = _solved(equations, prior, second)
    return second


def _robust(
    read: Array, rows: TrainingRows, precision: Array, start: Array, num_steps: int
) -> Float[Array, " q"]:
    """Weights of a regression that weighs the rows by the tails of what it leaves."""

    def step(second: Array, _: Any) -> Array:
        residual = rows.target - dot(read, second)
        weight, _ = _weights(rows, residual)
        equations = _equations(read, rows.target, weight)
        return _solved(equations, _mean_square(rows, residual) * precision, second)

    return repeat(read, num_steps, step, start)


def _chosen(
    read: Array, rows: TrainingRows, precisions: Float[Array, "o q"], scale: Array, start: Array
) -> tuple[Float[Array, " q"], Int[Array, ""], Float[Array, ""]]:
    """One step under each prior: the weights of most evidence, and whose they are.

    Args:
        scale: of the noise.
    """
    xp, weight = namespace(read), rows.weight
    count = xp.maximum((weight > 0).sum().astype(weight.dtype), 1.0)
    equations = _equations(read, rows.target, weight)
    options: list[Array] = []
    evidence: list[Array] = []
    for precision in precisions:
        # What solves must wait for what solved before: see `linear_algebra.lower_inverse`.
        prior = scale**2 * precision if not options else scale**2 * precision + 0 * options[-1]
        second = _solved(equations, prior, start)
        root = cholesky(with_added_diagonal(equations.matrix, prior + 0 * second))
        left = rows.target - dot(read, second)
        squares = dot(weight * left, left) + dot(prior * second, second)
        volume = xp.log(xp.diagonal(root)).sum() - 0.5 * xp.log(prior).sum()
        options.append(second)
        evidence.append(-0.5 * count * xp.log(squares) - volume)
    found = xp.stack(evidence)
    found = xp.where(xp.isfinite(found), found, -xp.inf)
    best = xp.argmax(found)
    highest = xp.where(xp.isfinite(found[best]), found[best], 0.0)
    choice = xp.log(xp.maximum(xp.exp(found - highest).mean(), 1e-30))
    return xp.stack(options)[best], best, choice


def _weights(rows: TrainingRows, residual: Array) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Of the rows by the tails of the residuals, and the scale of these."""
    shape = noise_shape.fit_symmetric(residual, rows.weight)
    return rows.weight * noise_shape.tail_weights(residual, shape), shape.scale


def _equations(read: Array, target: Array, weight: Array) -> _Equations:
    gram, _ = weighted_gram(read, weight)
    return _Equations(gram, dot(read.T, weight * target))


def _solved(equations: _Equations, prior: Array, otherwise: Array) -> Float[Array, " q"]:
    xp = namespace(prior)
    better = solve(equations.matrix, prior, equations.vector)
    # Where columns nearly determine one another, rounding may leave no solution.
    return xp.where(xp.isfinite(better).all(), better, otherwise)


def _mean_square(rows: TrainingRows, residual: Array) -> Float[Array, ""]:
    xp = namespace(residual)
    count = xp.maximum(rows.weight.sum(), 1.0)
    return xp.maximum(dot(rows.weight * residual, residual) / count, _LEAST_VARIANCE)
