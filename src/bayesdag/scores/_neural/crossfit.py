"""Cross-fitted evidence of families: a variable with parents whose effect must be learned.

Networks are trained on all folds but one. Laplace's approximation integrates them out for the
rows they were trained on; the rows of the last fold are scored by their predictive density. A
network that fits noise pays in the first part and predicts badly in the second. Many families
are trained in one compiled call.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from bayesdag.runs.loop import COMPILER
from bayesdag.scores._neural import function_classes, laplace, network, training, whitening
from bayesdag.scores._neural.laplace import Fit
from bayesdag.scores._neural.network import Network
from bayesdag.scores._neural.noise_forms import NoiseFits
from bayesdag.scores._neural.surrogate import NUM_CURVES, curves
from bayesdag.scores._neural.training import TrainingPlan
from bayesdag.scores._neural.whitening import Whitening
from bayesdag.types import Array

Rows = tuple[Array, Array, Array]  # inputs, target and weight
# Parent sets are filled up to one of these sizes, so that few programs are compiled.
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
# Numbers in the derivatives of all networks that a CPU trains at once.
_ROOM_ON_CPU = 4_000_000
# Families of the smallest size that an accelerator trains at once: it takes as long for one as
# for all of them, and longer to compile a program than to run it, so each size has one batch.
# Fewer of the larger ones fill it (H200: 64 families of 16 parents 0.06 s, 256 of them 0.22 s).
_MOST_ON_ACCELERATORS, _FEWEST_ON_ACCELERATORS = 256, 32

# Families whose lines and sums of curves are fitted again at once, to draw their parameters.
_MOST_SIMPLE_ON_CPU = 8
_COLUMNS = 8  # the number of columns is a multiple of this
_LEAST_SIDE = 0.02  # fraction of the rows for which a side of a hidden unit is taken seriously


class Folds(NamedTuple):
    """Rows in random order, cut into folds; the last may be filled up with empty rows.

    Attributes:
        values: in engine units.
        observed: 1 where nature chose the value, 0 where somebody set it or no row is.
        curves: orthonormal curves of every variable, to compare residuals with.
        knots: where the curve of each variable may bend, in a sum of curves.
    """

    values: Float[jax.Array, "f m d"]
    observed: Float[jax.Array, "f m d"]
    curves: Float[jax.Array, "n c"]
    knots: Float[jax.Array, "d m"]


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
        folds: the networks.
    """

    log_evidence: Float[Array, "*b class form"]
    predicted: Float[Array, "*b class form"]
    approximate_gain: Float[Array, "*b d"]
    folds: FoldFits


# The structure alone, to read recorded results with.
SCORED = Scored(0, 0, 0, FoldFits(Network(0, 0, 0), 0, 0, NoiseFits(0, 0, 0), 0, 0, 0, 0, 0))  # pyright: ignore


class StartingNetworks(NamedTuple):
    """Networks to start from, for every family and fold; `known` says which mean something."""

    networks: Network
    known: Bool[Array, "b w"]


class _HeldOut(NamedTuple):
    """A fold's network, and what all classes make of the rows that they have not seen."""

    fit: FoldFits
    log_marginal: Float[Array, "*f class form"]
    log_density: Float[Array, "*n class form"]
    residual: Float[Array, "*n class form"]
    active: Bool[Array, "*n h"]


def fold(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    num_folds: int,
) -> Folds:
    """The rows in random order, cut into folds; rows that repeat one another stay together.

    A bootstrap sample has many of them, and a row that was trained on predicts its copy. Empty
    columns are added, so that few programs are compiled for tables of different widths.
    """
    n, d = values.shape
    empty = -d % _COLUMNS
    _, which = np.unique(values, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(rng.permutation(which.max() + 1)[which], kind="stable")
    size = -(-n // num_folds)
    missing = num_folds * size - n

    def cut(table: np.ndarray) -> np.ndarray:
        full = np.pad(table[order].astype(np.float32), ((0, missing), (0, empty)))
        return full.reshape(num_folds, size, d + empty)

    shapes = np.pad(curves(values)[order], ((0, missing), (0, empty * NUM_CURVES)))
    knots = np.pad(function_classes.knots_of(values), ((0, empty), (0, 0)))
    tables = (cut(values), cut(observed), shapes, knots)
    return Folds(*(jnp.asarray(table, jnp.float32) for table in tables))


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


def score(folds: Folds, group: Families, starts: StartingNetworks, plan: TrainingPlan) -> Scored:
    """Cross-fitted evidence of a batch of families, in pieces of one shape."""
    pieces = []
    num = len(group.node)
    size = _at_once(folds, group, plan)
    for start in range(0, num, size):
        part = jax.tree.map(partial(_filled, start=start, size=size), (group, starts))
        pieces.append(jax.tree.map(np.asarray, _score(folds, *part, plan)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num], *pieces)


@partial(jax.jit, static_argnames="plan", compiler_options=COMPILER)
def _score(folds: Folds, group: Families, starts: StartingNetworks, plan: TrainingPlan) -> Scored:
    found = jax.vmap(partial(_score_family, folds, plan))(group, starts)
    every = folds.observed.reshape(-1, folds.observed.shape[-1])
    weight = jnp.moveaxis(every[:, group.node], 1, 0)
    predicted = (found.log_density * weight[:, :, None, None]).sum(axis=1)
    evidence = found.log_marginal.mean(axis=1) + predicted / found.log_marginal.shape[1]
    best = jnp.argmax(evidence.reshape(evidence.shape[0], -1), axis=1)
    residual = found.residual.reshape(*found.residual.shape[:2], -1)
    residual = jnp.take_along_axis(residual, best[:, None, None], axis=2)[:, :, 0]
    gain = jax.vmap(partial(_approximate_gain, folds.curves))(residual * weight, found.active)
    return Scored(evidence, predicted, gain, found.fit)


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


def _score_family(
    folds: Folds, plan: TrainingPlan, family: Families, starts: StartingNetworks
) -> _HeldOut:
    """One network per fold, and every row as the network that has not seen it sees it."""
    used, knots = family.used, folds.knots[family.members]
    x = folds.values[:, :, family.members] * used[None, None, :]
    y, weight = folds.values[:, :, family.node], folds.observed[:, :, family.node]

    def held_out(f: Array, networks: Network) -> _HeldOut:
        train = _all_but(f, x, y, weight)
        by = whitening.whitening(*train, used)
        rows = whitening.whitened(by, *train, used)
        given = jax.vmap(partial(whitening.in_whitened_units, by))(networks)
        fit = laplace.fit(training.train(rows, used, given, starts.known, plan), rows, used)
        test = whitening.whitened(by, x[f], y[f], weight[f], used)
        predicted = laplace.predict(fit, test)
        # What solves must wait for what solved before: see `linear_algebra.lower_inverse`.
        later = knots + 0 * fit.log_marginal.sum()
        simple = _simple_functions(train, (x[f], y[f], weight[f]), later, used)
        density = predicted.log_density - jnp.log(by.spread)
        log_marginal = fit.log_marginal - jnp.log(by.spread) * train[2].sum()
        return _HeldOut(
            fit=_kept(by, fit, train[2].sum()),
            log_marginal=jnp.concatenate([log_marginal[None], simple.fit.log_marginal]),
            log_density=jnp.concatenate([density[:, None], simple.log_density], axis=1),
            residual=jnp.concatenate([predicted.residual[:, None], simple.residual], axis=1),
            active=network.active(fit.network, test.inputs),
        )

    each = jax.vmap(held_out)(jnp.arange(folds.values.shape[0]), starts.networks)
    by_row = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in each[2:])
    return _HeldOut(each.fit, each.log_marginal, *by_row)


class _Simple(NamedTuple):
    """A line and a sum of curves, and what they make of rows that they have not seen."""

    fit: FoldFits
    log_density: Float[Array, "n class form"]
    residual: Float[Array, "n class form"]


def _simple_functions(train: Rows, test: Rows, knots: Array, used: Array) -> _Simple:
    """Regressions on the basis of the inputs, by class."""
    (inputs, target, counts), (x, y, weight) = train, test
    learned, unseen = (function_classes.basis(part, knots, used) for part in (inputs, x))

    def one(members: Array) -> _Simple:
        by = whitening.whitening(learned, target, counts, members)
        rows = whitening.whitened(by, learned, target, counts, members)
        fit = laplace.fit(function_classes.regress(rows, members), rows, members)
        predicted = laplace.predict(fit, whitening.whitened(by, unseen, y, weight, members))
        density = predicted.log_density - jnp.log(by.spread)
        return _Simple(_kept(by, fit, counts.sum()), density, predicted.residual)

    found = jax.vmap(one)(function_classes.members_of_basis(used))
    by_row = (jnp.moveaxis(leaf, 0, 1) for leaf in found[1:])
    return _Simple(found.fit, *by_row)


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
    pieces = []
    size = _MOST_SIMPLE_ON_CPU if jax.default_backend() == "cpu" else _MOST_ON_ACCELERATORS
    for start in range(0, len(group.node), size):
        part = jax.tree.map(partial(_filled, start=start, size=size), group)
        pieces.append(jax.tree.map(np.asarray, _simple_fits(folds, part)))
    num = len(group.node)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num], *pieces)


@partial(jax.jit, compiler_options=COMPILER)
def _simple_fits(folds: Folds, group: Families) -> FoldFits:
    def one(family: Families) -> FoldFits:
        used, knots = family.used, folds.knots[family.members]
        x = folds.values[:, :, family.members] * used[None, None, :]
        y, weight = folds.values[:, :, family.node], folds.observed[:, :, family.node]

        def held_out(f: Array) -> FoldFits:
            train = _all_but(f, x, y, weight)
            return _simple_functions(train, (x[f], y[f], weight[f]), knots, used).fit

        found = jax.vmap(held_out)(jnp.arange(folds.values.shape[0]))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), found)

    return jax.vmap(one)(group)


def _at_once(folds: Folds, group: Families, plan: TrainingPlan) -> int:
    """Families that are trained together: enough to fill the device, not its memory."""
    k = group.members.shape[1]
    if jax.default_backend() != "cpu":
        return max(_MOST_ON_ACCELERATORS * SIZES[1] ** 2 // k**2, _FEWEST_ON_ACCELERATORS)
    num_folds, size, _ = folds.values.shape
    slopes = num_folds * max(num_folds - 1, 1) * size * (plan.width * (k + 2) + k + 1)
    return 1 << max(0, (_ROOM_ON_CPU // slopes).bit_length() - 1)


def _filled(leaf: np.ndarray, start: int, size: int) -> Array:
    """A piece of a batch; the end is filled up by repeating its last member."""
    at = np.minimum(np.arange(start, start + size), len(leaf) - 1)
    return jnp.asarray(leaf[at])
