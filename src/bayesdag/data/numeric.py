"""Columns of numbers; of any other, what it holds and what to do about it."""

import datetime
import re
from decimal import Decimal
from numbers import Real

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesdag.errors import InputError

Names = tuple[str, ...]
_MISSING_CODES = frozenset({"?", "-", "--", ".", "*", "x", "missing", "unknown", "none given"})
_WAYS_OUT = (
    (
        r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?",
        "the commas look like thousands separators: read the file with pandas and thousands=','",
    ),
    (
        r"[+-]?\d{1,3}(\.\d{3})+,\d*",
        "read the file with pandas, decimal=',' and thousands='.'",
    ),
    (
        r"[+-]?\d*,\d+([eE][+-]?\d+)?",
        "the commas look like decimal points: read the file with pandas and decimal=','",
    ),
    (
        r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*",
        "it looks like a date: drop it, or turn it into a number such as days since a start",
    ),
)


def numbers(table: pd.DataFrame) -> Float[np.ndarray, "n d"]:
    """All columns as float64, missing values as NaN; anything else is refused."""
    names = tuple(table.columns)
    values = np.empty(table.shape)
    for position, name in enumerate(names):
        values[:, position] = _column(table.iloc[:, position], name, names)
    return values


def _column(column: pd.Series, name: str, names: Names) -> np.ndarray:
    dtype = column.dtype
    if pd.api.types.is_complex_dtype(dtype):
        _refuse_complex(name)
    if dtype.kind in "Mm" or isinstance(dtype, pd.PeriodDtype):
        _refuse_dates(column, name)
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return _from_objects(column, name, names)


def _from_objects(column: pd.Series, name: str, names: Names) -> np.ndarray:
    present = column.dropna().tolist()
    categories = isinstance(column.dtype, pd.CategoricalDtype)
    if not categories and all(isinstance(value, Real | Decimal | np.bool_) for value in present):
        return np.array([np.nan if pd.isna(value) else float(value) for value in column])
    if any(isinstance(value, complex) for value in present):
        _refuse_complex(name)
    if all(isinstance(value, datetime.date | datetime.time) for value in present):
        _refuse_dates(column, name)
    raise InputError(_describe_text(column, name, names))


def _refuse_complex(name: str) -> None:
    raise InputError(
        f"column {name!r} holds complex numbers; pass real and imaginary parts as two columns"
    )


def _refuse_dates(column: pd.Series, name: str) -> None:
    raise InputError(
        f"column {name!r} holds dates or times ({column.dropna().iloc[0]!s}); drop it, or turn it "
        "into a number such as days since a start"
    )


def _describe_text(column: pd.Series, name: str, names: Names) -> str:
    """The first value that is no number, its row, and a way out."""
    present = [
        (row, str(value))
        for row, (value, missing) in enumerate(zip(column, column.isna(), strict=True), start=1)
        if not missing
    ]
    unreadable = [(row, text) for row, text in present if not _is_number(text)]
    if not unreadable:
        row, text = present[0]
        kind = "categories" if isinstance(column.dtype, pd.CategoricalDtype) else "text"
        return (
            f"column {name!r} holds numbers stored as {kind} ({text!r} in row {row}); "
            "convert it with astype(float)"
        )
    row, text = unreadable[0]
    way_out = _way_out([text for _, text in unreadable], names)
    return f"column {name!r} holds text ({text!r} in row {row}); {way_out}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _way_out(unreadable: list[str], names: Names) -> str:
    for pattern, way_out in _WAYS_OUT:
        if all(re.fullmatch(pattern, text.strip()) for text in unreadable):
            return way_out
    if unreadable[0].strip().lower() in _MISSING_CODES:
        return "if this stands for a missing value, drop or impute these rows first"
    parts = {part.strip() for text in unreadable for part in re.split("[;,]", text)}
    if parts <= {"", *names}:
        return "if these columns were set in these rows, pass its name as `interventions`"
    return (
        "drop the column or encode it as numbers; if it says where rows come from, pass its name "
        "as `environment`"
    )
