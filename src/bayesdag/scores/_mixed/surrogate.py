"""The surrogate of the mixed score: indicators and curves as if they were jointly Gaussian.

One matrix of sums of products, then a family costs two determinants, with a penalty of half the
log number of rows for every parameter (Andrews, Ramsey & Cooper, 2019, "Learning high-dimensional
directed acyclic graphs with mixed data-types"). It says where a search should begin.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.scores._mixed.features import FeatureTable, MixedColumns

_RIDGE = 1e-4  # of a variance: indicators of all levels but one may determine one another
_MOST_NUMBERS = 4_000_000


class DegenerateMoments(NamedTuple):
    """Covariances of all features for every node's rows, and the features of each column.

    Attributes:
        group: entry of each node.
        covariance: by entry; the last feature is padding, with variance 1.
        num_rows: by entry.
        as_node: features that stand for a column as a target.
        as_parent: features that stand for it as a parent.
    """

    group: Int[np.ndarray, " d"]
    covariance: Float[np.ndarray, "g q q"]
    num_rows: Int[np.ndarray, " g"]
    as_node: tuple[Int[np.ndarray, " _"], ...]
    as_parent: tuple[Int[np.ndarray, " _"], ...]


def moments_of(columns: MixedColumns) -> DegenerateMoments:
    """Moments of the columns on their last scale."""
    table: FeatureTable = columns.tables[-1]
    patterns, group = np.unique(columns.observed, axis=1, return_inverse=True)
    read = table.values[:, 1:]
    q = read.shape[1]
    covariance = np.tile(np.eye(q), (patterns.shape[1], 1, 1))
    for entry, counted in enumerate(patterns.T):
        if counted.sum() > 1:
            found = np.cov(read[counted], rowvar=False, bias=True)
            found = found + np.diag(_RIDGE * np.maximum(np.diag(found), _RIDGE))
            found[-1, -1] = 1.0
            covariance[entry] = found
    every = range(len(columns.kinds))
    as_node = tuple(
        table.curves[j][: int(columns.num_levels[j]) - 1] - 1
        if columns.is_level[j]
        else table.lines[j][:1] - 1
        for j in every
    )
    as_parent = tuple(as_node[j] if columns.is_level[j] else table.curves[j] - 1 for j in every)
    return DegenerateMoments(
        group.reshape(-1), covariance, patterns.sum(axis=0), as_node, as_parent
    )


class DegenerateGaussian:
    """Penalised log likelihood of indicators and curves taken for Gaussian variables."""

    def log_evidence(
        self, stats: DegenerateMoments, node: int, parents: Bool[np.ndarray, "m d"]
    ) -> Float[np.ndarray, " m"]:
        """Up to a constant of the node, for m parent sets."""
        return self.of_families(stats, np.full(len(parents), node), parents)

    def of_families(
        self,
        stats: DegenerateMoments,
        nodes: Int[np.ndarray, " m"],
        parents: Bool[np.ndarray, "m d"],
    ) -> Float[np.ndarray, " m"]:
        """The same for families of several nodes."""
        chosen = [
            np.concatenate([[], *(stats.as_parent[j] for j in np.flatnonzero(one))]).astype(int)
            for one in parents
        ]
        targets = [stats.as_node[node] for node in nodes.tolist()]
        both = [np.concatenate(pair) for pair in zip(chosen, targets, strict=True)]
        entry = stats.group[nodes]
        left = _log_determinants(stats, entry, both) - _log_determinants(stats, entry, chosen)
        size = np.array([len(a) * len(b) for a, b in zip(chosen, targets, strict=True)])
        n = stats.num_rows[entry]
        return -0.5 * n * left - 0.5 * np.log(np.maximum(n, 2)) * size


def _log_determinants(
    stats: DegenerateMoments, entry: Int[np.ndarray, " m"], sets: list[Int[np.ndarray, " _"]]
) -> Float[np.ndarray, " m"]:
    """Of the covariances of sets of features, padded to one size."""
    result, sizes = np.empty(len(sets)), np.array([len(one) for one in sets])
    order = np.argsort(sizes, kind="stable")
    while len(order):
        width = max(1, int(sizes[order[-1]]))
        most = max(1, _MOST_NUMBERS // width**2)
        piece, order = order[-most:], order[:-most]
        index = np.full((len(piece), width), stats.covariance.shape[1] - 1)
        for row, k in enumerate(piece):
            index[row, : sizes[k]] = sets[k]
        found = stats.covariance[entry[piece][:, None, None], index[:, :, None], index[:, None, :]]
        # Padding repeats one feature: independent copies of it, each of variance 1.
        is_padding = np.arange(width) >= sizes[piece][:, None]
        either = is_padding[:, :, None] | is_padding[:, None, :]
        found = np.where(either, np.eye(width), found)
        result[piece] = np.linalg.slogdet(found)[1]
    return result
