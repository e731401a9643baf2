"""Sortability: how far the scale of the variables alone gives away their order.

In simulated data effects often vary more than their causes and are better predicted from
the rest. A method that sorts by either looks clever there and fails on data in other units.

References:
    Reisach, Seiler, Weichwald: Beware of the simulated DAG! NeurIPS 2021.
    Reisach, Tami, Seiler, Chambaz, Weichwald: A scale-invariant sorting criterion to find a
    causal order in additive noise models. NeurIPS 2023.
"""

import numpy as np
from jaxtyping import Float, Shaped

Values = Float[np.ndarray, "n d"]


def varsortability(values: Values, graph: Shaped[np.ndarray, "d d"]) -> float:
    """Share of directed paths along which the variance grows; 1/2 is chance.

    A pair counts once for each length at which a path connects it, and a tie counts half.
    NaN for a graph without edges.

    >>> float(varsortability(np.array([[0.0, 1.0], [1.0, 3.0]]), np.array([[0, 1], [0, 0]])))
    1.0
    """
    return _share_of_rising_paths(values.var(axis=0), graph)


def r2_sortability(values: Values, graph: Shaped[np.ndarray, "d d"]) -> float:
    """Share of directed paths along which `r_squared` grows; 1/2 is chance.

    Counted as in `varsortability`, but blind to the units of the columns.
    """
    return _share_of_rising_paths(r_squared(values), graph)


def r_squared(values: Values) -> Float[np.ndarray, " d"]:
    """Share of each column's variance that is linear in all the others.

    From the diagonal of the inverse correlation matrix. Its eigenvalues are kept away from
    zero, so that a column determined by others gets 1 and the rest their own number.
    """
    centred = values - values.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    standard = centred / np.where(deviation > 0, deviation, 1.0)
    eigenvalues, vectors = np.linalg.eigh(standard.T @ standard / len(values))
    floor = len(eigenvalues) * np.finfo(np.float64).eps * max(eigenvalues[-1], 1.0)
    precision = (vectors**2 / np.maximum(eigenvalues, floor)).sum(axis=1)
    return np.where(deviation > 0, np.clip(1 - 1 / precision, 0.0, 1.0), 0.0)


def describe(
    deviation: Float[np.ndarray, " d"],
    explained: Float[np.ndarray, " d"],
    names: tuple[str, ...],
    *,
    standardised: bool,
) -> str:
    """In words: how unequal the scales are, and what a method could make of it.

    Without the true graph nobody can say whether the order of the scales is the causal one;
    only that it could be used, and whether it was.

    Args:
        deviation: standard deviation of each column.
        explained: `r_squared` of each column.
        names: one name a column.
        standardised: whether the method sees the columns in units of their deviation.
    """
    ratio = float(deviation.max() / deviation.min()) if deviation.min() > 0 else np.inf
    facts = (
        f"Standard deviations run {_range(deviation, names)}, a ratio of {ratio:.3g}. "
        f"R² of each column on all others runs {_range(explained, names)}."
    )
    advice = (_scale_advice(ratio, standardised), _fit_advice(float(np.ptp(explained))))
    return " ".join((facts, *filter(None, advice)))


def _range(numbers: np.ndarray, names: tuple[str, ...]) -> str:
    low, high = int(numbers.argmin()), int(numbers.argmax())
    return f"from {numbers[low]:.3g} ({names[low]!r}) to {numbers[high]:.3g} ({names[high]!r})"


def _scale_advice(ratio: float, standardised: bool) -> str:
    if standardised:
        return (
            "A method could order the variables by their scale alone; results here are from "
            "standardised columns, so units of measurement play no part in them."
        )
    if ratio < 1.1:
        return "The scales are nearly equal, so that they cannot give an order away."
    return (
        "A method could order the variables by their scale alone, and the columns are not "
        "standardised: fit again with scaling='standardise' and see whether the answer stays."
    )


def _fit_advice(spread: float) -> str:
    if spread < 0.3:
        return ""
    return (
        "R² does not depend on units and differs between the columns: in simulated data this "
        "too can give the order away, so compare with the method 'sort_r2' before "
        "praising another."
    )


def _share_of_rising_paths(
    criterion: Float[np.ndarray, " d"], graph: Shaped[np.ndarray, "d d"]
) -> float:
    start, end = criterion[:, None], criterion[None, :]
    tied = np.isclose(start, end, rtol=1e-9, atol=0.0)
    credit = np.where(tied, 0.5, end > start)
    edges = (graph != 0).astype(np.float64)
    connected, total, rising = edges, 0.0, 0.0
    for _ in range(len(edges)):
        total += connected.sum()
        rising += (connected * credit).sum()
        connected = (connected @ edges > 0).astype(np.float64)
    return float(rising / total) if total else float("nan")
