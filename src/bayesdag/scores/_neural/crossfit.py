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
from bayesdag.scores._neural import laplace, network, training, whitening
from bayesdag.scores._neural.network import Network
from bayesdag.scores._neural.noise_forms import NoiseFits
from bayesdag.scores._neural.surrogate import NUM_CURVES, curves
from bayesdag.scores._neural.training import TrainingPlan
from bayesdag.types import Array

# Parent sets are filled up to one of these sizes, so that few programs are compiled.
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
# Numbers in the derivatives of all networks that a CPU trains at once.
_ROOM_ON_CPU = 4_000_000
# Families of the smallest size that an accelerator trains at once: it takes as long for one as
# for all of them, and longer to compile a program than to run it, so each size has one batch.
# Fewer of the larger ones fill it (H200: 64 families of 16 parents 0.06 s, 256 of them 0.22 s).
_MOST_ON_ACCELERATORS, _FEWEST_ON_ACCELERATORS = 256, 32

_LEAST_SIDE = 0.02  # fraction of the rows for which a side of a hidden unit is taken seriously


class Folds(NamedTuple):
    """Rows in random order, cut into folds; the last may be filled up with empty rows.

    Attributes:
        values: in engine units.
        observed: 1 where nature chose the value, 0 where somebody set it or no row is.
        curves: orthonormal curves of every variable, to compare residuals with.
    """

    values: Float[jax.Array, "f m d"]
    observed: Float[jax.Array, "f m d"]
    curves: Float[jax.Array, "n c"]


class Families(NamedTuple):
    """A batch of families of one size; `used` tells parents from filling."""

    node: Int32[Array, " b"]
    members: Int32[Array, "b k"]
    used: Float[Array, "b k"]


class FoldFits(NamedTuple):
    """What is known of a network trained on all folds but one; one entry per fold.

    Attributes:
        networks: inputs in engine units, standardised target.
        log_posterior: of each network on the rows it was trained on.
        log_marginal: of the rows that each network was trained on, by form of the noise.
        noise: of its residuals, in engine units.
        centre: of the target.
        spread: of the target.
        last: curvature of the last layer, inputs whitened.
        whitening: Cholesky factor of the covariance of the inputs.
    """

    networks: Network
    log_posterior: Float[Array, "*b f"]
    log_marginal: Float[Array, "*b f form"]
    noise: NoiseFits
    centre: Float[Array, "*b f"]
    spread: Float[Array, "*b f"]
    last: Float[Array, "*b f q q"]
    whitening: Float[Array, "*b f k k"]


class Scored(NamedTuple):
    """What is known of families after training; a leading dimension for each.

    Attributes:
        log_evidence: of all rows, by form of the noise: mean over the folds of the log
            marginal likelihood and of what it predicts.
        predicted: log density of the rows by networks that have not seen them, by form of the
            noise.
        approximate_gain: gain in nats of a linear regression of the residuals on curves of
            each variable, among all rows or on one side of a hidden unit: quick, and good
            enough to say which to try first.
        folds: the networks.
    """

    log_evidence: Float[Array, "*b form"]
    predicted: Float[Array, "*b form"]
    approximate_gain: Float[Array, "*b d"]
    folds: FoldFits


# The structure alone, to read recorded results with.
SCORED = Scored(0, 0, 0, FoldFits(Network(0, 0, 0), 0, 0, NoiseFits(0, 0, 0), 0, 0, 0, 0))  # pyright: ignore


class StartingNetworks(NamedTuple):
    """Networks to start from, for every family and fold; `known` says which mean something."""

    networks: Network
    known: Bool[Array, "b w"]


class _HeldOut(NamedTuple):
    """A fold's network, and what it makes of the rows that it has not seen."""

    fit: FoldFits
    log_density: Float[Array, "*n form"]
    residual: Float[Array, "*n form"]
    active: Bool[Array, "*n h"]


def fold(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    num_folds: int,
) -> Folds:
    """The rows in random order, cut into folds; rows that repeat one another stay together.

    A bootstrap sample has many of them, and a row that was trained on predicts its copy.
    """
    n, d = values.shape
    _, which = np.unique(values, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(rng.permutation(which.max() + 1)[which], kind="stable")
    size = -(-n // num_folds)
    missing = num_folds * size - n

    def cut(table: np.ndarray) -> np.ndarray:
        full = np.concatenate([table[order], np.zeros((missing, d))])
        return full.astype(np.float32).reshape(num_folds, size, d)

    shapes = np.concatenate([curves(values)[order], np.zeros((missing, d * NUM_CURVES))])
    return Folds(*(jnp.asarray(t, jnp.float32) for t in (cut(values), cut(observed), shapes)))


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
    predicted = (found.log_density * weight[:, :, None]).sum(axis=1)
    log_marginal = found.fit.log_marginal
    evidence = log_marginal.mean(axis=1) + predicted / log_marginal.shape[1]
    best = jnp.argmax(evidence, axis=1)
    residual = jnp.take_along_axis(found.residual, best[:, None, None], axis=2)[:, :, 0]
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
    used = family.used
    x = folds.values[:, :, family.members] * used[None, None, :]
    y, weight = folds.values[:, :, family.node], folds.observed[:, :, family.node]

    def held_out(f: Array, networks: Network) -> _HeldOut:
        rolled = (jnp.roll(leaf, -f - 1, axis=0)[:-1] for leaf in (x, y, weight))
        inputs, target, counts = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in rolled)
        by = whitening.whitening(inputs, target, counts, used)
        rows = whitening.whitened(by, inputs, target, counts, used)
        given = jax.vmap(partial(whitening.in_whitened_units, by))(networks)
        fit = laplace.fit(training.train(rows, used, given, starts.known, plan), rows, used)
        test = whitening.whitened(by, x[f], y[f], weight[f], used)
        predicted = laplace.predict(fit, test)
        active = network.active(fit.network, test.inputs)
        log_spread = jnp.log(by.spread) * counts.sum()
        kept = FoldFits(
            networks=whitening.in_engine_units(by, fit.network),
            log_posterior=fit.log_posterior - log_spread,
            log_marginal=fit.log_marginal - log_spread,
            noise=whitening.noise_in_engine_units(by, fit),
            centre=by.centre,
            spread=by.spread,
            last=fit.last,
            whitening=by.root,
        )
        density = predicted.log_density - jnp.log(by.spread)
        return _HeldOut(kept, density, predicted.residual, active)

    each = jax.vmap(held_out)(jnp.arange(folds.values.shape[0]), starts.networks)
    by_row = (leaf.reshape(-1, leaf.shape[-1]) for leaf in each[1:])
    return _HeldOut(each.fit, *by_row)


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
