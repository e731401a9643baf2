"""The cells of a table that were set by an experimenter.

People write this down in two ways: a table of yes and no in the shape of the data, or one
entry a row that names what was set in it. Both become one mask. Rows are counted from 1.
"""

import re

import numpy as np
import pandas as pd
from jaxtyping import Bool

from bayesdag.errors import InputError, did_you_mean

Names = tuple[str, ...]


def mask(given: object, names: Names, num_rows: int) -> Bool[np.ndarray, "n d"]:
    """True where a cell was set; `given` is such a table, or target names row by row."""
    if isinstance(given, list | tuple) and all(np.ndim(entry) == 0 for entry in given):
        given = pd.Series(given, dtype=object)  # An array would turn a missing name into "nan".
    if isinstance(given, pd.DataFrame):
        given = _without_blanks_at_the_end(given, num_rows)
        if given.shape[1] == 1:
            given = given.iloc[:, 0]
    if isinstance(given, pd.DataFrame):
        _refuse_shape(given.shape, (num_rows, len(names)))
        return _from_cells(_in_order(given, names), names)
    if isinstance(given, pd.Series):
        return _from_targets(given.tolist(), names, num_rows)
    array = _as_array(given)
    if array.ndim == 1 and array.dtype.kind in "OUT":
        return _from_targets(array.tolist(), names, num_rows)
    _refuse_shape(array.shape, (num_rows, len(names)))
    return _from_cells(pd.DataFrame(array), names)


def _as_array(given: object) -> np.ndarray:
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(
            "the rows of the interventions have different lengths; make them equal"
        ) from error


def _without_blanks_at_the_end(table: pd.DataFrame, num_rows: int) -> pd.DataFrame:
    """A file may end in empty lines; elsewhere an empty line is an observational row."""
    rest = table.iloc[num_rows:].isna().to_numpy()
    return table.iloc[:num_rows] if rest.all() else table


def _refuse_shape(found: tuple[int, ...], needed: tuple[int, int]) -> None:
    if found != needed:
        raise InputError(
            f"interventions have shape {found} and the data {needed}; pass one True or False "
            "for each cell, or the names of the targets row by row"
        )


def _in_order(table: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The same columns in the order of the data, found by name."""
    if isinstance(table.columns, pd.RangeIndex):
        return table
    columns = [str(label).strip() for label in table.columns]
    for name in columns:
        if name not in names:
            raise InputError(
                f"the table of interventions has a column {name!r}, which is no column of the "
                f"data ({did_you_mean(name, names)}); give both the same column names"
            )
    for name in names:
        if name not in columns:
            raise InputError(f"the table of interventions lacks the column {name!r}; add it")
    return table.iloc[:, [columns.index(name) for name in names]]


def _from_cells(table: pd.DataFrame, names: Names) -> np.ndarray:
    flags = np.empty(table.shape)
    for column in range(table.shape[1]):
        numbers = pd.Series(pd.to_numeric(table.iloc[:, column], errors="coerce"))
        flags[:, column] = numbers.astype("Float64").to_numpy(np.float64, na_value=np.nan)
    wrong = np.argwhere((flags != 0) & (flags != 1)).tolist()
    if wrong:
        row, column = wrong[0]
        raise InputError(
            f"interventions hold {str(table.iat[row, column])!r} for {names[column]!r} in row "
            f"{row + 1}; every cell must be True or False, or 1 or 0"
        )
    return flags == 1


def _from_targets(entries: list, names: Names, num_rows: int) -> np.ndarray:
    if len(entries) != num_rows:
        raise InputError(
            f"interventions name the targets of {len(entries)} rows and the data have {num_rows}; "
            "give one entry a row, empty where nothing was set"
        )
    position = {name: column for column, name in enumerate(names)}
    result = np.zeros((num_rows, len(names)), dtype=bool)
    for row, entry in enumerate(entries):
        for target in _split(entry, names):
            if target not in position:
                raise InputError(
                    f"row {row + 1} of the interventions names {target!r}, which is no column of "
                    f"the data ({did_you_mean(target, names)}); leave it empty where "
                    "nothing was set"
                )
            result[row, position[target]] = True
    return result


def _split(entry: object, names: Names) -> list[str]:
    if entry is None or entry is pd.NA or entry != entry:
        return []
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)  # Integer names beside empty entries are read as floats.
    text = str(entry).strip()
    if text in names:  # A name may itself contain a separator.
        return [text]
    return [part.strip() for part in re.split("[;,]", text) if part.strip()]
