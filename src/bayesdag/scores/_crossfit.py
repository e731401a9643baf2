"""What does a variable's history with some parents say of its future, row by row?

Networks are trained on all folds but one, and the rows of that one are scored by their
predictive density; every row counts once. This is evidence without a penalty constant: a
network that fits noise predicts badly. Many families are trained in one compiled call.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from bayesdag.scores import _networks
from bayesdag.scores._networks import Fit, Plan, Whitening
from bayesdag.types import Array

# Parent sets are filled up to one of these sizes, so that few programs are compiled.
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
# Numbers in the derivatives of all networks that are trained at once, by platform.
_ROOM = {"cpu": 4_000_000}
_ROOM_ON_ACCELERATORS = 600_000_000
# Curves of a variable that residuals are compared with to see what it could add.
NUM_CURVES = 5


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

    node: Int32[np.ndarray, " b"]
    members: Int32[np.ndarray, "b k"]
    used: Float[np.ndarray, "b k"]


class Scored(NamedTuple):
    """Log predictive density of all rows, and what each variable could add, in nats.

    The second is the gain of a linear regression of the residuals on curves of the
    variable: quick, blind to products, good enough to say which to try first.
    """

    log_evidence: Float[np.ndarray, " b"]
    could_add: Float[np.ndarray, "b d"]


def fold(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    num_folds: int,
) -> Folds:
    """The rows in random order, cut into folds."""
    n, d = values.shape
    order = rng.permutation(n)
    size = -(-n // num_folds)
    missing = num_folds * size - n

    def cut(table: np.ndarray) -> np.ndarray:
        full = np.concatenate([table[order], np.zeros((missing, d))])
        return full.astype(np.float32).reshape(num_folds, size, d)

    curves = np.concatenate([_curves(values)[order], np.zeros((missing, d * NUM_CURVES))])
    return Folds(*(jnp.asarray(t, jnp.float32) for t in (cut(values), cut(observed), curves)))


def families(
    nodes: Int[np.ndarray, " m"], parents: Bool[np.ndarray, "m d"]
) -> list[tuple[Int[np.ndarray, " b"], Families]]:
    """Families by size, with their places in the input."""
    count = parents.sum(axis=1)
    size = np.array(SIZES)[np.searchsorted(SIZES, count)]
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


def score(folds: Folds, group: Families, plan: Plan) -> Scored:
    """Cross-fitted evidence of a batch of families, in pieces of one shape."""
    pieces = []
    num = len(group.node)
    for start, size in _pieces(num, _at_once(folds, group, plan)):
        part = [_filled(leaf, start, size) for leaf in group]
        pieces.append(_score(folds, *part, plan))
    evidence, could_add = (
        np.concatenate([np.asarray(piece[i], dtype=float) for piece in pieces])[:num]
        for i in range(2)
    )
    return Scored(evidence, could_add)


def refit(folds: Folds, group: Families, plan: Plan) -> tuple[Fit, Whitening]:
    """Networks trained on all rows, for their functions; leading dimension: families."""
    pieces = []
    num = len(group.node)
    for start, size in _pieces(num, _at_once(folds, group, plan)):
        part = [_filled(leaf, start, size) for leaf in group]
        pieces.append(jax.tree.map(np.asarray, _refit(folds, *part, plan)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num], *pieces)


@partial(jax.jit, static_argnames="plan")
def _score(folds: Folds, node, members, used, plan: Plan):
    density, residual = jax.vmap(partial(_one, folds, plan))(node, members, used)
    weight = jnp.moveaxis(folds.observed.reshape(-1, folds.observed.shape[-1])[:, node], 1, 0)
    gains = (residual * weight) @ folds.curves
    gains = 0.5 * (gains**2).reshape(len(node), -1, NUM_CURVES).sum(axis=2)
    return (density * weight).sum(axis=1), gains


def _one(folds: Folds, plan: Plan, node, members, used):
    """Log density and standardised residual of every row, each from the other folds."""
    x = folds.values[:, :, members] * used[None, None, :]
    y, weight = folds.values[:, :, node], folds.observed[:, :, node]

    def held_out(f):
        rolled = (jnp.roll(leaf, -f - 1, axis=0)[:-1] for leaf in (x, y, weight))
        inputs, target, counts = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in rolled)
        by = _networks.whitening(inputs, target, counts, used)
        rows = _networks.whitened(by, inputs, target, counts, used)
        fitted = _networks.fit(rows, used, plan)
        rows = _networks.whitened(by, x[f], y[f], weight[f], used)
        density, residual = _networks.log_density(fitted, rows)
        return density - jnp.log(by.spread), residual

    density, residual = jax.vmap(held_out)(jnp.arange(folds.values.shape[0]))
    return density.reshape(-1), residual.reshape(-1)


@partial(jax.jit, static_argnames="plan")
def _refit(folds: Folds, node, members, used, plan: Plan):
    values, observed = (leaf.reshape(-1, leaf.shape[-1]) for leaf in folds[:2])

    def one(node, members, used) -> tuple[Fit, Whitening]:
        x, y, weight = values[:, members] * used[None, :], values[:, node], observed[:, node]
        by = _networks.whitening(x, y, weight, used)
        return _networks.fit(_networks.whitened(by, x, y, weight, used), used, plan), by

    return jax.vmap(one)(node, members, used)


def _curves(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n c"]:
    """Slope, kinks and bend of every variable, orthonormal one variable at a time."""
    z = np.clip(values, -5, 5)
    low, middle, high = np.quantile(z, [0.2, 0.5, 0.8], axis=0)
    raw = np.stack([z, abs(z - middle), abs(z - low), abs(z - high), z**2], axis=-1)
    raw = raw - raw.mean(axis=0)
    raw = np.concatenate([raw, 1e-3 * np.random.default_rng(0).standard_normal(raw.shape)])
    basis, _ = np.linalg.qr(np.moveaxis(raw, 1, 0))
    return np.moveaxis(basis[:, : len(values)], 0, 1).reshape(len(values), -1)


def _at_once(folds: Folds, group: Families, plan: Plan) -> int:
    """Families that are trained together: enough to fill the device, not its memory."""
    num_folds, size, _ = folds.values.shape
    k = group.members.shape[1]
    slopes = num_folds * max(num_folds - 1, 1) * size * (plan.width * (k + 2) + k + 1)
    room = _ROOM.get(jax.default_backend(), _ROOM_ON_ACCELERATORS)
    return 1 << max(0, (room // slopes).bit_length() - 1)


def _pieces(num: int, most: int) -> list[tuple[int, int]]:
    """Start and size of each piece; sizes are few, so that little is compiled."""
    pieces, start = [], 0
    while start < num:
        size = most if most < 32 or num - start > most // 4 else most // 8
        pieces.append((start, size))
        start += size
    return pieces


def _filled(leaf: np.ndarray, start: int, size: int) -> Array:
    """A piece of a batch; the end is filled up by repeating its last member."""
    at = np.minimum(np.arange(start, start + size), len(leaf) - 1)
    return jnp.asarray(leaf[at])
