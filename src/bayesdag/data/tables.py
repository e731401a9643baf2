"""Tables with column names from frames, arrays and files.

Files are read by pandas; everything it would guess in silence (an index, repeated names,
a separator) is decided here, exactly or with a word to the user.
"""

import csv
import gzip
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.types.late_imports import late

if TYPE_CHECKING:
    import pandas as pd

    DataFrame = pd.DataFrame
else:
    pd = late("pandas")
    DataFrame = "pandas.DataFrame"

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
EXCEL_SUFFIXES = (".xlsx", ".xlsm")
COMPRESSED = ".gz"
# What a file may write for nothing. "None" is a label among text, and counts among numbers.
_NOTHING = ("", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "<NA>", "#N/A", "#NA")
_SEPARATORS = (",", ";", "\t", "|", " ")
_NO_SEPARATOR = "\x1f"  # A control character that no table contains.


def frame(source: object, *, keep_blank_rows: bool = False, decimal: str = ".") -> DataFrame:
    """The table in `source` with plain string names and without any index.

    Args:
        keep_blank_rows: a line without anything in it is a row, too.
        decimal: what separates decimals in a text file, and hence hardly its fields.
    """
    if isinstance(source, str | os.PathLike):
        table = _read_file(Path(source), keep_blank_rows, decimal)
    elif isinstance(source, pd.DataFrame):
        table = source
    elif isinstance(source, Mapping) or hasattr(source, "to_pandas"):
        table = _from_columns(source)
    else:
        table = _from_array(source)
    table = table.reset_index(drop=True)
    table.columns = pd.Index([str(label).strip() for label in table.columns], dtype=object)
    return _without_row_numbers(table)


def _from_columns(source: Any) -> DataFrame:
    try:
        return pd.DataFrame(dict(source) if isinstance(source, Mapping) else source.to_pandas())
    except ValueError as error:
        raise InputError(f"the columns do not make a table: {error}") from error


def _from_array(source: object) -> DataFrame:
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
            f"the data have shape {array.shape}, {array.ndim}-D; pass a 2-D array with one row "
            "a sample and one column a variable"
        )
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])


def _read_file(path: Path, keep_blank_rows: bool, decimal: str) -> DataFrame:
    suffix = _suffix(path)
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}; check the name and the folder")
    if not path.is_file():
        raise InputError(f"{str(path)!r} is a folder, not a file; name the table in it")
    if suffix not in TEXT_SUFFIXES + PARQUET_SUFFIXES + EXCEL_SUFFIXES:
        raise InputError(
            f"{str(path)!r} ends in {path.suffix.lower()!r}, and tables are read from "
            f"{', '.join(TEXT_SUFFIXES + PARQUET_SUFFIXES + EXCEL_SUFFIXES)} and .csv.gz; "
            "save it as CSV, or read it with pandas and pass the DataFrame"
        )
    try:
        if suffix in PARQUET_SUFFIXES:
            return _read_parquet(path)
        if suffix in EXCEL_SUFFIXES:
            return _read_excel(path)
        return _read_text(path, keep_blank_rows, decimal)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{str(path)!r} is not UTF-8 text (byte {error.object[error.start]:#04x}); "
            "save it again as CSV in UTF-8"
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise InputError(_ragged(path, str(error))) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r} cannot be read: {reason}") from error


def _suffix(path: Path) -> str:
    """What the file holds, by its name; compressed text counts as text."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix == COMPRESSED and inner in TEXT_SUFFIXES else suffix


def _read_excel(path: Path) -> DataFrame:
    """The first sheet of a workbook."""
    try:
        # Nothing is guessed: repeated names and text that reads as missing are judged later.
        whole = pd.read_excel(
            path, header=None, keep_default_na=False, na_values=_NOTHING, dtype=object
        )
    except ImportError as error:
        raise InputError(
            "Excel files need the package openpyxl: install bayesdag[excel], or save the sheet as "
            "CSV"
        ) from error
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise InputError(
            f"{str(path)!r} is not a readable Excel file ({reason}); save the sheet as CSV"
        ) from error
    if not len(whole):
        raise InputError(f"{str(path)!r} is empty; it needs a line of names and rows of numbers")
    names = ["" if pd.isna(name) else str(name) for name in whole.iloc[0]]
    _refuse_numbers_as_names(path, names)
    table = whole.iloc[1:].dropna(how="all")
    table.columns = pd.Index(names, dtype=object)
    return table


def _read_parquet(path: Path) -> DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise InputError("Parquet files need the package pyarrow; install it") from error
    except (ValueError, OSError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise InputError(
            f"{str(path)!r} is not a readable Parquet file ({reason}); write it again"
        ) from error


def _read_text(path: Path, keep_blank_rows: bool, decimal: str) -> DataFrame:
    separator, header, labelled = _dialect(path, decimal)
    width = len(header) + labelled
    with warnings.catch_warnings():
        # pandas would cut rows that are too long and go on.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        table = pd.read_csv(
            path,
            sep=separator,
            header=0,
            # Numbers, because pandas would rename repeated columns instead of refusing them.
            names=list(range(width)),
            index_col=False,
            encoding="utf-8-sig",
            skipinitialspace=True,
            skip_blank_lines=not keep_blank_rows,
            low_memory=False,
            keep_default_na=False,
            na_values=_NOTHING,
        )
    if labelled:
        _say(
            f"the rows of {str(path)!r} have one field more than there are names; the first field "
            "is taken for a row label and left out"
        )
    table = table.iloc[:, int(labelled) :]
    table.columns = pd.Index(header, dtype=object)
    return table


def _dialect(path: Path, decimal: str) -> tuple[str, list[str], bool]:
    """Separator, names, and whether the rows begin with a label that has no name."""
    opened = gzip.open if path.suffix.lower() == COMPRESSED else open
    with cast(Any, opened)(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = [line for line in islice(file, 20) if line.strip()]
    if not lines:
        raise InputError(f"{str(path)!r} is empty; it needs a line of names and rows of numbers")
    rows = {
        separator: list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
        for separator in (*_SEPARATORS, _NO_SEPARATOR)
    }
    by_rank = sorted(_SEPARATORS, key=lambda separator: separator == decimal)
    splitting = [separator for separator in by_rank if len(rows[separator][0]) > 1]
    even = [separator for separator in splitting if _is_even(rows[separator])]
    # Spaces may be part of a name: they count only when they split all lines alike.
    uneven = [separator for separator in splitting if separator != " "]
    chosen = [*even, *uneven, _NO_SEPARATOR][0]
    header, *body = rows[chosen]
    _refuse_numbers_as_names(path, header)
    return chosen, header, _is_labelled(path, header, body)


def _is_even(rows: list[list[str]]) -> bool:
    """Whether all lines are as long as the first; R names one column less than there are."""
    excess = {len(row) - len(rows[0]) for row in rows[1:]}
    return excess in (set(), {0}, {1})


def _is_labelled(path: Path, header: list[str], body: list[list[str]]) -> bool:
    excess = {len(row) - len(header) for row in body}
    if min(excess, default=0) > 1 or (excess == {1} and not any(row[-1] for row in body)):
        raise InputError(
            f"the rows of {str(path)!r} have more fields than the {len(header)} names in its "
            "first line; name every column, or remove the separator at the end of the lines"
        )
    return excess == {1}


def _refuse_numbers_as_names(path: Path, header: list[str]) -> None:
    try:
        labels = [float(name) for name in header]
    except ValueError:
        return
    # 0, 1, 2, … are names that pandas gives; anything else is a row of measurements.
    if labels not in (list(range(len(labels))), list(range(1, len(labels) + 1))):
        raise InputError(
            f"the first line of {str(path)!r} holds numbers ({', '.join(header[:3])}, …), not "
            "names; add a line of column names at the top"
        )


def _ragged(path: Path, reason: str) -> str:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason)
    if found is None:
        return f"{str(path)!r} is not a readable table ({reason}); check its quotes and separators"
    expected, line, saw = found.groups()
    return (
        f"line {line} of {str(path)!r} has {saw} fields and the lines before it have {expected}; "
        "make all rows the same length and put quotes around text with a separator in it"
    )


def _without_row_numbers(table: DataFrame) -> DataFrame:
    """Without a nameless first column that only counts the rows."""
    if table.shape[1] == 0 or table.columns[0] not in ("", "Unnamed: 0"):
        return table
    first = pd.Series(pd.to_numeric(table.iloc[:, 0], errors="coerce")).to_numpy(np.float64)
    if not any(np.array_equal(first, np.arange(len(table)) + start) for start in (0, 1)):
        return table
    _say(
        "the first column has no name and counts the rows; it is left out. "
        "Write the table without its index (pandas: index=False) to avoid this"
    )
    return table.iloc[:, 1:]


def _say(message: str) -> None:
    warnings.warn(message, BayesdagWarning, stacklevel=6)
