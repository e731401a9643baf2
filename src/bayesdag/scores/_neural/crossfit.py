"""Cross-fitted evidence of families: a variable with parents whose effect must be learned.

Networks are trained on all folds but one. Laplace's approximation integrates them out for the
rows they were trained on; the rows of the last fold are scored by their predictive density. A
network that fits noise pays in the first part and predicts badly in the second. Many families
are trained in one compiled call.

Lines and sums of curves come first: they are regressions. Networks cost most of the time; whoever
asks decides by what the regressions leave to explain (`unexplained`) which families get some.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from bayesdag.runs import compilation_cache, parallel, processes
from bayesdag.runs.loop import COMPILER
from bayesdag.scores._neural import (
    function_classes,
    laplace,
    network,
    training,
    unexplained,
    whitening,
)
from bayesdag.scores._neural.laplace import Fit
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.noise_forms import NoiseFits, NoiseForm
from bayesdag.scores._neural.surrogate import NUM_CURVES, curves
from bayesdag.scores._neural.training import TrainingPlan
from bayesdag.scores._neural.whitening import Whitening
from bayesdag.types import Array

Rows = tuple[Array, Array, Array]  # inputs, target and weight
# Parent sets are filled up to one of these sizes, so that few programs are compiled.
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
# Numbers in the derivatives of all networks that a CPU trains at once.
_ROOM_ON_CPU = 4_000_000
# One thread for a program, so that its rounding does not depend on where it runs; and the older
# emitters, whose programs are as fast and take a third less time to compile.
_COMPILER = COMPILER | {
    "xla_cpu_multi_thread_eigen": False,
    "xla_cpu_use_fusion_emitters": False,
}
# Families of the smallest size that an accelerator trains at once: it takes as long for one as
# for all of them, and longer to compile a program than to run it, so each size has one batch.
# Fewer of the larger ones fill it (H200: 64 families of 16 parents 0.06 s, 256 of them 0.22 s).
_MOST_ON_ACCELERATORS, _FEWEST_ON_ACCELERATORS = 256, 32

# Families that a CPU handles at once, at most: more are no faster, and a last batch that is
# filled up with copies then costs little.
_MOST_ON_CPU = 8
# Lines and sums of curves of small families share one program.
_LEAST_SIMPLE = 8
_COLUMNS = 8  # the number of columns is a multiple of this
# A variable with no more values than these, in number or as a fraction of the rows, is discrete.
_FEW_VALUES, _FEW_OF_ROWS = 10, 0.05
_LEAST_SIDE = 0.02  # fraction of the rows for which a side of a hidden unit is taken seriously


class Folds(NamedTuple):
    """Rows in random order, cut into folds, each of which may end in empty rows.

    Attributes:
        values: in engine units.
        observed: 1 where nature chose the value, 0 where somebody set it or no row is.
        curves: orthonormal curves of every variable, to compare residuals with.
        knots: where the curve of each variable may bend, in a sum of curves.
        discrete: 1 where a variable has few values, which a network may tell apart and which
            no regression foretells.
    """

    values: Float[jax.Array, "f m d"]
    observed: Float[jax.Array, "f m d"]
    curves: Float[jax.Array, "n c"]
    knots: Float[jax.Array, "d m"]
    discrete: Float[jax.Array, " d"]


class Families(NamedTuple):
    """A batch of families of one size; `used` tells parents from filling."""

    node: Int32[Array, " b"]
    members: Int32[Array, "b k"]
    used: Float[Array, "b k"]


class FoldFits(NamedTuple):
    """What is known of a network trained on all folds but one; one entry per fold.

    A line or a sum of curves is a network without hidden units that reads a basis.

    Attributes:
        networks: inputs in engine units, standardised target.
        log_posterior: of each network on the rows it was trained on.
        log_marginal: of the rows that each network was trained on, by form of the noise.
        noise: of its residuals, in engine units.
        centre: of the target.
        spread: of the target.
        last: curvature of the last layer, inputs whitened.
        whitening: Cholesky factor of the covariance of the inputs.
        input_mean: of the inputs.
    """

    networks: Network
    log_posterior: Float[Array, "*b f"]
    log_marginal: Float[Array, "*b f form"]
    noise: NoiseFits
    centre: Float[Array, "*b f"]
    spread: Float[Array, "*b f"]
    last: Float[Array, "*b f q q"]
    whitening: Float[Array, "*b f k k"]
    input_mean: Float[Array, "*b f k"]


class Scored(NamedTuple):
    """What is known of families after training; a leading dimension for each.

    Attributes:
        log_evidence: of all rows, by class of the function and form of the noise: mean over
            the folds of the log marginal likelihood and of what it predicts.
        predicted: log density of the rows by functions that have not seen them, likewise.
        approximate_gain: gain in nats of a linear regression of the residuals on curves of
            each variable, among all rows or on one side of a hidden unit: quick, and good
            enough to say which to try first.
        unexplained: nats that random hidden units explain of what the better of line and sum of
            curves leaves.
        folds: the networks.
    """

    log_evidence: Float[Array, "*b class form"]
    predicted: Float[Array, "*b class form"]
    approximate_gain: Float[Array, "*b d"]
    unexplained: Float[Array, "*b"]
    folds: FoldFits


# The structure alone, to read recorded results with.
SCORED = Scored(0, 0, 0, 0, FoldFits(Network(0, 0, 0), 0, 0, NoiseFits(0, 0, 0), 0, 0, 0, 0, 0))  # pyright: ignore


class StartingNetworks(NamedTuple):
    """Networks to start from, for every family; `known` says which mean something."""

    networks: Network
    known: Bool[Array, "b w"]


class Regressions(NamedTuple):
    """What is known of families before a network is trained.

    Attributes:
        log_evidence: of lines and sums of curves, as in `Scored`.
        predicted: likewise.
        approximate_gain: likewise, with sides of the medians of the parents.
        unexplained: nats that random hidden units explain of what the better class leaves.
        fit: the regressions themselves; dimensions (family, fold, class).
    """

    log_evidence: Float[Array, "*b class form"]
    predicted: Float[Array, "*b class form"]
    approximate_gain: Float[Array, "*b d"]
    unexplained: Float[Array, "*b"]
    fit: FoldFits


class _HeldOut(NamedTuple):
    """Functions of every fold, and what they make of the rows that they have not seen."""

    fit: FoldFits
    log_density: Float[Array, "*n form"]
    residual: Float[Array, "*n form"]


def fold(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    num_folds: int,
) -> Folds:
    """The rows in random order, cut into folds; rows that repeat one another stay together.

    A bootstrap sample has many of them, and a row that was trained on predicts its copy. Empty
    rows and columns are added, so that few programs are compiled for tables of different sizes.
    """
    n, d = values.shape
    empty = -d % _COLUMNS
    _, which = np.unique(values, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(rng.permutation(which.max() + 1)[which], kind="stable")
    parts = np.array_split(order, num_folds)
    size = _rounded(len(parts[0]))

    def cut(table: np.ndarray, missing: int = empty) -> np.ndarray:
        filled = np.zeros((num_folds, size, table.shape[1] + missing), np.float32)
        for fold, rows in zip(filled, parts, strict=True):
            fold[: len(rows), : table.shape[1]] = table[rows]
        return filled

    shapes = cut(curves(values), empty * NUM_CURVES).reshape(num_folds * size, -1)
    knots = np.pad(function_classes.knots_of(values), ((0, empty), (0, 0)))
    discrete = [len(np.unique(column)) <= max(_FEW_VALUES, _FEW_OF_ROWS * n) for column in values.T]
    discrete = np.pad(np.array(discrete, float), (0, empty))
    tables = (cut(values), cut(observed), shapes, knots, discrete)
    return Folds(*(jnp.asarray(table, jnp.float32) for table in tables))


def _rounded(size: int) -> int:
    """The next number with three binary digits and zeros: four sizes from each to its double."""
    step = 1 << max(size.bit_length() - 3, 0)
    return -(-size // step) * step


def families(
    nodes: Int[np.ndarray, " m"], parents: Bool[np.ndarray, "m d"]
) -> list[tuple[Int[np.ndarray, " b"], Families]]:
    """Families by size, with their places in the input."""
    count = parents.sum(axis=1)
    sizes = SIZES if jax.default_backend() == "cpu" else SIZES[1:]
    size = np.array(sizes)[np.searchsorted(sizes, count)]
    result = []
    for k in np.unique(size).tolist():
        which = np.flatnonzero(size == k)
        # Parents first, in their order; what follows is filling.
        members = np.argsort(~parents[which], axis=1, kind="stable")[:, :k]
        if members.shape[1] < k:
            members = np.pad(members, ((0, 0), (0, k - members.shape[1])))
        used = np.arange(k)[None, :] < count[which][:, None]
        group = Families(
            nodes[which].astype(np.int32), members.astype(np.int32), used.astype(np.float32)
        )
        result.append((which, group))
    return result


def without_networks(folds: Folds, group: Families, plan: TrainingPlan) -> Scored:
    """Cross-fitted evidence of lines and sums of curves, in the layout of all classes.

    A network of several parents that is not trained pays for more than it could find: its evidence
    is zero. With one parent or none it is a curve as well, and counts as the other classes do on
    average.
    """
    found = regressions(folds, group)
    few = np.asarray(group.used).sum(axis=1)[:, None, None] <= 1
    average = np.logaddexp.reduce(found.log_evidence, axis=1, keepdims=True) - np.log(2)
    absent = np.where(few, average, -np.inf).astype(np.float32)
    evidence = np.concatenate([absent, found.log_evidence], axis=1)
    predicted = np.concatenate([np.full_like(absent, -np.inf), found.predicted], axis=1)
    gain, left = np.array(found.approximate_gain), np.asarray(found.unexplained)
    return Scored(evidence, predicted, gain, left, _no_networks(folds, group, plan))


def networks(folds: Folds, group: Families, starts: StartingNetworks, plan: TrainingPlan) -> Scored:
    """Networks of a batch of families, in the layout of all classes."""
    # What decides whom to train is no part of the program, or each value of it would be compiled.
    compiled_in = plan._replace(least_unexplained=0.0)
    size = _at_once(folds, group, plan)
    return _in_pieces(size, "networks", folds, compiled_in, group, starts)


def regressions(folds: Folds, group: Families) -> Regressions:
    """Lines and sums of curves of a batch of families."""
    missing = max(_LEAST_SIMPLE - group.members.shape[1], 0)
    padded = [np.pad(leaf, ((0, 0), (0, missing))) for leaf in (group.members, group.used)]
    wide = Families(np.asarray(group.node), *padded)
    return _in_pieces(_simple_at_once(wide), "regressions", folds, None, wide)


def _in_pieces(
    size: int, program: str, folds: Folds, plan: TrainingPlan | None, *batch: Any
) -> Any:
    """Results of a compiled program for a batch of any length, in pieces of one shape."""
    num = len(jax.tree.leaves(batch)[0])
    parts = [
        jax.tree.map(partial(_filled, start=start, size=size), batch)
        for start in range(0, num, size)
    ]
    pieces = _map(_compute, [(program, folds, plan, *part) for part in parts])
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num], *pieces)


def _map(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> list[Any]:
    """Results of independent tasks: on a cluster, on all cores, or here on an accelerator."""
    cluster = parallel.current()
    if cluster.elsewhere:
        return cluster.map(function, tasks)
    if jax.default_backend() == "cpu":
        return processes.compute(function, tasks)
    return [function(*arguments) for arguments in tasks]


def _compute(program: str, folds: Folds, plan: TrainingPlan | None, *batch: Any) -> Any:
    """One piece of a batch, wherever it is computed."""
    compilation_cache.enable()
    settings = {} if plan is None else {"plan": plan}
    return jax.tree.map(np.asarray, _PROGRAMS[program](folds, *batch, **settings))


def _no_networks(folds: Folds, group: Families, plan: TrainingPlan) -> FoldFits:
    """Fits of networks that were not trained: nothing learned, and of no evidence."""
    num, k = group.members.shape
    num_folds, h, num_forms = folds.values.shape[0], plan.width, len(NoiseForm)
    q = h + k + 1

    def empty(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return np.zeros((num, num_folds, *shape), dtype)

    return FoldFits(
        networks=Network(empty(k, h), empty(h), empty(q)),
        log_posterior=empty() - np.float32(np.inf),
        log_marginal=empty(num_forms) - np.float32(np.inf),
        noise=NoiseFits(empty(num_forms), empty(num_forms, dtype=np.int32), empty(num_forms, q)),
        centre=empty(),
        spread=empty() + np.float32(1),
        last=empty(q, q),
        whitening=empty(k, k),
        input_mean=empty(k),
    )  # pyright: ignore


@partial(jax.jit, static_argnames="plan", compiler_options=_COMPILER)
def _score_networks(
    folds: Folds, group: Families, starts: StartingNetworks, plan: TrainingPlan
) -> Scored:
    """Networks of a batch of families, in the layout of all classes."""

    def one(family: Families, starts: StartingNetworks) -> Scored:
        rows = _rows_of(folds, family)
        found, active = _networks(rows, family.used, starts, plan)
        evidence, predicted = _evidence(found, rows[2].reshape(-1))
        best = jnp.argmax(evidence)
        residual = found.residual[:, best] * rows[2].reshape(-1)
        gain = _approximate_gain(folds.curves, residual, active)
        return Scored(evidence[None], predicted[None], gain, 0 * evidence[0], found.fit)

    return jax.vmap(one)(group, starts)


@partial(jax.jit, compiler_options=_COMPILER)
def _score_regressions(folds: Folds, group: Families) -> Regressions:
    """Lines and sums of curves of a batch of families, and what they leave."""

    def one(family: Families) -> Regressions:
        used, knots, rows = family.used, folds.knots[family.members], _rows_of(folds, family)
        x, weight = rows[0].reshape(-1, rows[0].shape[2]), rows[2].reshape(-1)
        table = function_classes.basis(x, knots, used)
        by_class = function_classes.members_of_basis(used)
        found = _regressions_by_class(rows, knots, used)
        evidence, predicted = jax.vmap(_evidence, in_axes=(0, None))(found, weight)
        best, form = jnp.unravel_index(jnp.argmax(evidence), evidence.shape)
        residual = found.residual[best, :, form] * weight
        plain = found.residual[best, :, NoiseForm.SYMMETRIC] * weight
        # What solves must wait for what solved before: see `linear_algebra.lower_inverse`.
        inputs = whitening.whitened_inputs(x + 0 * evidence[0, 0], weight, used)
        left = unexplained.log_bayes_factor(
            inputs, table * by_class[best][None, :], (plain, residual), weight, used
        )
        sides = (x > knots[:, knots.shape[1] // 2][None, :]) & (used > 0)[None, :]
        gain = _approximate_gain(folds.curves, residual, sides)
        fit = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), found.fit)
        left = jnp.where(folds.discrete[family.node] > 0, jnp.inf, left)
        left = jnp.where(used.any(), left, -jnp.inf)  # without parents there is nothing to learn
        return Regressions(evidence, predicted, gain, left, fit)

    return jax.vmap(one)(group)


_PROGRAMS = {"networks": _score_networks, "regressions": _score_regressions}


def _rows_of(folds: Folds, family: Families) -> Rows:
    """Inputs, target and weight of the rows, fold by fold."""
    x = folds.values[:, :, family.members] * family.used[None, None, :]
    return x, folds.values[:, :, family.node], folds.observed[:, :, family.node]


def _evidence(found: _HeldOut, weight: Array) -> tuple[Array, Array]:
    """Log evidence of all rows and log density of the unseen ones, by form of the noise."""
    predicted = (found.log_density * weight[:, None]).sum(axis=0)
    log_marginal = found.fit.log_marginal
    return log_marginal.mean(axis=0) + predicted / log_marginal.shape[0], predicted


def _approximate_gain(curves: Array, residual: Array, active: Array) -> Float[Array, " d"]:
    """What each variable could add to a network, by the residuals it leaves.

    A parent whose effect depends on the sign of another leaves nothing to see among all rows.
    Its effect shows on one side of a hidden unit, so that rows are also taken side by side:
    which of them is not known, so their gains are averaged as evidence is.
    """
    all_rows = jnp.ones_like(active[:, :1])
    sides = jnp.concatenate([all_rows, active, ~active], axis=1).astype(residual.dtype)
    fractions = jnp.maximum(sides.mean(axis=0), _LEAST_SIDE)
    slopes = (sides * residual[:, None]).T @ curves
    explained = 0.5 * (slopes**2).reshape(len(fractions), -1, NUM_CURVES).sum(axis=2)
    gains = explained / fractions[:, None]
    by_side = jax.nn.logsumexp(gains[1:], axis=0) - np.log(len(fractions) - 1)
    return jnp.logaddexp(gains[0], by_side) - np.log(2)


def _networks(
    rows: Rows, used: Array, starts: StartingNetworks, plan: TrainingPlan
) -> tuple[_HeldOut, Bool[Array, "n h"]]:
    """One network per fold, every row as the network that has not seen it sees it.

    All start from one pilot, so that they differ by the rows they see and not by their luck.
    """
    x, y, weight = rows
    pooled = (x.reshape(-1, x.shape[2]), y.reshape(-1), weight.reshape(-1))
    by_all = whitening.whitening(*pooled, used)
    given = jax.vmap(partial(whitening.in_whitened_units, by_all))(starts.networks)
    whitened = whitening.whitened(by_all, *pooled, used)
    pilot = training.pilot(whitened, used, given, starts.known, plan)
    pilot = whitening.in_engine_units(by_all, pilot)

    def held_out(f: Array) -> tuple[_HeldOut, Array]:
        train = _all_but(f, x, y, weight)
        by = whitening.whitening(*train, used)
        seen = whitening.whitened(by, *train, used)
        own = training.finish(whitening.in_whitened_units(by, pilot), seen, used, plan)
        fit = laplace.fit(own, seen, used)
        test = whitening.whitened(by, x[f], y[f], weight[f], used)
        return _seen_by(by, fit, test, train[2].sum()), network.active(fit.network, test.inputs)

    return _by_row(*jax.vmap(held_out)(jnp.arange(x.shape[0])))


def _regressions_by_class(rows: Rows, knots: Array, used: Array) -> _HeldOut:
    """Lines and sums of curves, stacked; lines are fitted to the inputs alone, which costs less."""
    curved = function_classes.members_of_basis(used)[1]

    def basis(x: Array) -> Array:
        return function_classes.basis(x, knots, used)

    lines = _regression(rows, lambda x: x * used[None, :], used)
    curves = _regression(rows, basis, curved)
    lines = lines._replace(fit=_filled_up(lines.fit, len(curved)))
    return jax.tree.map(lambda a, b: jnp.stack([a, b]), lines, curves)


def _regression(rows: Rows, table: Callable[[Array], Array], members: Array) -> _HeldOut:
    """Regressions of one class on a table of the inputs, one per fold."""
    x, y, weight = rows

    def held_out(f: Array) -> _HeldOut:
        inputs, target, counts = _all_but(f, x, y, weight)
        learned, unseen = table(inputs), table(x[f])
        by = whitening.whitening(learned, target, counts, members)
        seen = whitening.whitened(by, learned, target, counts, members)
        fit = laplace.fit(function_classes.regress(seen, members), seen, members)
        test = whitening.whitened(by, unseen, y[f], weight[f], members)
        return _seen_by(by, fit, test, counts.sum())

    return _by_row(jax.vmap(held_out)(jnp.arange(x.shape[0])))[0]


def _filled_up(fits: FoldFits, q: int) -> FoldFits:
    """Regressions on the inputs as regressions on a basis of q members, which begins with them."""
    k = fits.input_mean.shape[-1]
    places = jnp.append(jnp.arange(k), q)  # the constant stays last

    def vector(leaf: Array) -> Array:
        return jnp.zeros((*leaf.shape[:-1], q + 1), leaf.dtype).at[..., places].set(leaf)

    def matrix(leaf: Array, where: Array, size: int) -> Array:
        whole = jnp.broadcast_to(jnp.eye(size, dtype=leaf.dtype), (*leaf.shape[:-2], size, size))
        return whole.at[..., where[:, None], where[None, :]].set(leaf)

    network = fits.networks
    return fits._replace(
        networks=network._replace(
            first=jnp.zeros((*network.first.shape[:-2], q, 0), network.first.dtype),
            second=vector(network.second),
        ),
        noise=fits.noise._replace(log_scale_weights=vector(fits.noise.log_scale_weights)),
        last=matrix(fits.last, places, q + 1),
        whitening=matrix(fits.whitening, places[:-1], q),
        input_mean=vector(jnp.append(fits.input_mean, jnp.zeros_like(fits.centre)[:, None], 1))[
            :, :-1
        ],
    )


def _seen_by(by: Whitening, fit: Fit, test: TrainingRows, num_rows: Array) -> _HeldOut:
    """Rows as a function sees them that has not seen them before."""
    predicted = laplace.predict(fit, test)
    density = predicted.log_density - jnp.log(by.spread)
    return _HeldOut(_kept(by, fit, num_rows), density, predicted.residual)


def _by_row(found: _HeldOut, *others: Array) -> tuple[Any, ...]:
    """Results of all folds, with one dimension for the rows."""
    parts = (found.log_density, found.residual, *others)
    density, residual, *rest = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in parts)
    return _HeldOut(found.fit, density, residual), *rest


def _all_but(f: Array, *leaves: Array) -> Rows:
    """The rows of all other folds, as one table each."""
    rolled = (jnp.roll(leaf, -f - 1, axis=0)[:-1] for leaf in leaves)
    inputs, target, counts = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in rolled)
    return inputs, target, counts


def _kept(by: Whitening, fit: Fit, num_rows: Array) -> FoldFits:
    """What is kept of a function, in engine units."""
    log_spread = jnp.log(by.spread) * num_rows
    return FoldFits(
        networks=whitening.in_engine_units(by, fit.network),
        log_posterior=fit.log_posterior - log_spread,
        log_marginal=fit.log_marginal - log_spread,
        noise=whitening.noise_in_engine_units(by, fit),
        centre=by.centre,
        spread=by.spread,
        last=fit.last,
        whitening=by.root,
        input_mean=by.mean,
    )


def simple_fits(folds: Folds, group: Families) -> FoldFits:
    """Lines and sums of curves of a batch of families; dimensions (family, class, fold)."""
    fits = _narrowed(regressions(folds, group).fit, group.members.shape[1])
    return jax.tree.map(lambda leaf: np.moveaxis(leaf, 2, 1), fits)


def _narrowed(fits: FoldFits, k: int) -> FoldFits:
    """Fits without the places that were filled up beyond k inputs; they have no part in them."""
    num_knots = len(function_classes.KNOTS)
    wide = fits.input_mean.shape[-1] // (1 + num_knots)
    own = np.append(np.arange(k), wide + np.arange(k * num_knots))
    with_constant = np.append(own, fits.input_mean.shape[-1])
    network, noise = fits.networks, fits.noise
    return fits._replace(
        networks=Network(
            network.first[..., own, :], network.bias, network.second[..., with_constant]
        ),
        noise=noise._replace(log_scale_weights=noise.log_scale_weights[..., with_constant]),
        last=fits.last[..., with_constant[:, None], with_constant],
        whitening=fits.whitening[..., own[:, None], own],
        input_mean=fits.input_mean[..., own],
    )


def _simple_at_once(group: Families) -> int:
    """Families whose regressions are made together."""
    if jax.default_backend() == "cpu":
        return _MOST_ON_CPU
    k = group.members.shape[1]
    return max(_MOST_ON_ACCELERATORS * SIZES[1] ** 2 // k**2, _FEWEST_ON_ACCELERATORS)


def _at_once(folds: Folds, group: Families, plan: TrainingPlan) -> int:
    """Families that are trained together: enough to fill the device, not its memory."""
    k = group.members.shape[1]
    if jax.default_backend() != "cpu":
        return max(_MOST_ON_ACCELERATORS * SIZES[1] ** 2 // k**2, _FEWEST_ON_ACCELERATORS)
    num_folds, size, _ = folds.values.shape
    slopes = num_folds * max(num_folds - 1, 1) * size * (plan.width * (k + 2) + k + 1)
    return min(1 << max(0, (_ROOM_ON_CPU // slopes).bit_length() - 1), _MOST_ON_CPU)


def _filled(leaf: np.ndarray, start: int, size: int) -> np.ndarray:
    """A piece of a batch; the end is filled up by repeating its last member."""
    return leaf[np.minimum(np.arange(start, start + size), len(leaf) - 1)]
