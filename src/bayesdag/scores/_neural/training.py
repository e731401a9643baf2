"""Levenberg-Marquardt training of one small network, from several starts.

Random starts take steps on few rows of all folds, and the best of them by its training loss is
the pilot. The networks of the folds start from it: each takes its own steps on all rows that it
may see, the last of which weigh the rows, so that outliers pull less where the residuals have
heavy tails. One search for a good start thus serves all folds.

All networks share the same random numbers: what luck there is cancels in comparisons, and
programs without random numbers compile in half the time.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.scores._neural import network as functions
from bayesdag.scores._neural import noise_shape
from bayesdag.scores._neural.control_flow import (
    best_of,
    choose,
    either,
    entry,
    for_each,
    repeat,
    stack,
)
from bayesdag.scores._neural.linear_algebra import columns_first, dot, solve
from bayesdag.scores._neural.network import Network, TrainingRows

_LEAST_VARIANCE = 1e-6  # fraction of a variance; a better fit is rounding
_DAMPING_FACTORS = (0.3, 3.0, 30.0, 0.03)  # tried in every step, by NumPy until one helps
_REJECTED = 300.0  # where none of them helps
_STUCK = 1e4  # damping at which no step leads anywhere
_ROUGH_GAIN, _FINE_GAIN = 0.5, 0.1  # nats of a step that are not worth another: of NumPy's


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
        least_unexplained: nats that lines and sums of curves must leave to a Gaussian process, or
            no network is trained.
    """

    width: int = 8
    num_starts: int = 3
    rough_steps: int = 12
    fine_steps: int = 8
    robust_steps: int = 2
    few_rows: int = 512
    pilot_rows: int = 2048
    seed: int = 0
    least_unexplained: float = 2.0


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
    xp = namespace(rows.target)
    rows = _first_rows(rows, plan.pilot_rows)
    starts = _warmed_up(rows, used, plan)
    rank = xp.argsort(_losses(starts, rows))
    loss_given = xp.where(known, _losses(given, rows), xp.inf)
    # Without a given network the second best start takes its place.
    runner_up = entry(starts, rank[min(1, plan.num_starts - 1)])
    handed_on = entry(given, xp.argmin(loss_given))
    second = choose(known.any(), handed_on, runner_up)
    finalists = stack([entry(starts, rank[0]), second])
    half = plan.fine_steps // 2
    finalists = for_each(lambda n: _improve(n, rows, used, half, _FINE_GAIN), finalists)
    return entry(finalists, xp.argmin(_losses(finalists, rows)))


def again(
    rows: TrainingRows,
    used: Float[Array, " k"],
    given: Network,
    known: Bool[Array, " w"],
    own: Network,
    plan: TrainingPlan,
) -> Network | None:
    """Where networks start that are trained again: from a given one that leads farther than theirs.

    Both take the same steps on the same rows. None: they are as good as the given ones can make
    them, so nothing would change.
    """
    if not known.any():
        return None
    rows = _first_rows(rows, plan.pilot_rows)
    nearest = entry(given, np.argmin(np.where(known, _losses(given, rows), np.inf)))
    half = plan.fine_steps // 2
    finalists = [_improve(n, rows, used, half, _FINE_GAIN) for n in (own, nearest)]
    kept, other = _losses(stack(finalists), rows)
    return finalists[1] if other < kept else None


def finish(
    network: Network, rows: TrainingRows, used: Float[Array, " k"], plan: TrainingPlan
) -> Network:
    """A network trained to the end on the rows of its fold."""
    plain = plan.fine_steps - plan.fine_steps // 2
    return _improve(network, rows, used, plain + plan.robust_steps, _FINE_GAIN, plain)


def _first_rows(rows: TrainingRows, num: int) -> TrainingRows:
    inputs, target, weight = (leaf[:num] for leaf in rows)
    return TrainingRows(columns_first(inputs), target, weight)


def _warmed_up(rows: TrainingRows, used: Array, plan: TrainingPlan) -> Network:
    """Random starts after their first steps on few rows, stacked."""
    few, xp = _first_rows(rows, plan.few_rows), namespace(rows.target)
    rng = np.random.default_rng(plan.seed)
    directions = rng.standard_normal((plan.num_starts, used.shape[0], plan.width))
    near = rng.integers(0, few.target.shape[0], (plan.num_starts, plan.width))

    def warm_up(directions: Array, near: Array) -> Network:
        return _improve(
            _start(directions, near, few, used), few, used, plan.rough_steps, _ROUGH_GAIN
        )

    return for_each(warm_up, xp.asarray(directions, few.target.dtype), xp.asarray(near))


def _losses(networks: Network, rows: TrainingRows) -> Float[Array, " s"]:
    xp = namespace(rows.target)
    losses = for_each(lambda network: _sum_of_squares(network, rows), networks)
    return xp.where(xp.isfinite(losses), losses, xp.inf)


def _start(directions: Array, near: Array, rows: TrainingRows, used: Array) -> Network:
    """Random units whose kinks pass near some rows, and the best linear layer on top."""
    (k, width), xp = directions.shape, namespace(directions)
    first = directions * used[:, None] / xp.sqrt(xp.maximum(used.sum(), 1.0))
    bias = -0.7 * (rows.inputs[near] * first.T).sum(axis=1)
    network = Network(first, bias, xp.zeros(width + k + 1, first.dtype))
    features = functions.features(network, rows.inputs)
    gram = dot((features * rows.weight[:, None]).T, features)
    target = dot(features.T, rows.weight * rows.target)
    ridge = xp.full(len(gram), 10.0, first.dtype)
    return network._replace(second=solve(gram, ridge, target))


def _sum_of_squares(network: Network, rows: TrainingRows) -> Float[Array, ""]:
    return (rows.weight * functions.residuals(network, rows) ** 2).sum()


class _Place(NamedTuple):
    """Where a network is, and what it makes of its rows there.

    Attributes:
        parameters: all of them.
        units: hidden units.
        residual: of the target.
    """

    parameters: Float[Array, " p"]
    units: Float[Array, "n h"]
    residual: Float[Array, " n"]


class _Progress(NamedTuple):
    """A network on its way.

    Attributes:
        place: where it is now.
        damping: of the next step.
        gain: fraction of the loss that the last step took away.
    """

    place: _Place
    damping: Float[Array, ""]
    gain: Float[Array, ""]


def _improve(
    network: Network,
    rows: TrainingRows,
    used: Array,
    num_steps: int,
    least_gain: float,
    num_plain: int | None = None,
) -> Network:
    """Levenberg-Marquardt steps; the noise variance follows the fit.

    Steps after the first `num_plain` weigh the rows as the tails of their residuals ask.

    Args:
        least_gain: nats of a step, below which more of them are not worth their time.
    """
    xp, dtype = namespace(rows.target), rows.inputs.dtype
    first_robust = num_steps if num_plain is None else num_plain
    precision = functions.prior_precision(network, used)

    def step(now: _Progress, t: Any) -> _Progress:
        weighed = rows
        if num_plain is not None:
            weight = either(
                t < num_plain,
                lambda: rows.weight,
                lambda: rows.weight * _tail_weights(now.place.residual, rows.weight),
            )
            weighed = rows._replace(weight=weight)
        return _step(network, now, weighed, precision)

    def settled(now: _Progress) -> bool:
        return bool(0 < now.gain < 2 * least_gain / len(rows.target) or now.damping >= _STUCK)

    def steps(now: _Progress, num: int, begin: int = 0) -> _Progress:
        return repeat(rows.target, num, lambda p, t: step(p, t + begin), now, settled)

    start = xp.asarray(0.03, dtype), xp.asarray(1.0, dtype)
    now = _Progress(_place(network, functions.flat(network), rows), *start)
    if xp is np:
        # A network that has settled under one weight of the rows goes on under another.
        now = steps(now, first_robust)._replace(damping=start[0])
        now = steps(now, num_steps - first_robust, first_robust)
    else:
        now = steps(now, num_steps)
    return functions.of_flat(now.place.parameters, network)


def _place(like: Network, parameters: Float[Array, " p"], rows: TrainingRows) -> _Place:
    network = functions.of_flat(parameters, like)
    units = functions.units(network, rows.inputs)
    residual = rows.target - functions.means_given(network, rows.inputs, units)
    return _Place(parameters, units, residual)


def _step(
    like: Network, now: _Progress, rows: TrainingRows, precision: Float[Array, " p"]
) -> _Progress:
    """The best of several proposals, if it is any better.

    Several dampings are tried: they share the matrix, which costs more than all else, and
    kinks make it hard to foresee which is right.

    Args:
        precision: of the prior, in units of the noise variance.
    """
    xp, (here, units, residual) = namespace(rows.target), now.place
    squares = (rows.weight * residual**2).sum()
    prior = _variance(squares, rows) * precision
    slopes = functions.slopes(functions.of_flat(here, like), rows.inputs, units)
    matrix, slopes = functions.curvature(slopes, rows.weight, prior)
    gradient = dot(xp.sqrt(rows.weight) * residual, slopes) - prior * here
    diagonal = now.damping * xp.diagonal(matrix)

    def attempt(factor: Array) -> tuple[_Place, Array]:
        # Inputs that are not used have no slope, and stay without weight.
        step = solve(matrix, factor * diagonal, gradient)
        there = _place(like, here + step, rows)
        loss = (rows.weight * there.residual**2).sum() + (prior * there.parameters**2).sum()
        return there, loss

    loss_now = squares + (prior * here**2).sum()
    factors = xp.asarray(_DAMPING_FACTORS, now.damping.dtype)
    best, loss, factor = best_of(attempt, factors, loss_now)
    better = loss < loss_now
    place, factor = choose(better, (best, factor), (now.place, _REJECTED))
    damping = xp.minimum(xp.maximum(now.damping * factor, 1e-6), 1e6)
    return _Progress(place, damping, (loss_now - loss) / loss_now)


def _variance(squares: Array, rows: TrainingRows) -> Array:
    xp = namespace(squares)
    return xp.maximum(squares / xp.maximum(rows.weight.sum(), 1.0), _LEAST_VARIANCE)


def _tail_weights(residual: Float[Array, " n"], weight: Float[Array, " n"]) -> Float[Array, " n"]:
    """Weight of each row under the tails that suit the residuals; 1 for Gaussian ones."""
    return noise_shape.tail_weights(residual, noise_shape.fit_symmetric(residual, weight))
