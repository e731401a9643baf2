"""Is this table fit for causal discovery, and if not, what is to be done?

Refusals are for data from which no method could learn; warnings are for data that can be
used but that a careful analyst would look at first.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.types import BayesdagWarning, InputError

NEAR_DUPLICATE = 0.999
VERY_SKEWED = 3.0
ROWS_PER_VARIABLE = 10


def refuse_bad_form(values: np.ndarray, names: Sequence[str], mask: np.ndarray | None) -> None:
    """Refuses what is not a finite table with a name for each column."""
    if values.ndim != 2:
        raise InputError(f"the values have shape {values.shape}; a Dataset needs rows and columns")
    if len(names) != values.shape[1]:
        raise InputError(f"there are {len(names)} names for {values.shape[1]} columns")
    if mask is not None and mask.shape != values.shape:
        raise InputError(f"interventions have shape {mask.shape} and the data {values.shape}")
    refuse_bad_names(names)
    refuse_not_finite(values, names)


def refuse_bad_names(names: Sequence[str]) -> None:
    """Refuses empty and repeated column names."""
    empty = [j + 1 for j, name in enumerate(names) if not name or name.startswith("Unnamed: ")]
    if empty:
        raise InputError(f"column {empty[0]} has no name; name it, or remove it if it labels rows")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        places = [str(j + 1) for j, name in enumerate(names) if name == repeated[0]]
        raise InputError(
            f"{_listed(repeated)} is the name of several columns (columns {', '.join(places)}); "
            "give each its own name"
        )


def refuse_not_finite(values: Float[np.ndarray, "n d"], names: Sequence[str]) -> None:
    """Refuses missing and infinite values."""
    if np.isfinite(values).all():
        return
    missing = np.isnan(values)
    if missing.any():
        counts = {names[j]: int(missing[:, j].sum()) for j in np.flatnonzero(missing.any(axis=0))}
        row = int(np.flatnonzero(missing.any(axis=1))[0])
        found = ", ".join(f"{name!r}: {count}" for name, count in list(counts.items())[:5])
        raise InputError(
            f"the data have {missing.sum()} missing values ({found}; the first is in row "
            f"{row + 1}); drop these rows or impute them first"
        )
    row, column = np.argwhere(np.isinf(values))[0]
    raise InputError(
        f"column {names[column]!r} holds {values[row, column]} in row {row + 1}; replace it "
        "by a finite number or drop the row"
    )


def refuse(values: Float[np.ndarray, "n d"], names: Sequence[str]) -> None:
    """Refuses data from which no method could learn a graph."""
    refuse_bad_names(names)
    num_rows, num_variables = values.shape
    if num_variables < 2:
        raise InputError(f"the data have {num_variables} column; a graph needs at least two")
    if num_rows < 2:
        raise InputError(f"the data have {num_rows} rows; at least two are needed")
    refuse_not_finite(values, names)
    _refuse_constants(values, names)
    _refuse_copies(values, names)


def warn(
    values: Float[np.ndarray, "n d"], names: Sequence[str], mask: Bool[np.ndarray, "n d"] | None
) -> None:
    """Warns of what the data are too few for, and of what may be an artefact."""
    for message in (
        *_too_few_rows(values),
        *_row_numbers(values, names),
        *_near_copies(values, names),
        *_very_skewed(values, names),
        *_never_observed(values, names, mask),
    ):
        warnings.warn(message, BayesdagWarning, stacklevel=3)


def skewness(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " d"]:
    """Third standardised moment of each column; 0 for a constant."""
    centred = values - values.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    return ((centred / np.where(deviation > 0, deviation, 1.0)) ** 3).mean(axis=0)


def _refuse_constants(values: np.ndarray, names: Sequence[str]) -> None:
    spread = np.ptp(values, axis=0)
    rounding = 8 * np.finfo(np.float64).eps * np.abs(values).max(axis=0)
    constant = np.flatnonzero(spread <= rounding)
    if constant.size:
        first = constant[0]
        raise InputError(
            f"column {_listed(names[j] for j in constant)} is constant (always "
            f"{values[0, first]:g}); a constant cannot be a cause or an effect: drop it"
        )


def _refuse_copies(values: np.ndarray, names: Sequence[str]) -> None:
    correlation = _correlation(values)
    for column in range(1, len(names)):
        earlier = np.flatnonzero(1 - np.abs(correlation[:column, column]) < 1e-9)
        # Copies of copies are copies of the first one: one comparison a column is enough.
        if earlier.size and _is_copy(values[:, earlier[0]], values[:, column]):
            relation = (
                "is a copy of"
                if np.array_equal(values[:, column], values[:, earlier[0]])
                else "is an exact linear function of"
            )
            raise InputError(
                f"column {names[column]!r} {relation} {names[earlier[0]]!r}; no data can tell "
                "their causes and effects apart: drop one of them"
            )


def _is_copy(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y = a + b x for some a and b, up to the rounding of x and y themselves."""
    (x, noise_x), (y, noise_y) = _standard(x), _standard(y)
    sign = np.sign(np.dot(x, y))
    return bool(np.abs(x - sign * y).max() <= 8 * (noise_x + noise_y))


def _standard(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Standardised column, and the rounding error that its values carry."""
    centred = x - x.mean()
    deviation = centred.std()
    return centred / deviation, float(np.finfo(np.float64).eps * np.abs(x).max() / deviation)


def _correlation(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean(axis=0)
    standard = centred / centred.std(axis=0)
    return standard.T @ standard / len(values)


def _too_few_rows(values: np.ndarray) -> Iterator[str]:
    num_rows, num_variables = values.shape
    if num_rows < ROWS_PER_VARIABLE * num_variables:
        yield (
            f"{num_rows} rows are few for {num_variables} variables (fewer than "
            f"{ROWS_PER_VARIABLE} each); expect many edges to stay uncertain"
        )


def _row_numbers(values: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    counts = np.arange(len(values), dtype=np.float64)[:, None]
    steps = values - values[:1]
    for column in np.flatnonzero((steps == counts).all(axis=0)):
        if len(values) >= 10:
            yield f"column {names[column]!r} counts the rows; drop it unless it was measured"


def _near_copies(values: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    correlation = np.triu(_correlation(values), k=1)
    pairs = np.argwhere(np.abs(correlation) > NEAR_DUPLICATE)
    if pairs.size:
        i, j = pairs[np.argmax(np.abs(correlation[tuple(pairs.T)]))]
        more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
        yield (
            f"columns {names[i]!r} and {names[j]!r} are almost copies of each other, correlation "
            f"{correlation[i, j]:.5f}{more}; edges to and from them cannot be told apart well"
        )


def _very_skewed(values: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    skewed = skewness(values)
    for column in np.flatnonzero(np.abs(skewed) > VERY_SKEWED):
        remedy = (
            "it is positive, so consider its logarithm"
            if values[:, column].min() > 0
            else "consider a transformation, and look for outliers"
        )
        yield f"column {names[column]!r} is very skewed (skewness {skewed[column]:.1f}); {remedy}"


def _never_observed(
    values: np.ndarray, names: Sequence[str], mask: np.ndarray | None
) -> Iterator[str]:
    if mask is None:
        return
    for column in np.flatnonzero(mask.any(axis=0)):
        free = values[~mask[:, column], column]
        if free.size == 0:
            yield (
                f"column {names[column]!r} is set in every row; the data say nothing of its causes"
            )
        elif np.ptp(free) == 0:
            yield (
                f"column {names[column]!r} never varies where it was not set (always {free[0]:g}); "
                "the data say nothing of its causes"
            )


def _listed(names: Iterable[str]) -> str:
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - 5} more" if len(quoted) > 5 else ""
    return ", ".join(quoted[:5]) + more
