"""A first completion of a table with gaps: chained regressions with predictive mean matching.

Column by column, cells that were not measured get the value of a row whose prediction from the
other columns is near: a value that occurs, whatever the kind of the column. It is where the
imputation from the model itself starts, and no more than that.

References:
    van Buuren & Groothuis-Oudshoorn (2011), mice: Multivariate imputation by chained
        equations in R, Journal of Statistical Software.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.data.kinds import Kind

NUM_SWEEPS = 10
NUM_DONORS = 5
# Levels beyond which a categorical column enters regressions by its code.
MOST_INDICATORS = 12
_RIDGE = 1e-3


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
            whole[gap, j] = whole[~gap, j][donors]
            features[j] = _features(whole[:, j], kinds[j])
    return whole


def _features(column: np.ndarray, kind: Kind) -> Float[np.ndarray, "n k"]:
    """What a column gives to the regressions of others: indicators, or a curve of its values."""
    if _has_indicators(kind):
        return (column[:, None] == np.arange(1, len(kind.levels))).astype(float)
    centred = column - column.mean()
    scaled = centred / max(float(centred.std()), 1e-300)
    bend = scaled**2 - 1
    return np.column_stack([scaled, np.clip(bend, -3, 3)])


def _targets(column: np.ndarray, kind: Kind) -> Float[np.ndarray, "n k"]:
    """What is predicted of a column: probabilities of its levels, or its values."""
    if _has_indicators(kind):
        return (column[:, None] == np.arange(len(kind.levels))).astype(float)
    return ((column - column.mean()) / max(float(column.std()), 1e-300))[:, None]


def _has_indicators(kind: Kind) -> bool:
    return kind.name == "categorical" and len(kind.levels) <= MOST_INDICATORS


def _donors(
    rng: np.random.Generator,
    features: Float[np.ndarray, "n p"],
    targets: Float[np.ndarray, "n k"],
    gap: Bool[np.ndarray, " n"],
) -> Int[np.ndarray, " m"]:
    """For every gap the number of a measured row whose prediction is near.

    Weights are drawn from their posterior for rows with a gap, and are the best ones for the
    others, so that different completions differ by as much as is unknown.
    """
    from scipy.spatial import KDTree

    design = np.column_stack([np.ones(len(features)), features])
    known, response = design[~gap], targets[~gap]
    gram = known.T @ known + _RIDGE * len(known) * np.eye(design.shape[1])
    inverse = np.linalg.inv(gram)
    best = inverse @ (known.T @ response)
    freedom = max(1, len(known) - design.shape[1])
    spread = np.sqrt(((response - known @ best) ** 2).sum(axis=0) / freedom)
    root = np.linalg.cholesky((inverse + inverse.T) / 2)
    drawn = best + root @ rng.normal(size=best.shape) * spread
    num = min(NUM_DONORS, len(known))
    _, near = KDTree(known @ best).query(design[gap] @ drawn, k=num)
    near = np.asarray(near).reshape(int(gap.sum()), num)
    return near[np.arange(len(near)), rng.integers(num, size=len(near))]
