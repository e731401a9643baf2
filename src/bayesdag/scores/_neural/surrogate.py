"""The surrogate of the neural score: effects of the parents that add up.

Evidence of a regression on a few curves of every parent: sums of squares and products of all
curves are computed once, then a parent set costs one small matrix. It knows no interactions,
so it decides nothing; it says where the search of an expensive score should begin.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import solve_triangular

from bayesdag.data import Dataset
from bayesdag.scores._sufficient_statistics import RowMoments, by_size, rows_of

# Slope, bend and kinks of a variable.
NUM_CURVES = 5
_NOISE = 1e-3  # in the rows that are added to tell curves of few values apart
LEAST_VARIANCE = 1e-9  # of what a regression leaves; less is rounding


class Moments(NamedTuple):
    """Of the curves of all variables, followed by the variables themselves."""

    rows: RowMoments
    num_variables: int


class AdditiveSurrogate:
    """Evidence of sums of curves, Gaussian noise, a prior worth one row."""

    def prepare(self, data: Dataset) -> Moments:
        """Moments of the curves, for each pattern of rows where nodes were observed."""
        values = data.scaled
        table = np.concatenate([curves(values) * len(values) ** 0.5, values], axis=1)
        return Moments(rows_of(table, data.observed), values.shape[1])

    def log_evidence(
        self, stats: Moments, node: int, parents: Bool[np.ndarray, "m d"]
    ) -> Float[np.ndarray, " m"]:
        """Log density of the node's rows, for m parent sets; up to a constant of the node."""
        entry = stats.rows.group[node]
        scatter, n = stats.rows.scatter[entry], int(stats.rows.num_rows[entry])
        target = stats.num_variables * NUM_CURVES + node
        result = np.empty(len(parents))
        for which, members in by_size(parents, extra=NUM_CURVES**2 * parents.shape[1]):
            columns = members[:, :, None] * NUM_CURVES + np.arange(NUM_CURVES)
            columns = columns.reshape(len(which), -1)
            gram = scatter[columns[:, :, None], columns[:, None, :]] + np.eye(columns.shape[1])
            slope = scatter[columns, target]
            root = np.linalg.cholesky(gram)
            solved = np.linalg.solve(gram, slope[..., None])[..., 0]
            left = (scatter[target, target] - (slope * solved).sum(axis=1)) / max(n, 1)
            volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            result[which] = -volume - 0.5 * n * np.log(np.maximum(left, LEAST_VARIANCE))
        return result

    def log_evidence_of_additions(
        self, stats: Moments, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """The same with every further parent j, at the price of one set.

        Entries of the node itself and of variables that are parents already mean nothing.
        """
        pairs = zip(nodes.tolist(), parents, strict=True)
        return np.stack([_additions(stats, node, np.flatnonzero(chosen)) for node, chosen in pairs])


def _additions(
    stats: Moments, node: int, members: Int[np.ndarray, " p"]
) -> Float[np.ndarray, " d"]:
    """Evidence of one node with these parents and, in turn, each variable besides."""
    d, entry = stats.num_variables, stats.rows.group[node]
    scatter, n = stats.rows.scatter[entry], int(stats.rows.num_rows[entry])
    blocks, target = np.arange(d * NUM_CURVES).reshape(d, NUM_CURVES), d * NUM_CURVES + node
    columns = blocks[members].reshape(-1)
    root = np.linalg.cholesky(scatter[np.ix_(columns, columns)] + np.eye(len(columns)))
    across = scatter[columns]
    whitened = solve_triangular(root, across, lower=True, check_finite=False)
    own, others = whitened[:, target], whitened[:, : blocks.size].reshape(-1, d, NUM_CURVES)
    others = np.moveaxis(others, 0, 2)
    # What the parents leave of the curves of each variable, and of their products with the node.
    left = scatter[blocks[:, :, None], blocks[:, None, :]] + np.eye(NUM_CURVES)
    inner = np.linalg.cholesky(left - others @ np.swapaxes(others, 1, 2))
    shared = scatter[blocks, target] - others @ own
    explained = (np.linalg.solve(inner, shared[..., None])[..., 0] ** 2).sum(axis=1)
    rest = (scatter[target, target] - own @ own - explained) / max(n, 1)
    volume = np.log(np.diagonal(inner, axis1=1, axis2=2)).sum(axis=1)
    volume = volume + np.log(np.diagonal(root)).sum()
    return -volume - 0.5 * n * np.log(np.maximum(rest, LEAST_VARIANCE))


def curves(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n c"]:
    """Slope, kinks and bend of every variable, orthonormal one variable at a time."""
    z = np.ascontiguousarray(np.clip(values, -5, 5).T)
    low, middle, high = np.quantile(z, [0.2, 0.5, 0.8], axis=1)[:, :, None]
    raw = np.stack([z, abs(z - middle), abs(z - low), abs(z - high), z**2], axis=1)
    raw -= raw.mean(axis=2, keepdims=True)
    # Rows of noise at the end keep the basis of a variable with few values well defined.
    noise = np.random.default_rng(0).standard_normal((*values.shape, NUM_CURVES))
    noise = np.ascontiguousarray(np.moveaxis(noise, 0, 2))
    # Not by BLAS: for so few columns its threads wait for one another.
    gram, of_noise = (np.einsum("din,djn->dij", table, table) for table in (raw, noise))
    root = np.linalg.cholesky(gram + _NOISE**2 * of_noise)
    basis = np.einsum("dij,djn->din", np.linalg.inv(root), raw)
    return np.moveaxis(basis, 2, 0).reshape(len(values), -1)
