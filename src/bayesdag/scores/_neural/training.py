"""Levenberg-Marquardt training of one small network, from several starts.

Random starts take steps on few rows of all folds, and the best of them by its training loss is
the pilot. The networks of the folds start from it: each takes its own steps on all rows that it
may see, the last of which weigh the rows, so that outliers pull less where the residuals have
heavy tails. One search for a good start thus serves all folds.

All networks share the same random numbers: what luck there is cancels in comparisons, and
programs without random numbers compile in half the time.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float

from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_shape
from bayesdag.scores._neural.linear_algebra import dot, solve
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.types import Array

_LEAST_VARIANCE = 1e-6  # fraction of a variance; a better fit is rounding
_DAMPING_FACTORS = (0.03, 0.3, 3.0, 30.0)  # tried in every step


class TrainingPlan(NamedTuple):
    """How much work a fit may cost; plain numbers, so that it can be compiled in.

    Attributes:
        width: hidden units.
        num_starts: random starts.
        rough_steps: Levenberg-Marquardt steps of each start, on few rows.
        fine_steps: of the best one: half of them as one of two finalists for the pilot, half on
            the rows of each fold.
        robust_steps: last steps, with weights that suit the tails of the residuals.
        few_rows: rows that the first steps look at.
        pilot_rows: rows that the finalists look at.
        seed: of the random starts.
        least_unexplained: nats that a regression must leave to random hidden units, or no network
            is trained.
    """

    width: int = 8
    num_starts: int = 3
    rough_steps: int = 12
    fine_steps: int = 8
    robust_steps: int = 2
    few_rows: int = 512
    pilot_rows: int = 2048
    seed: int = 0
    least_unexplained: float = 1.0


class _Proposal(NamedTuple):
    """A step: where it leads, how much it lowers the penalised loss, and its damping factor."""

    network: Network
    gain: Float[Array, ""]
    factor: Float[Array, ""]


def pilot(
    rows: TrainingRows,
    used: Float[Array, " k"],
    given: Network,
    known: Bool[Array, " w"],
    plan: TrainingPlan,
) -> Network:
    """The better of two finalists, half-way trained: where the networks of all folds start.

    Random starts are warmed up on few rows, and compared on more; the best of them and the
    best of the given networks go on. Only how well they fit decides.

    Args:
        given: networks of related parent sets to start from, stacked.
        known: which of them mean something.
    """
    rows = TrainingRows(*(leaf[: plan.pilot_rows] for leaf in rows))
    starts = _warmed_up(rows, used, plan)
    rank = jnp.argsort(_losses(starts, rows))
    loss_given = jnp.where(known, _losses(given, rows), jnp.inf)
    # Without a given network the second best start takes its place.
    runner_up = _take(starts, rank[min(1, plan.num_starts - 1)])
    handed_on = _take(given, jnp.argmin(loss_given))
    second = jax.tree.map(lambda a, b: jnp.where(known.any(), a, b), handed_on, runner_up)
    finalists = jax.tree.map(lambda a, b: jnp.stack([a, b]), _take(starts, rank[0]), second)
    half = plan.fine_steps // 2
    finalists = jax.vmap(lambda n: _improve(n, rows, used, half))(finalists)
    return _take(finalists, jnp.argmin(_losses(finalists, rows)))


def finish(
    network: Network, rows: TrainingRows, used: Float[Array, " k"], plan: TrainingPlan
) -> Network:
    """A network trained to the end on the rows of its fold."""
    plain = plan.fine_steps - plan.fine_steps // 2
    return _improve(network, rows, used, plain + plan.robust_steps, plain)


def _warmed_up(rows: TrainingRows, used: Array, plan: TrainingPlan) -> Network:
    """Random starts after their first steps on few rows, stacked."""
    few = TrainingRows(*(leaf[: plan.few_rows] for leaf in rows))
    rng = np.random.default_rng(plan.seed)
    directions = rng.standard_normal((plan.num_starts, used.shape[0], plan.width))
    near = rng.integers(0, few.target.shape[0], (plan.num_starts, plan.width))

    def warm_up(directions: Array, near: Array) -> Network:
        return _improve(_start(directions, near, few, used), few, used, plan.rough_steps)

    return jax.vmap(warm_up)(jnp.asarray(directions, few.target.dtype), jnp.asarray(near))


def _losses(networks: Network, rows: TrainingRows) -> Float[Array, " s"]:
    losses = jax.vmap(lambda network: _sum_of_squares(network, rows))(networks)
    return jnp.where(jnp.isfinite(losses), losses, jnp.inf)


def _take(networks: Network, which: Array) -> Network:
    return jax.tree.map(lambda leaf: leaf[which], networks)


def _start(directions: Array, near: Array, rows: TrainingRows, used: Array) -> Network:
    """Random units whose kinks pass near some rows, and the best linear layer on top."""
    k, width = directions.shape
    first = directions * used[:, None] / jnp.sqrt(jnp.maximum(used.sum(), 1.0))
    bias = -0.7 * (rows.inputs[near] * first.T).sum(axis=1)
    network = Network(first, bias, jnp.zeros(width + k + 1, first.dtype))
    features = functions.features(network, rows.inputs)
    gram = dot((features * rows.weight[:, None]).T, features)
    target = dot(features.T, rows.weight * rows.target)
    return network._replace(second=solve(gram + 10.0 * jnp.eye(len(gram)), target))


def _sum_of_squares(network: Network, rows: TrainingRows) -> Float[Array, ""]:
    return (rows.weight * functions.residuals(network, rows) ** 2).sum()


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
            pull = jnp.where(t < num_plain, 1.0, _tail_weights(network, rows))
            weighed = rows._replace(weight=rows.weight * pull)
        proposal = _step(network, weighed, used, damping)
        better = proposal.gain > 0
        network = jax.tree.map(
            lambda old, new: jnp.where(better, new, old), network, proposal.network
        )
        damping = jnp.clip(damping * jnp.where(better, proposal.factor, 300.0), 1e-6, 1e6)
        return (network, damping), None

    start = (network, jnp.asarray(0.03, rows.inputs.dtype))
    (network, _), _ = lax.scan(step, start, jnp.arange(num_steps))
    return network


def _step(network: Network, rows: TrainingRows, used: Array, damping: Array) -> _Proposal:
    """The best of several proposals.

    Several dampings are tried: they share the matrix, which costs more than all else, and
    kinks make it hard to foresee which is right.
    """
    residual = functions.residuals(network, rows)
    squares = (rows.weight * residual**2).sum()
    precision = functions.prior_precision(network, used)
    prior, now = _variance(squares, rows) * precision, functions.flat(network)
    matrix, slopes = functions.curvature(network, rows, prior)
    gradient = dot(slopes.T, jnp.sqrt(rows.weight) * residual) - prior * now

    def attempt(factor: Array) -> tuple[Network, Array]:
        damped = matrix + jnp.diag(factor * damping * jnp.diagonal(matrix))
        proposal = functions.moved(network, solve(damped, gradient), used)
        penalty = (prior * functions.flat(proposal) ** 2).sum()
        loss = _sum_of_squares(proposal, rows) + penalty
        return proposal, jnp.where(jnp.isfinite(loss), loss, jnp.inf)

    factors = jnp.asarray(_DAMPING_FACTORS, damping.dtype)
    proposals, losses = jax.vmap(attempt)(factors)
    best = jnp.argmin(losses)
    gain = squares + (prior * now**2).sum() - losses[best]
    return _Proposal(_take(proposals, best), gain, factors[best])


def _variance(squares: Array, rows: TrainingRows) -> Array:
    return jnp.maximum(squares / jnp.maximum(rows.weight.sum(), 1.0), _LEAST_VARIANCE)


def _tail_weights(network: Network, rows: TrainingRows) -> Float[Array, " n"]:
    """Weight of each row under the tails that suit the residuals; 1 for Gaussian ones."""
    residual = functions.residuals(network, rows)
    return noise_shape.tail_weights(residual, noise_shape.fit_symmetric(residual, rows.weight))
