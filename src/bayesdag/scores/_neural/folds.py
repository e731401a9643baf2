"""The rows of a fit in folds, and the families of variables that look at them.

On a CPU the folds are NumPy arrays of their own size, and so is everything that is computed from
them; on an accelerator they are JAX arrays, filled up to few sizes so that few programs are
compiled.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.scores._neural import function_classes
from bayesdag.scores._neural.linear_algebra import columns_first
from bayesdag.scores._neural.network import Network
from bayesdag.scores._neural.surrogate import NUM_CURVES, curves

Rows = tuple[Array, Array, Array]  # inputs, target and weight
# Parent sets are filled up to one of these sizes where programs are compiled.
SIZES = (8, 16, 32, 64, 128, 256, 512)
_COLUMNS = 8  # there, the number of columns is a multiple of this
# A variable with no more values than these, in number or as a fraction of the rows, is discrete.
_FEW_VALUES, _FEW_OF_ROWS = 10, 0.05


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

    values: Float[Array, "f m d"]
    observed: Float[Array, "f m d"]
    curves: Float[Array, "n c"]
    knots: Float[Array, "d m"]
    discrete: Float[Array, " d"]

    @property
    def compiled(self) -> bool:
        """Whether what is computed from them is compiled, for many families at once."""
        return namespace(self.values) is not np


class Families(NamedTuple):
    """A batch of families of one size; `used` tells parents from filling."""

    node: Int32[Array, " b"]
    members: Int32[Array, "b k"]
    used: Float[Array, "b k"]


class StartingNetworks(NamedTuple):
    """Where training of every family begins, and what it has to reach.

    Attributes:
        networks: of related families.
        known: which of them mean something.
        bar: log evidence of a family that makes this one superfluous if it stays far below.
        own: the networks of the first fold that the family has, where it is trained again.
        again: whether it is.
    """

    networks: Network
    known: Bool[Array, "b w"]
    bar: Float[Array, " b"]
    own: Network
    again: Bool[Array, " b"]


def fold(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    num_folds: int,
    compiled: bool | None = None,
) -> Folds:
    """The rows in random order, cut into folds; rows that repeat one another stay together.

    A bootstrap sample has many of them, and a row that was trained on predicts its copy.

    Args:
        compiled: whether what looks at them is compiled; on accelerators, unless told.
    """
    n, d = values.shape
    compiled = jax.default_backend() != "cpu" if compiled is None else compiled
    empty = -d % _COLUMNS if compiled else 0
    which = _numbered(values)
    order = np.argsort(rng.permutation(which.max() + 1)[which], kind="stable")
    parts = np.array_split(order, num_folds)
    size = _rounded(len(parts[0])) if compiled else len(parts[0])

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
    convert = jax.numpy.asarray if compiled else np.asarray
    return Folds(*(convert(table, np.float32) for table in tables))


def _numbered(values: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """The same number for rows that repeat one another; in the order of their values."""
    first, which = np.unique(values[:, 0], return_inverse=True)
    if len(first) < len(values):  # the first column does not tell all rows apart
        _, which = np.unique(values, axis=0, return_inverse=True)
    return which.reshape(-1)


def on_host(folds: Folds) -> Folds:
    """The same as NumPy arrays, for what is computed for few families."""
    return Folds(*(np.asarray(leaf) for leaf in folds))


def _rounded(size: int) -> int:
    """The next number with three binary digits and zeros: four sizes from each to its double."""
    step = 1 << max(size.bit_length() - 3, 0)
    return -(-size // step) * step


def families_by_size(
    folds: Folds, nodes: Int[np.ndarray, " m"], parents: Bool[np.ndarray, "m d"]
) -> list[tuple[Int[np.ndarray, " b"], Families]]:
    """Families by size, with their places in the input."""
    count = parents.sum(axis=1)
    size = np.maximum(count, 1)
    if folds.compiled:
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


def rows_of(folds: Folds, family: Families) -> Rows:
    """Inputs, target and weight of the rows of one family, fold by fold."""
    x = folds.values[:, :, family.members] * family.used[None, None, :]
    return x, folds.values[:, :, family.node], folds.observed[:, :, family.node]


def all_rows(rows: Rows) -> Rows:
    """The rows of all folds, as one table each."""
    x, y, weight = rows
    return columns_first(x.reshape(-1, x.shape[2])), y.reshape(-1), weight.reshape(-1)


def all_but(f: Array, rows: Rows) -> Rows:
    """The rows of all folds but one, as one table each."""
    num = len(rows[1])
    others = (namespace(rows[1]).arange(1, num) + f) % num
    inputs, target, counts = (leaf[others] for leaf in rows)
    return all_rows((inputs, target, counts))


def one_of(f: Array, rows: Rows) -> Rows:
    """The rows of one fold."""
    x, y, weight = (leaf[f] for leaf in rows)
    return columns_first(x), y, weight
