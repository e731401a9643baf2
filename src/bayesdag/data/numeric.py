"""Cells of a column as numbers or as text; of any other column, what to do about it."""

import datetime
import re
import warnings
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesdag.data.kinds import label_of
from bayesdag.errors import BayesdagWarning, InputError

Names = tuple[str, ...]
# What stands for a missing cell among numbers.
MISSING_CODES = frozenset(
    {"?", "-", "--", ".", "*", "x", "na", "n/a", "none", "missing", "unknown", "none given"}
)
_THOUSANDS = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?"
_NO_DECIMAL_COMMA = r"[+-]?\d{1,3}(,\d{3}(,\d{3})+(\.\d*)?|,\d{3}\.\d*)"
# The same with points between thousands and a comma before decimals.
_POINTS = r"[+-]?\d{1,3}(\.\d{3})*(,\d*)?"
_NO_DECIMAL_POINT = r"[+-]?\d{1,3}(\.\d{3}(\.\d{3})+(,\d*)?|\.\d{3},\d*)"
_WAYS_OUT = (
    (
        _THOUSANDS,
        "the commas are thousands separators or decimal points: take them out of the first, pass "
        "decimal=',' (--decimal ,) for the second",
    ),
    (
        r"[+-]?\d*,\d+([eE][+-]?\d+)?",
        "the commas look like decimal points: pass decimal=',' (--decimal ,)",
    ),
    (
        r"[+-]?[$€£¥]\s*[+-]?\d+([.,]\d+)*|[+-]?\d+([.,]\d+)*\s*[%$€£¥]",
        "these look like numbers with a unit: take the unit out, or declare the levels in order",
    ),
    (
        r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|\d{4}-\d{2}|\d{4}-?[Qq][1-4]|\d{1,2}:\d{2}(:\d{2}.*)?",
        "it looks like a date or time: drop it (drop, --drop), or turn it into a number such as "
        "days since a start",
    ),
)


class Cells(NamedTuple):
    """A column as it was read: numbers, or text.

    Attributes:
        numbers: NaN where a cell is missing; None for text.
        labels: text row by row, None where a cell is missing; None for numbers.
        levels: labels in the order in which the type of the column has them, without those that
            do not occur; None where its type says nothing of levels.
        is_ordered: whether that order means something.
        words: the type, where it decides.
    """

    numbers: Float[np.ndarray, " n"] | None
    labels: tuple[str | None, ...] | None = None
    levels: tuple[str, ...] | None = None
    is_ordered: bool = False
    words: str = ""


def cells(column: pd.Series, name: str, names: Names = ()) -> Cells:
    """The cells of a column; complex numbers, dates and what is neither text are refused.

    Args:
        name: of the column.
        names: of all columns: text that names them says what was set, and is no variable.
    """
    dtype = column.dtype
    if pd.api.types.is_complex_dtype(dtype):
        _refuse_complex(name)
    if dtype.kind in "Mm" or isinstance(dtype, pd.PeriodDtype):
        _refuse_dates(column, name)
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(column)
    if pd.api.types.is_bool_dtype(dtype):
        return _booleans(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(dtype):
        return Cells(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _from_objects(column, name, names)


def refuse_text(labels: tuple[str | None, ...], name: str, kind: str) -> None:
    """Refuses text in a column that was declared to hold numbers."""
    for row, text in enumerate(labels, start=1):
        if text is not None and not _is_number(text):
            raise InputError(
                f"column {name!r} is declared {kind} and holds text ({text!r} in row {row}); "
                f"correct the cell, declare the column categorical, or pass na_values={[text]!r} "
                "(--na-values) if it stands for a missing value"
            )


def _categories(column: pd.Series) -> Cells:
    used = column.cat.remove_unused_categories()
    levels = tuple(map(label_of, used.cat.categories))
    labels = tuple(None if pd.isna(value) else label_of(value) for value in column)
    ordered = bool(column.cat.ordered)
    words = f"its type is {'ordered ' * ordered}categories"
    return Cells(None, labels, levels, ordered, words)


def _booleans(numbers: np.ndarray) -> Cells:
    names = ("False", "True")
    labels = tuple(None if np.isnan(x) else names[int(x)] for x in numbers)
    return Cells(numbers, labels, names, words="its cells are true or false")


def _from_objects(column: pd.Series, name: str, names: Names) -> Cells:
    present = column.dropna().tolist()
    if present and all(isinstance(value, bool | np.bool_) for value in present):
        return _booleans(_floats(column))
    if all(isinstance(value, Real | Decimal | np.bool_) for value in present):
        return Cells(_floats(column))
    if any(isinstance(value, complex) for value in present):
        _refuse_complex(name)
    if all(isinstance(value, datetime.date | datetime.time) for value in present):
        _refuse_dates(column, name)
    _refuse_objects(column, name)
    return _from_text(column, name, names)


def _floats(column: pd.Series) -> np.ndarray:
    return np.array([np.nan if pd.isna(value) else _float(value) for value in column])


def _float(value: Any) -> float:
    """The number; integers beyond all floats are refused later, as too large."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _from_text(column: pd.Series, name: str, names: Names) -> Cells:
    """Numbers where all but codes for missing cells are numbers; text where most are not."""
    labels = tuple(None if pd.isna(v) or not label_of(v) else label_of(v) for v in column)
    labels = _without_thousands(labels)
    present = [(row, text) for row, text in enumerate(labels, start=1) if text is not None]
    unreadable = [(row, text) for row, text in present if not _is_number(text)]
    if len(unreadable) < len(present) and {t.lower() for _, t in unreadable} <= MISSING_CODES:
        if unreadable:
            _say_missing(name, unreadable)
        readable = (text is not None and _is_number(text) for text in labels)
        pairs = zip(labels, readable, strict=True)
        return Cells(np.array([float(text or 0) if good else np.nan for text, good in pairs]))
    _refuse_ways_out(unreadable, name, names)
    if present and len(unreadable) < len(present) / 2:
        row, text = unreadable[0]
        raise InputError(
            f"column {name!r} holds text ({text!r} in row {row}) among numbers; correct the cell, "
            f"pass na_values={[text]!r} (--na-values) if it stands for a missing value, or declare "
            f"the column: kinds={{{name!r}: 'categorical'}} (--kinds)"
        )
    return Cells(None, labels)


def _without_thousands(labels: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The same without marks between thousands, where these can be nothing else."""
    grouped = [text for text in labels if text is not None and "," in text]
    if _are(_THOUSANDS, _NO_DECIMAL_COMMA, grouped):
        return tuple(None if text is None else text.replace(",", "") for text in labels)
    marked = [text for text in labels if text is not None and re.search("[.,]", text)]
    if _are(_POINTS, _NO_DECIMAL_POINT, marked):
        return tuple(t if t is None else t.replace(".", "").replace(",", ".") for t in labels)
    return labels


def _are(pattern: str, certain: str, texts: list[str]) -> bool:
    """Whether all texts are numbers of this kind, and one of them can be nothing else."""
    alike = all(re.fullmatch(pattern, text) for text in texts)
    return alike and any(re.fullmatch(certain, text) for text in texts)


def _say_missing(name: str, unreadable: list[tuple[int, str]]) -> None:
    row, text = unreadable[0]
    warnings.warn(
        f"column {name!r} holds {text!r} (row {row}) among numbers; "
        f"{len(unreadable)} such cells are taken as missing",
        BayesdagWarning,
        stacklevel=6,
    )


def _refuse_complex(name: str) -> None:
    raise InputError(
        f"column {name!r} holds complex numbers; pass real and imaginary parts as two columns"
    )


def _refuse_dates(column: pd.Series, name: str) -> None:
    raise InputError(
        f"column {name!r} holds dates or times ({column.dropna().iloc[0]!s}); drop it (drop, "
        "--drop), or turn it into a number such as days since a start"
    )


def _refuse_objects(column: pd.Series, name: str) -> None:
    """Refuses lists, arrays and other things that are neither a number nor a label."""
    for row, value in enumerate(column.tolist(), start=1):
        if np.ndim(value) or isinstance(value, dict | set | bytes):
            raise InputError(
                f"column {name!r} holds a {type(value).__name__} in row {row}; give each cell one "
                "number or label, or drop the column"
            )


def _refuse_ways_out(unreadable: list[tuple[int, str]], name: str, names: Names) -> None:
    """Refuses text that is something else in disguise, with what to do about it."""
    if not unreadable:
        return
    texts = [text for _, text in unreadable]
    ways = (way for pattern, way in _WAYS_OUT if all(re.fullmatch(pattern, t) for t in texts))
    parts = {part.strip() for text in texts for part in re.split("[;,]", text)}
    way_out = next(ways, None)
    if way_out is None and parts <= {"", *names}:
        way_out = "if these columns were set in these rows, pass its name as `interventions`"
    if way_out is not None:
        row, text = unreadable[0]
        raise InputError(f"column {name!r} holds text ({text!r} in row {row}); {way_out}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
