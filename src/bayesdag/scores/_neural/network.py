"""One small network as a function: its predictions, and their slopes in the parameters.

A hidden layer of rectifiers beside a linear part, on whitened inputs. Several random starts
take Levenberg-Marquardt steps on few rows, the best of them by its training loss goes on with
all rows, and its last steps weigh the rows, so that outliers pull less where the residuals
have heavy tails. What is left is described in several ways: by noise of one scale, by noise
whose scale depends on the inputs, and by either with a skew. Everything here is for ONE
network; `jax.vmap` trains thousands at once.

All networks share the same random numbers: what luck there is cancels in comparisons, and
programs without random numbers compile in half the time.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int

from bayesdag.scores._neural import heteroscedastic, noise_shape
from bayesdag.scores._neural.heteroscedastic import dot
from bayesdag.scores._neural.noise_shape import Shape
from bayesdag.types import Array

JITTER = 1e-5  # of whitening: inputs that agree to five digits count as one
_LEAST_VARIANCE = 1e-6  # share of a variance; a better fit is rounding
_FACTORS = (0.03, 0.3, 3.0, 30.0)  # of the damping, tried in every step


class Plan(NamedTuple):
    """How much work a fit may cost; whole numbers, so that it can be compiled in.

    Attributes:
        width: hidden units.
        num_starts: random starts.
        rough_steps: Levenberg-Marquardt steps of each start, on few rows.
        fine_steps: of the best one, on all rows.
        robust_steps: last steps, with weights that suit the tails of the residuals.
        few_rows: rows that the first steps look at.
        seed: of the random starts.
    """

    width: int = 8
    num_starts: int = 3
    rough_steps: int = 12
    fine_steps: int = 8
    robust_steps: int = 2
    few_rows: int = 1024
    seed: int = 0


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
    """Inputs (whitened), target (standardised) and what each row counts."""

    inputs: Float[Array, "n k"]
    target: Float[Array, " n"]
    weight: Float[Array, " n"]


class NoiseFits(NamedTuple):
    """Residuals described in four ways, which a leading dimension tells apart.

    Of one scale, of an uneven one, and both again with shapes that may lean to one side.

    Attributes:
        scale: of the residuals.
        which: number of their shape.
        uneven: weights of the features in the log factor of the scale; 0 where there is one.
    """

    scale: Float[Array, "*four"]
    which: Int[Array, "*four"]
    uneven: Float[Array, "*four q"]


class Fit(NamedTuple):
    """A trained network with its surroundings.

    Attributes:
        network: on whitened inputs, for a standardised target.
        noise: what the residuals look like, described in several ways.
        inverse: of the Cholesky factor of the curvature; its square, times the squared scale,
            is the covariance of the parameters.
        last: curvature of the last layer, hidden units given.
        log_posterior: of the training rows, up to a constant.
        log_marginal: of the training rows, with each kind of noise: log posterior and
            Laplace's volume.
    """

    network: Network
    noise: NoiseFits
    inverse: Float[Array, "p p"]
    last: Float[Array, "q q"]
    log_posterior: Float[Array, ""]
    log_marginal: Float[Array, "4"]


def fit(rows: TrainingRows, used: Array, given: Network, known: Array, plan: Plan) -> Fit:
    """The better of two finalists, trained to the end.

    Random starts are warmed up on few rows, and compared on all; the best of them and the
    best of the given networks go on, and half-way the better of these. Only training rows
    decide.

    Args:
        given: networks of related parent sets to start from, stacked.
        known: which of them mean something.
    """
    few = TrainingRows(*(leaf[: plan.few_rows] for leaf in rows))
    rng = np.random.default_rng(plan.seed)
    directions = rng.standard_normal((plan.num_starts, used.shape[0], plan.width))
    near = rng.integers(0, few.target.shape[0], (plan.num_starts, plan.width))

    def warm_up(directions: Array, near: Array) -> Network:
        return _improve(_start(directions, near, few, used), few, used, plan.rough_steps)

    starts = jax.vmap(warm_up)(jnp.asarray(directions, few.target.dtype), jnp.asarray(near))
    loss = _losses(starts, rows)
    rank = jnp.argsort(loss)
    loss_given = jnp.where(known, _losses(given, rows), jnp.inf)
    # Without a given network the second best start takes its place.
    runner_up = _take(starts, rank[min(1, plan.num_starts - 1)])
    handed_on = _take(given, jnp.argmin(loss_given))
    second = jax.tree.map(lambda a, b: jnp.where(known.any(), a, b), handed_on, runner_up)
    finalists = jax.tree.map(lambda a, b: jnp.stack([a, b]), _take(starts, rank[0]), second)
    half = plan.fine_steps // 2
    finalists = jax.vmap(lambda n: _improve(n, rows, used, half))(finalists)
    best = _take(finalists, jnp.argmin(_losses(finalists, rows)))
    plain = plan.fine_steps - half
    best = _improve(best, rows, used, plain + plan.robust_steps, plain)
    return _finished(best, rows, used)


def _losses(networks: Network, rows: TrainingRows) -> Float[Array, " s"]:
    losses = jax.vmap(lambda network: _sum_of_squares(network, rows)[0])(networks)
    return jnp.where(jnp.isfinite(losses), losses, jnp.inf)


def _take(networks: Network, which: Array) -> Network:
    return jax.tree.map(lambda leaf: leaf[which], networks)


def log_density(fitted: Fit, rows: TrainingRows) -> tuple[Float[Array, "n 4"], Float[Array, "n 4"]]:
    """Log predictive density of each row, and its residual in units of the scale.

    With each kind of noise. The uncertainty of the parameters widens the density:
    σ² (1 + leverage).
    """
    residual = rows.target - means(fitted.network, rows.inputs)
    slopes = _slopes(fitted.network, rows.inputs)
    wider = jnp.sqrt(1 + (dot(slopes, fitted.inverse.T) ** 2).sum(axis=1))
    factor = heteroscedastic.log_factor(
        _features(fitted.network, rows.inputs), fitted.noise.uneven.T
    )
    scale = fitted.noise.scale[None, :] * jnp.exp(factor)
    wide = scale * wider[:, None]
    density = noise_shape.log_density(residual[:, None] / wide, fitted.noise.which[None, :])
    return density - jnp.log(wide), residual[:, None] / scale


def active(network: Network, inputs: Float[Array, "n k"]) -> Bool[Array, "n h"]:
    """Which hidden units answer to which rows."""
    return _before_rectifying(network, inputs) > 0


def _before_rectifying(network: Network, inputs: Array) -> Float[Array, "n h"]:
    return dot(inputs, network.first) + network.bias[None, :]


def means(network: Network, inputs: Float[Array, "n k"]) -> Float[Array, " n"]:
    """What the network predicts."""
    return dot(_features(network, inputs), network.second)


def _features(network: Network, inputs: Array) -> Float[Array, "n q"]:
    units = jax.nn.relu(_before_rectifying(network, inputs))
    return jnp.concatenate([units, inputs, jnp.ones_like(inputs[:, :1])], axis=1)


def _slopes(network: Network, inputs: Array) -> Float[Array, "n p"]:
    """Derivatives of the predictions with respect to all parameters."""
    n, (k, h) = inputs.shape[0], network.first.shape
    gate = jnp.where(active(network, inputs), network.second[None, :h], 0.0)
    first = (inputs[:, :, None] * gate[:, None, :]).reshape(n, k * h)
    return jnp.concatenate([first, gate, _features(network, inputs)], axis=1)


def _flat(network: Network) -> Float[Array, " p"]:
    return jnp.concatenate([leaf.reshape(-1) for leaf in network])


def _moved(network: Network, step: Float[Array, " p"], used: Array) -> Network:
    k, h = network.first.shape
    first, bias, second = jnp.split(step, [k * h, k * h + h])
    first = first.reshape(k, h) * used[:, None]
    return Network(network.first + first, network.bias + bias, network.second + second)


def _precision(network: Network, used: Array) -> Float[Array, " p"]:
    """Of the prior: units, and the sums over them, are about 1 whatever their number.

    Inputs and target are standardised, so this says that functions explain a good part of
    the target and no more; the intercept is free.
    """
    (k, h), count = network.first.shape, jnp.maximum(used.sum(), 1.0)
    inputs, units = jnp.full(k, count), jnp.full(h, float(h))
    parts = (jnp.full(k * h, count), jnp.ones(h), units, inputs, jnp.full(1, 0.01))
    return jnp.concatenate(parts)


def _start(directions: Array, near: Array, rows: TrainingRows, used: Array) -> Network:
    """Random units whose kinks pass near some rows, and the best linear layer on top."""
    k, width = directions.shape
    first = directions * used[:, None] / jnp.sqrt(jnp.maximum(used.sum(), 1.0))
    bias = -0.7 * (rows.inputs[near] * first.T).sum(axis=1)
    network = Network(first, bias, jnp.zeros(width + k + 1, first.dtype))
    features = _features(network, rows.inputs)
    gram = dot((features * rows.weight[:, None]).T, features)
    target = dot(features.T, rows.weight * rows.target)
    return network._replace(second=_solve(gram + 10.0 * jnp.eye(len(gram)), target))


def _sum_of_squares(network: Network, rows: TrainingRows) -> tuple[Array, Array]:
    residual = rows.target - means(network, rows.inputs)
    return (rows.weight * residual**2).sum(), residual


def _improve(
    network: Network, rows: TrainingRows, used: Array, num_steps: int, num_plain: int | None = None
) -> Network:
    """Levenberg-Marquardt steps; the noise variance follows the fit.

    Steps after the first `num_plain` weigh the rows as the tails of their residuals ask.
    """

    def step(carry, t):
        network, damping = carry
        weighed = rows
        if num_plain is not None:
            pull = jnp.where(t < num_plain, 1.0, _pull(network, rows))
            weighed = rows._replace(weight=rows.weight * pull)
        proposal, gain, factor = _step(network, weighed, used, damping)
        better = gain > 0
        network = jax.tree.map(lambda old, new: jnp.where(better, new, old), network, proposal)
        damping = jnp.clip(damping * jnp.where(better, factor, 300.0), 1e-6, 1e6)
        return (network, damping), None

    start = (network, jnp.asarray(0.03, rows.inputs.dtype))
    (network, _), _ = lax.scan(step, start, jnp.arange(num_steps))
    return network


def _step(
    network: Network, rows: TrainingRows, used: Array, damping: Array
) -> tuple[Network, Array, Array]:
    """The best proposal, how much it lowers the penalised sum of squares, and its factor.

    Several dampings are tried: they share the matrix, which costs more than all else, and
    kinks make it hard to foresee which is right.
    """
    squares, residual = _sum_of_squares(network, rows)
    prior, now = _variance(squares, rows) * _precision(network, used), _flat(network)
    matrix, slopes = _curvature(network, rows, prior)
    gradient = dot(slopes.T, jnp.sqrt(rows.weight) * residual) - prior * now

    def attempt(factor: Array) -> tuple[Network, Array]:
        damped = matrix + jnp.diag(factor * damping * jnp.diagonal(matrix))
        proposal = _moved(network, _solve(damped, gradient), used)
        loss = _sum_of_squares(proposal, rows)[0] + (prior * _flat(proposal) ** 2).sum()
        return proposal, jnp.where(jnp.isfinite(loss), loss, jnp.inf)

    factors = jnp.asarray(_FACTORS, damping.dtype)
    proposals, losses = jax.vmap(attempt)(factors)
    best = jnp.argmin(losses)
    proposal = jax.tree.map(lambda leaf: leaf[best], proposals)
    return proposal, squares + (prior * now**2).sum() - losses[best], factors[best]


def _curvature(network: Network, rows: TrainingRows, prior: Array) -> tuple[Array, Array]:
    """Of the penalised sum of squares, and the slopes of the weighted residuals.

    The root of the weights goes into the slopes: one large array is written, not two.
    """
    slopes = _slopes(network, rows.inputs) * jnp.sqrt(rows.weight)[:, None]
    return dot(slopes.T, slopes) + jnp.diag(prior), slopes


def _variance(squares: Array, rows: TrainingRows) -> Array:
    return jnp.maximum(squares / jnp.maximum(rows.weight.sum(), 1.0), _LEAST_VARIANCE)


def _finished(network: Network, rows: TrainingRows, used: Array) -> Fit:
    """Noise of the residuals, and what the rows leave open about the parameters.

    The scale is that of n - γ rows, γ being the number of parameters that the rows and not
    the prior determine.
    """
    residual = rows.target - means(network, rows.inputs)
    shape, log_likelihood = noise_shape.fit(residual, rows.weight, noise_shape.NUM_EVEN)
    weighted = rows._replace(weight=rows.weight * _pulled(residual, shape))
    prior = shape.scale**2 * _precision(network, used)
    matrix, _ = _curvature(network, weighted, prior)
    root = jnp.linalg.cholesky(matrix + jnp.diag(JITTER * jnp.diagonal(matrix)))
    # Rounding may leave no factor of a nearly singular matrix: then the diagonal serves.
    root = jnp.where(jnp.isfinite(root).all(), root, jnp.diag(jnp.sqrt(jnp.diagonal(matrix))))
    inverse = inverse_of(root)
    open_ones = (inverse**2 * prior[None, :]).sum()  # tr(A⁻¹ σ²Λ)
    count = jnp.maximum(rows.weight.sum(), 1.0)
    left = jnp.maximum(1 - (len(matrix) - open_ones) / count, 0.1)
    penalty = 0.5 * (_precision(network, used) * _flat(network) ** 2).sum()
    # Half the log determinant of the curvature over that of the prior.
    shrinkage = jnp.log(jnp.diagonal(root)).sum() - 0.5 * jnp.log(prior).sum()
    # What solves must wait for what solved before: see `inverse_of`.
    features = _features(network, rows.inputs) + 0 * open_ones
    noise, values = _noises(features, residual, rows.weight, (shape, log_likelihood))
    noise = noise._replace(scale=noise.scale / jnp.sqrt(left))
    q = len(network.second)
    log_posterior, last = log_likelihood - penalty, matrix[-q:, -q:]
    return Fit(network, noise, inverse, last, log_posterior, values - penalty - shrinkage)


def _noises(
    features: Array, residual: Array, weight: Array, even: tuple[Shape, Array]
) -> tuple[NoiseFits, Float[Array, "4"]]:
    """Every description of the residuals, and its log marginal likelihood.

    Args:
        even: the shape without a skew, and its log likelihood.
    """
    found, values = [], []
    skewed = noise_shape.fit(residual, weight)
    for num_shapes, (shape, value) in ((noise_shape.NUM_EVEN, even), (None, skewed)):
        found.append(NoiseFits(*shape, jnp.zeros_like(features[0])))
        degrees = noise_shape.degrees_of(shape.which)
        uneven = heteroscedastic.fit(features + 0 * value, residual / shape.scale, weight, degrees)
        factor = heteroscedastic.log_factor(features, uneven.weights)
        evened, gain = noise_shape.fit(residual * jnp.exp(-factor), weight, num_shapes)
        found.append(NoiseFits(*evened, uneven.weights))
        values += [value, gain - (weight * factor).sum() + uneven.price]
        features = features + 0 * gain  # one solution after the other
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *found), jnp.stack(values)


def _pull(network: Network, rows: TrainingRows) -> Float[Array, " n"]:
    """Weight of each row under the tails that suit the residuals; 1 for Gaussian ones."""
    residual = rows.target - means(network, rows.inputs)
    shape, _ = noise_shape.fit(residual, rows.weight, noise_shape.NUM_EVEN)
    return _pulled(residual, shape)


def _pulled(residual: Array, shape: Shape) -> Float[Array, " n"]:
    """Weight of each residual under a shape."""
    degrees = noise_shape.degrees_of(shape.which)
    return (degrees + 1) / (degrees + (residual / shape.scale) ** 2)


def _solve(matrix: Array, vector: Array) -> Array:
    root = jnp.linalg.cholesky(matrix)
    return jax.scipy.linalg.cho_solve((root, True), vector)


def inverse_of(root: Float[Array, "p p"]) -> Float[Array, "p p"]:
    """Inverse of a lower triangular matrix.

    Products with it stand where solving would be usual: two triangular solutions that do not
    wait for one another can block a CPU for ever (batches of them share the threads that
    they run on, seen with jaxlib 0.10).
    """
    return jax.scipy.linalg.solve_triangular(root, jnp.eye(len(root)), lower=True)
