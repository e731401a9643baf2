"""A first completion of a table with gaps: chained regression trees.

Column by column, cells that were not measured get the value of a measured row in the same leaf of
a tree that predicts the column from the others: a value that occurs, whatever the kind of the
column. It is where the imputation from the model itself starts, and no more than that; but a start
that knows lines alone takes nonlinear models many completions to leave.

References:
    Burgette & Reiter (2010), Multiple imputation for missing data via sequential regression
        trees, American Journal of Epidemiology.
    van Buuren & Groothuis-Oudshoorn (2011), mice: Multivariate imputation by chained
        equations in R, Journal of Statistical Software.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.data.kinds import Kind

NUM_SWEEPS = 6
SMALLEST_LEAF = 8  # rows
MOST_ROWS = 2000  # that a tree is grown on
# Levels beyond which a categorical column enters trees by its code.
MOST_INDICATORS = 12
# Features that a split chooses from: so many of all, so that trees differ, and not more than these.
_FRACTION, _MOST_FEATURES = 0.67, 20


def complete(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    missing: Bool[np.ndarray, "n d"],
    kinds: Sequence[Kind],
) -> Float[np.ndarray, "n d"]:
    """The table with a value for every missing cell; measured cells stay as they are."""
    whole = np.array(values)
    gappy = np.argsort(missing.sum(axis=0), kind="stable")
    gappy = [j for j in gappy.tolist() if missing[:, j].any()]
    for j in gappy:
        measured = values[~missing[:, j], j]
        whole[missing[:, j], j] = rng.choice(measured, size=int(missing[:, j].sum()))
    features = [_features(whole[:, j], kind) for j, kind in enumerate(kinds)]
    for _ in range(NUM_SWEEPS):
        for j in gappy:
            others = np.hstack([block for i, block in enumerate(features) if i != j])
            gap = missing[:, j]
            donors = _donors(rng, others, _targets(whole[:, j], kinds[j]), gap)
            whole[gap, j] = whole[donors, j]
            features[j] = _features(whole[:, j], kinds[j])
    return whole


def _features(column: np.ndarray, kind: Kind) -> Float[np.ndarray, "n k"]:
    """What a column gives to the trees of others: indicators, or its values."""
    if _has_indicators(kind):
        return (column[:, None] == np.arange(1, len(kind.levels))).astype(float)
    return column[:, None]


def _targets(column: np.ndarray, kind: Kind) -> Float[np.ndarray, "n k"]:
    """What is predicted of a column: indicators of its levels, or its values."""
    if _has_indicators(kind):
        return (column[:, None] == np.arange(len(kind.levels))).astype(float)
    return column[:, None] - column.mean()


def _has_indicators(kind: Kind) -> bool:
    return kind.name == "categorical" and len(kind.levels) <= MOST_INDICATORS


def _donors(
    rng: np.random.Generator,
    features: Float[np.ndarray, "n p"],
    targets: Float[np.ndarray, "n k"],
    gap: Bool[np.ndarray, " n"],
) -> Int[np.ndarray, " m"]:
    """For every gap the number of a measured row in the same leaf.

    The tree is grown on a bootstrap sample, so that different completions differ by as much as is
    unknown.
    """
    measured = np.flatnonzero(~gap)
    sample = rng.choice(measured, size=min(len(measured), MOST_ROWS))
    donors = np.empty(len(gap), dtype=np.int64)
    leaves = [(sample, np.flatnonzero(gap))]
    while leaves:
        rows, gaps = leaves.pop()
        if not len(gaps):
            continue
        split = _split(rng, features[rows], targets[rows])
        if split is None:
            donors[gaps] = rng.choice(rows, size=len(gaps))
            continue
        chosen, threshold = split
        below, gaps_below = (features[of, chosen] <= threshold for of in (rows, gaps))
        leaves.append((rows[below], gaps[gaps_below]))
        leaves.append((rows[~below], gaps[~gaps_below]))
    return donors[gap]


def _split(
    rng: np.random.Generator, features: Float[np.ndarray, "m p"], targets: Float[np.ndarray, "m k"]
) -> tuple[int, float] | None:
    """Feature and threshold that leave the least variance, or None in a leaf."""
    m, p = features.shape
    if m < 2 * SMALLEST_LEAF:
        return None
    tried = rng.permutation(p)[: min(_MOST_FEATURES, max(1, round(_FRACTION * p)))]
    order = np.argsort(features[:, tried], axis=0, kind="stable")
    ordered = np.take_along_axis(features[:, tried], order, axis=0)
    # Splits after row s - 1: both sides keep a leaf.
    sizes = np.arange(SMALLEST_LEAF, m - SMALLEST_LEAF + 1)
    sums = targets[order].cumsum(axis=0)
    left, total = sums[sizes - 1], sums[-1]
    explained = (left**2).sum(axis=2) / sizes[:, None]
    explained += ((total - left) ** 2).sum(axis=2) / (m - sizes)[:, None]
    explained = np.where(ordered[sizes] > ordered[sizes - 1], explained, -np.inf)
    place, which = divmod(int(explained.argmax()), len(tried))
    if np.isneginf(explained[place, which]):
        return None
    at = sizes[place]
    # The value below, not the middle, which may round to the value above.
    return int(tried[which]), float(ordered[at - 1, which])
