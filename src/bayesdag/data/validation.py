"""Checks of a table before causal discovery, each with what to do about a failure.

Refusals are for data from which no method could learn; warnings are for data that can be
used but that a careful analyst would look at first. Rows are counted from 1.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag.data import indicators
from bayesdag.data.dependence import Dependences
from bayesdag.data.kind_rules import identifier_words
from bayesdag.data.kinds import CONTINUOUS, Kind
from bayesdag.errors import BayesdagWarning, InputError

NEAR_COPY = 0.999
VERY_SKEWED = 3.0
ROWS_PER_VARIABLE = 10
_EPSILON = float(np.finfo(np.float64).eps)
_LARGEST = 1e70  # squares of products of two columns are summed

_DEPENDENCE = (
    "the data cannot say which way arrows between them point, nor on which of them others act: "
    "drop those that you know to be computed from the others"
)

Names = tuple[str, ...]
Values = Float[np.ndarray, "n d"]
Mask = Bool[np.ndarray, "n d"]


def refuse_bad_form(
    values: Shaped[np.ndarray, "..."],
    names: Names,
    mask: Shaped[np.ndarray, "..."] | None,
    missing: Shaped[np.ndarray, "..."] | None = None,
) -> None:
    """Refuses what is not a finite table with a name for each column."""
    if values.ndim != 2:
        raise InputError(f"the values have shape {values.shape}; a Dataset needs rows and columns")
    if len(names) != values.shape[1]:
        raise InputError(
            f"there are {len(names)} names for {values.shape[1]} columns; name every column once"
        )
    if mask is not None and mask.shape != values.shape:
        raise InputError(
            f"interventions have shape {mask.shape} and the data {values.shape}; "
            "pass one True or False for each cell"
        )
    if missing is not None and missing.shape != values.shape:
        raise InputError(
            f"the missing cells have shape {missing.shape} and the data {values.shape}; "
            "pass one True or False for each cell"
        )
    refuse_bad_names(names)
    if min(values.shape) < 2:
        raise InputError(
            f"the data have {_plural(values.shape[0], 'row')} and "
            f"{_plural(values.shape[1], 'column')}; at least 2 of each are needed"
        )
    refuse_not_finite(values, names)


def refuse_bad_names(names: Names) -> None:
    """Refuses empty and repeated column names."""
    for position, name in enumerate(names):
        if not name or name.startswith("Unnamed: "):
            raise InputError(
                f"column {position + 1} has no name; name it, or remove it if it labels the rows"
            )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        places = " and ".join(str(j + 1) for j, name in enumerate(names) if name == repeated[0])
        raise InputError(
            f"columns {places} are both called {repeated[0]!r}; give each column its own name"
        )


def check(
    values: Values,
    names: Names,
    mask: Mask | None = None,
    missing: Mask | None = None,
    kinds: Sequence[Kind] | None = None,
) -> None:
    """Refuses data no method could learn from; warns of what may be an artefact."""
    measured = np.array([kind.name == "continuous" for kind in kinds or (CONTINUOUS,) * len(names)])
    measured = measured[: len(names)]
    _refuse_constants(values, names)
    correlation = np.triu(_correlation(values, missing), k=1)
    _refuse_copies(values, names, correlation, missing)
    _refuse_renamed_levels(values, names, ~measured, missing)
    for message in (
        *_too_few_rows(values),
        *_row_numbers(values, names),
        *_identifiers(values, names, measured, missing),
        *_near_copies(values, names, correlation, measured & (missing is None)),
        *_very_skewed(values, names, measured),
        *_never_observed(values, names, mask),
        *indicators.words(
            names, indicators.exclusive(values, (kinds or ())[: len(names)], missing)
        ),
    ):
        warnings.warn(message, BayesdagWarning, stacklevel=3)


def _correlation(values: Values, missing: Mask | None) -> Float[np.ndarray, "d d"]:
    """Of all pairs of columns, in the rows in which both were measured."""
    if missing is None:
        return np.corrcoef(values, rowvar=False)
    import pandas

    found = pandas.DataFrame(np.where(missing, np.nan, values)).corr(min_periods=3)
    return found.fillna(0.0).to_numpy()


def warn_of_dependences(found: Dependences) -> None:
    """Warns of columns that determine one another."""
    for sentence in found.describe():
        warnings.warn(f"{sentence}; {_DEPENDENCE}", BayesdagWarning, stacklevel=3)


def skewness(values: Values) -> Float[np.ndarray, " d"]:
    """Third standardised moment of each column; 0 for a constant."""
    centred = values - values.mean(axis=0)
    squared = centred**2
    deviation = np.sqrt(squared.mean(axis=0))
    # Not `centred**3`, which numpy computes ten times slower.
    third = np.einsum("nd,nd->d", squared, centred) / len(values)
    return third / np.where(deviation > 0, deviation, 1.0) ** 3


def refuse_not_finite(values: np.ndarray, names: Names) -> None:
    """Refuses missing values, infinities and numbers whose fourth power would be one."""
    if values.min() > -_LARGEST and values.max() < _LARGEST:  # False for NaN too.
        return
    missing = np.isnan(values)
    if missing.any():
        counts = missing.sum(axis=0)
        found = [f"{names[j]!r}: {counts[j]}" for j in np.flatnonzero(counts).tolist()]
        row = int(np.argmax(missing.any(axis=1)))
        raise InputError(
            f"the data have {_plural(int(counts.sum()), 'missing value')} ({_some(found)}; "
            f"the first in row {row + 1}); pass the table itself to `bayesdag.read`, which takes "
            "gaps, or placeholders with `missing`"
        )
    row, column = np.argwhere(np.abs(values) >= _LARGEST)[0].tolist()
    infinite = np.isinf(values[row, column])
    remedy = "replace it or drop the row" if infinite else "measure it in a larger unit"
    raise InputError(
        f"column {names[column]!r} holds {values[row, column]} in row {row + 1}, too large "
        f"to compute with; {remedy}"
    )


def _refuse_constants(values: np.ndarray, names: Names) -> None:
    # 0.1 + 0.2 and 0.3 differ in the last digit: that is no variation.
    low, high = values.min(axis=0), values.max(axis=0)
    rounding = 8 * _EPSILON * np.maximum(np.abs(low), np.abs(high))
    constant = np.flatnonzero(high - low <= np.maximum(rounding, 1 / _LARGEST)).tolist()
    if constant:
        spread = [high[j] - low[j] for j in constant]
        found = [
            f"{names[j]!r} is always {values[0, j]:g}"
            + f", but for differences of {width:.2g}, too small to compute with" * bool(width)
            for j, width in zip(constant, spread, strict=True)
        ]
        raise InputError(
            f"the data have {_plural(len(constant), 'constant column')} ({_some(found)}); a "
            "constant cannot be a cause or an effect: drop it"
        )


def _refuse_copies(
    values: np.ndarray, names: Names, correlation: np.ndarray, missing: np.ndarray | None = None
) -> None:
    """Refuses columns that equal another, also in another unit or with another zero."""
    for i, j in np.argwhere(np.abs(correlation) > 1 - 1e-9).tolist():
        both = slice(None) if missing is None else ~(missing[:, i] | missing[:, j])
        x, y = values[both, i], values[both, j]
        if np.array_equal(x, y):
            relation = "is a copy of"
        elif len(x) > 2 and _is_affine(x, y):
            relation = "is a copy in other units (an exact linear function) of"
        else:
            continue
        raise InputError(
            f"column {names[j]!r} {relation} {names[i]!r}; no data can tell the causes and "
            "effects of the two apart: drop one of them"
        )


def _refuse_renamed_levels(
    values: np.ndarray, names: Names, coded: np.ndarray, missing: np.ndarray | None
) -> None:
    """Refuses columns of levels that are those of another column under other names."""
    places = np.flatnonzero(coded).tolist()
    for i, j in ((i, j) for i in places for j in places if i < j):
        both = slice(None) if missing is None else ~(missing[:, i] | missing[:, j])
        x, y = values[both, i], values[both, j]
        num = len(np.unique(x))
        if num < 3 or num != len(np.unique(y)) or len(x) <= 2 * num:
            continue
        if len(np.unique(np.column_stack([x, y]), axis=0)) == num:
            raise InputError(
                f"column {names[j]!r} names the levels of {names[i]!r} differently; no data can "
                "tell the causes and effects of the two apart: drop one of them"
            )


def _is_affine(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether y = a + b x for some a and b, up to the rounding of x and y themselves."""
    (x, rounding_x), (y, rounding_y) = _standard(x), _standard(y)
    difference = np.abs(x - np.sign(np.dot(x, y)) * y).max()
    return bool(difference <= 8 * (rounding_x + rounding_y))


def _standard(x: np.ndarray) -> tuple[np.ndarray, float]:
    centred = x - x.mean()
    centred = centred - centred.mean()
    deviation = centred.std()
    return centred / deviation, float(_EPSILON * np.abs(x).max() / deviation)


def _too_few_rows(values: np.ndarray) -> Iterator[str]:
    num_rows, num_variables = values.shape
    if num_rows < ROWS_PER_VARIABLE * num_variables:
        yield (
            f"{num_rows} rows are few for {num_variables} variables (fewer than "
            f"{ROWS_PER_VARIABLE} each); expect many edges to stay uncertain"
        )


def _row_numbers(values: np.ndarray, names: Names) -> Iterator[str]:
    num_rows = len(values)
    if num_rows < ROWS_PER_VARIABLE:
        return
    # Few columns end as far from their beginning as a counter does: look only at those.
    for column in np.flatnonzero(values[-1] - values[0] == num_rows - 1).tolist():
        if (np.diff(values[:, column]) == 1).all():
            yield (
                f"column {names[column]!r} grows by one from row to row; drop it if it only "
                "numbers the rows"
            )


def _identifiers(
    values: np.ndarray, names: Names, measured: np.ndarray, missing: np.ndarray | None
) -> Iterator[str]:
    """Whole numbers that name the rows in another order than that of the table."""
    for column in np.flatnonzero(measured).tolist():
        present = values[:, column] if missing is None else values[~missing[:, column], column]
        if not (np.diff(present) == 1).all():
            yield from filter(None, (identifier_words(present, names[column]),))


def _near_copies(
    values: np.ndarray, names: Names, correlation: np.ndarray, ranked: np.ndarray
) -> Iterator[str]:
    """Pairs with a correlation, or of measurements one of ranks, of almost 1."""
    near = np.where(np.abs(correlation) > NEAR_COPY, correlation, 0.0)
    by_rank = np.where(near == 0, _rank_correlation(values, ranked), 0.0)
    pairs = np.argwhere((near != 0) | (np.abs(by_rank) > NEAR_COPY)).tolist()
    found = [
        f"{names[i]!r} and {names[j]!r}: "
        + (f"{near[i, j]:.5f}" if near[i, j] else f"{by_rank[i, j]:.5f} of ranks")
        for i, j in pairs
    ]
    if found and len(values) > 2:
        yield (
            f"columns are almost copies of each other (correlation of {_some(found)}); the data "
            "can hardly tell their causes and effects apart: consider dropping one"
        )


def _rank_correlation(values: np.ndarray, ranked: np.ndarray) -> np.ndarray:
    """Above the diagonal, of measurements whose ranks are not those of a function exactly."""
    found = np.zeros((values.shape[1],) * 2)
    if len(values) < ROWS_PER_VARIABLE or ranked.sum() < 2:
        return found
    places = np.flatnonzero(ranked)
    ranks = np.argsort(np.argsort(values[:, places], axis=0, kind="stable"), axis=0, kind="stable")
    inner = np.triu(np.corrcoef(ranks, rowvar=False), k=1)
    # An exact function is named as such where relations are looked for.
    found[np.ix_(places, places)] = np.where(np.abs(inner) < 1 - 1e-12, inner, 0.0)
    return found


def _very_skewed(values: np.ndarray, names: Names, measured: np.ndarray) -> Iterator[str]:
    skewed = np.where(measured, skewness(values), 0.0)
    for column in np.flatnonzero(np.abs(skewed) > VERY_SKEWED).tolist():
        remedy = (
            f"it is positive, so consider its logarithm (log, --log {names[column]})"
            if values[:, column].min() > 0
            else "consider a transformation, and look for outliers"
        )
        yield f"column {names[column]!r} is very skewed (skewness {skewed[column]:.1f}); {remedy}"


def _never_observed(values: np.ndarray, names: Names, mask: np.ndarray | None) -> Iterator[str]:
    if mask is None:
        return
    for column in np.flatnonzero(mask.any(axis=0)).tolist():
        free = values[~mask[:, column], column]
        if free.size == 0:
            where = "is set in every row"
        elif np.ptp(free) == 0:
            where = f"is {free[0]:g} in every row in which it was not set"
        else:
            continue
        yield f"column {names[column]!r} {where}; the data say nothing of its causes"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _some(found: Iterable[str]) -> str:
    """The first five, and how many more there are."""
    found = list(found)
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return ", ".join(found[:5]) + more
