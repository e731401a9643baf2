"""Which cells of a table were set by an experimenter?

People write this down in two ways: a table of yes and no in the shape of the data, or one
entry a row that names what was set in it. Both become one mask.
"""

import difflib
import re

import numpy as np
import pandas as pd
from jaxtyping import Bool

from bayesdag.types import InputError


def mask(given: object, names: tuple[str, ...], num_rows: int) -> Bool[np.ndarray, "n d"]:
    """True where a cell was set; `given` is such a table, or target names row by row."""
    if isinstance(given, pd.DataFrame):
        given = _without_trailing_blanks(given, num_rows)
        if given.shape[1] > 1:
            return _from_cells(_aligned(given, names), names, num_rows)
        given = given.iloc[:, 0]
    if isinstance(given, pd.Series):
        return _from_targets(given.tolist(), names, num_rows)
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.asarray(given, dtype=object)
    if array.ndim == 1 and array.dtype.kind in "OUST":
        return _from_targets(array.tolist(), names, num_rows)
    return _from_cells(array, names, num_rows)


def _without_trailing_blanks(table: pd.DataFrame, num_rows: int) -> pd.DataFrame:
    """A file may end in empty lines; elsewhere an empty line is an observational row."""
    return table.iloc[:num_rows] if table.iloc[num_rows:].isna().all(axis=None) else table


def _aligned(table: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """The columns in the order of the data, found by name."""
    columns = [str(label) for label in table.columns]
    if len(columns) == len(names) and set(columns) != set(names):
        strange = next(name for name in columns if name not in names)
        raise InputError(
            f"the table of interventions has a column {strange!r} that the data do not have"
            f"{_nearest(strange, names)}; give both the same column names"
        )
    if len(columns) == len(names):
        table = table.iloc[:, [columns.index(name) for name in names]]
    return table.to_numpy(dtype=object)


def _from_cells(array: np.ndarray, names: tuple[str, ...], num_rows: int) -> np.ndarray:
    if array.shape != (num_rows, len(names)):
        raise InputError(
            f"interventions have shape {array.shape} and the data {(num_rows, len(names))}; "
            "pass one True or False for each cell, or the names of the targets row by row"
        )
    if array.dtype == bool:
        return array
    is_set = np.isin(array, (1, True)) if array.dtype != object else np.equal(array, 1)
    is_free = np.isin(array, (0, False)) if array.dtype != object else np.equal(array, 0)
    is_set, is_free = is_set.astype(bool), is_free.astype(bool)
    if not (is_set | is_free).all():
        row, column = np.argwhere(~(is_set | is_free))[0]
        raise InputError(
            f"interventions hold {array[row, column]!r} for {names[column]!r} in row {row + 1}; "
            "every cell must be True or False (or 1 or 0)"
        )
    return is_set


def _from_targets(entries: list, names: tuple[str, ...], num_rows: int) -> np.ndarray:
    if len(entries) != num_rows:
        raise InputError(
            f"interventions name the targets of {len(entries)} rows and the data have {num_rows}; "
            "give one entry a row, empty where nothing was set"
        )
    position = {name: j for j, name in enumerate(names)}
    result = np.zeros((num_rows, len(names)), dtype=bool)
    for row, entry in enumerate(entries):
        for target in _split(entry, names):
            if target not in position:
                raise InputError(
                    f"row {row + 1} of the interventions names {target!r}, which is no column"
                    f"{_nearest(target, names)}; leave the entry empty where nothing was set"
                )
            result[row, position[target]] = True
    return result


def _split(entry: object, names: tuple[str, ...]) -> list[str]:
    if pd.api.types.is_scalar(entry) and pd.isna(entry):
        return []
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)  # A column of integer names with gaps is read as floats.
    text = str(entry).strip()
    if text in names:
        return [text]
    return [part.strip() for part in re.split("[;,]", text) if part.strip()]


def _nearest(name: str, names: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
    return f" (nearest: {close[0]!r})" if close else ""
