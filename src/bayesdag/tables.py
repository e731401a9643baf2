"""How does what people have become a table of numbers with names?

Files are read by pandas; everything it would guess in silence (an index, repeated names,
a separator) is decided here, exactly or with a word to the user.
"""

import csv
import os
import re
import warnings
from collections.abc import Mapping
from decimal import Decimal
from itertools import islice
from numbers import Real
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesdag.types import BayesdagWarning, InputError

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
_SEPARATORS = (",", ";", "\t", "|", " ")
_MISSING_CODES = frozenset({"?", "-", "--", ".", "*", "x", "missing", "unknown", "not available"})


def frame(source: object, *, keep_blank_rows: bool = False) -> pd.DataFrame:
    """The table in `source` with plain string names and without any index."""
    if isinstance(source, str | os.PathLike):
        table = _read_file(Path(source), keep_blank_rows)
    elif isinstance(source, pd.DataFrame):
        table = source.reset_index(drop=True)
    elif isinstance(source, Mapping):
        table = pd.DataFrame(dict(source))
    elif hasattr(source, "to_pandas"):
        table = pd.DataFrame(source.to_pandas())  # pyright: ignore[reportAttributeAccessIssue]
    else:
        table = _from_array(source)
    table.columns = pd.Index([str(label).strip() for label in table.columns], dtype=object)
    return _without_row_numbers(table)


def numbers(table: pd.DataFrame) -> Float[np.ndarray, "n d"]:
    """All columns as float64, missing values as NaN; text, dates and complex are refused."""
    values = np.empty(table.shape)
    for position, name in enumerate(table.columns):
        values[:, position] = _column(table.iloc[:, position], name, tuple(table.columns))
    return values


def _from_array(source: object) -> pd.DataFrame:
    try:
        array = np.asarray(source)
    except ValueError as error:
        raise InputError("the rows of the data have different lengths; make them equal") from error
    if array.ndim == 0:
        raise InputError(
            f"cannot read data from {type(source).__name__}; pass a DataFrame, a 2-D array "
            "or the path of a CSV or Parquet file"
        )
    if array.ndim != 2:
        raise InputError(
            f"the data have {array.ndim} dimension{'s' * (array.ndim > 1)}, shape {array.shape}; "
            "pass a 2-D array with one row a sample and one column a variable"
        )
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])


def _read_file(path: Path, keep_blank_rows: bool) -> pd.DataFrame:
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}; check the name and the folder")
    if not path.is_file():
        raise InputError(f"{str(path)!r} is a folder, not a file; name the table in it")
    if suffix not in TEXT_SUFFIXES + PARQUET_SUFFIXES:
        known = ", ".join(TEXT_SUFFIXES + PARQUET_SUFFIXES)
        raise InputError(
            f"{str(path)!r} ends in {suffix!r}, and tables are read from {known}; "
            "save it as CSV, or read it with pandas and pass the DataFrame"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{str(path)!r} is empty; it needs a line of names and rows of numbers")
    if suffix in PARQUET_SUFFIXES:
        return _read_parquet(path)
    try:
        return _read_text(path, keep_blank_rows)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{str(path)!r} is not UTF-8 text (byte {error.object[error.start]:#04x} at position "
            f"{error.start}); save it again as CSV in UTF-8"
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise InputError(_ragged(path, str(error))) from error
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path).reset_index(drop=True)
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{str(path)!r} is not a readable Parquet file ({reason}); write it again"
        ) from error


def _read_text(path: Path, keep_blank_rows: bool) -> pd.DataFrame:
    separator, header = _dialect(path)
    table = pd.read_csv(
        path,
        sep=separator,
        encoding="utf-8-sig",
        skipinitialspace=True,
        skip_blank_lines=not keep_blank_rows,
        low_memory=False,
    )
    if not isinstance(table.index, pd.RangeIndex):
        table = _without_row_labels(table, path)
    # pandas renames repeated columns; they have to be seen as they are to be refused.
    table.columns = pd.Index(header, dtype=object)
    return table


def _dialect(path: Path) -> tuple[str, list[str]]:
    """Separator and names: the first separator that splits all early lines alike."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in islice(file, 20) if line.strip()]
    if not lines:
        raise InputError(f"{str(path)!r} is empty; it needs a line of names and rows of numbers")
    for separator in _SEPARATORS:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
        widths = {len(row) for row in rows[1:]} or {len(rows[0])}
        # A table written by R names one column less than it has.
        if len(rows[0]) > 1 and (widths <= {len(rows[0]), len(rows[0]) + 1}):
            break
    else:
        separator = ","
        rows = list(csv.reader(lines, skipinitialspace=True))
    header = [name.strip() for name in rows[0]]
    _refuse_numbers_as_names(path, header)
    return separator, header


def _refuse_numbers_as_names(path: Path, header: list[str]) -> None:
    try:
        labels = [float(name) for name in header]
    except ValueError:
        return
    # 0, 1, 2, … are names that pandas gives; anything else is a row of measurements.
    if labels == [labels[0] + j for j in range(len(labels))] and labels[0] in (0, 1):
        return
    raise InputError(
        f"the first line of {str(path)!r} holds numbers ({', '.join(header[:3])}, …), not names; "
        "add a line of column names at the top"
    )


def _ragged(path: Path, reason: str) -> str:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason)
    if found is None:
        return f"{str(path)!r} is not a readable table ({reason}); check its quotes and separators"
    expected, line, saw = found.groups()
    return (
        f"line {line} of {str(path)!r} has {saw} fields where the lines before it have {expected}; "
        "make all rows the same length and put quotes around text with a separator in it"
    )


def _without_row_labels(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    if table.index.nlevels > 1 or bool(table.iloc[:, -1].isna().all()):
        raise InputError(
            f"the rows of {str(path)!r} have more fields than the {table.shape[1]} names in its "
            "first line; name every column, or remove the separator at the end of the lines"
        )
    warnings.warn(
        f"the rows of {str(path)!r} have one field more than there are names; the first one is "
        "taken for a row label and left out",
        BayesdagWarning,
        stacklevel=2,
    )
    return table.reset_index(drop=True)


def _without_row_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Without a nameless first column that only counts the rows."""
    if table.shape[1] == 0 or table.columns[0] not in ("", "Unnamed: 0"):
        return table
    first = pd.to_numeric(table.iloc[:, 0], errors="coerce").to_numpy(np.float64)
    if not any(np.array_equal(first, np.arange(len(table)) + start) for start in (0, 1)):
        return table
    warnings.warn(
        "the first column has no name and counts the rows; it is left out. "
        "Write the table without its index (pandas: to_csv(..., index=False)) to avoid this",
        BayesdagWarning,
        stacklevel=2,
    )
    return table.iloc[:, 1:]


def _column(column: pd.Series, name: str, names: tuple[str, ...]) -> Float[np.ndarray, " n"]:
    types = pd.api.types
    if types.is_complex_dtype(column.dtype):
        raise InputError(
            f"column {name!r} holds complex numbers; pass real and imaginary parts as two columns"
        )
    if column.dtype.kind in "Mm" or isinstance(column.dtype, pd.PeriodDtype):
        raise InputError(
            f"column {name!r} holds dates or times (the first is {column.iloc[0]}); "
            "drop it, or turn it into a number such as days since a start"
        )
    if types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    present = column.dropna()
    if not isinstance(column.dtype, pd.CategoricalDtype) and all(
        isinstance(value, Real | Decimal | np.bool_) for value in present
    ):
        return np.array([np.nan if pd.isna(value) else float(value) for value in column])
    raise InputError(_text(column, name, names))


def _text(column: pd.Series, name: str, names: tuple[str, ...]) -> str:
    """What to say of a column of text: the first value that is no number, and a way out."""
    strings = column.astype(object).map(str).where(column.notna().to_numpy())
    unreadable = strings[pd.to_numeric(strings, errors="coerce").isna() & strings.notna()]
    if unreadable.empty:
        kind = "category" if isinstance(column.dtype, pd.CategoricalDtype) else "text"
        return (
            f"column {name!r} holds numbers stored as {kind} (row 1: {column.iloc[0]!r}); "
            "convert it with astype(float)"
        )
    row, value = int(unreadable.index[0]), unreadable.iloc[0]
    return f"column {name!r} holds text ({value!r} in row {row + 1}); {_remedy(unreadable, names)}"


def _remedy(unreadable: pd.Series, names: tuple[str, ...]) -> str:
    value = unreadable.iloc[0].strip()

    def all_match(pattern: str) -> bool:
        return bool(unreadable.str.strip().str.fullmatch(pattern).all())

    if all_match(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"):
        return "the commas look like thousands separators: read it with pandas, thousands=','"
    if all_match(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?"):
        return "read it with pandas, decimal=',' and thousands='.'"
    if all_match(r"[+-]?\d*,\d+([eE][+-]?\d+)?"):
        return "the commas look like decimal points: read it with pandas, decimal=','"
    if all_match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*"):
        return "it looks like a date: drop it, or turn it into a number such as days since a start"
    if value.lower() in _MISSING_CODES:
        return "if this stands for a missing value, drop or impute these rows first"
    if all(part.strip() in names for text in unreadable for part in re.split("[;,]", text)):
        return "it names other columns: if these were set, pass its name as `interventions`"
    return "drop the column or encode it as numbers"
