"""Preparing a table before it is read: columns left out, cells taken as missing, logarithms.

What was done is kept with the data, so that the same table can be read again in the same way.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

import numpy as np
from jaxtyping import Float

from bayesdag.data.kinds import CONTINUOUS, Declaration, Kind, label_of
from bayesdag.errors import InputError, did_you_mean
from bayesdag.types.late_imports import late

if TYPE_CHECKING:
    import pandas as pd

    DataFrame = pd.DataFrame
    Series = pd.Series
else:
    pd = late("pandas")
    DataFrame = "pandas.DataFrame"
    Series = "pandas.Series"

DECIMALS = (".", ",")
_DECIMAL_COMMA = r"\s*[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?\s*"


class Steps(TypedDict, total=False):
    """What a user may say of how a table is prepared: the keywords of `read`, `fit`, `inspect`.

    Columns and codes are a name, several separated by commas, or a list of them; None says nothing.

    Attributes:
        drop: columns to leave out.
        only: columns to keep.
        na_values: what stands for a missing cell, beside empty ones.
        log: columns of which to take the natural logarithm; they are called log(…) then.
        decimal: "," where numbers are written with a decimal comma.
    """

    drop: object
    only: object
    na_values: object
    log: object
    decimal: str | None


class Preparation(NamedTuple):
    """What is done to a table before anything is looked for in it.

    Attributes:
        drop: columns that are left out.
        only: columns that are kept; none: all.
        na_values: cells that stand for missing ones, beside those that are empty.
        log: columns of which the natural logarithm is taken; they are called log(…) then.
        decimal: what separates the decimals of a number.
    """

    drop: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    na_values: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    decimal: str = "."

    @classmethod
    def of(cls, steps: Mapping[str, object]) -> "Preparation":
        """From what a user says."""
        for name in steps:
            if name not in cls._fields:
                raise TypeError(f"unexpected keyword {name!r}; {did_you_mean(name, cls._fields)}")
        decimal = steps.get("decimal")
        if decimal not in (None, *DECIMALS):
            raise InputError(f"decimal is {decimal!r}; it is '.' or ','")
        listed = (name for name in cls._fields if name != "decimal")
        texts = {name: _texts(name, steps.get(name)) for name in listed}
        return cls(**texts, decimal=str(decimal or "."))

    def to_dict(self) -> dict[str, Any]:
        """As plain data: what is done, and nothing of what is not."""
        pairs = zip(self._asdict().items(), Preparation(), strict=True)
        kept = {name: value for (name, value), usual in pairs if value != usual}
        return {name: [*v] if isinstance(v, tuple) else v for name, v in kept.items()}


def split(settings: Mapping[str, Any]) -> tuple[Steps, dict[str, Any]]:
    """Keywords that prepare a table, and all others."""
    mine = {name: value for name, value in settings.items() if name in Preparation._fields}
    rest = {name: value for name, value in settings.items() if name not in mine}
    return cast(Steps, mine), rest


def _texts(option: str, given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str | int | float):
        return (label_of(given),)
    if not isinstance(given, Iterable):
        raise InputError(f"{option} takes a name or a list of them, not {given!r}")
    return tuple(map(label_of, given))


def resolved(steps: Preparation, names: tuple[str, ...]) -> Preparation:
    """The same steps with columns by their own names, as they are kept."""
    listed = {"drop": steps.drop, "only": steps.only, "log": steps.log}
    columns = {option: tuple(_columns(option, said, names)) for option, said in listed.items()}
    return steps._replace(**columns, na_values=tuple(_split(steps.na_values)))


def prepared(table: DataFrame, steps: Preparation) -> DataFrame:
    """The table with the columns that are wanted, and what is no value taken as missing."""
    names = tuple(table.columns)
    wanted = _columns("only", steps.only, names) if steps.only else list(names)
    left_out = set(_columns("drop", steps.drop, names)) if steps.drop else set()
    places = [j for j, name in enumerate(names) if name in wanted and name not in left_out]
    table = table.iloc[:, places]
    if not (steps.na_values or steps.decimal == ","):
        return table
    columns = {j: _prepared_column(table.iloc[:, j], steps) for j in range(table.shape[1])}
    changed = pd.DataFrame(columns)  # by place: names may repeat, until that is refused
    changed.columns = table.columns
    return changed


def _prepared_column(column: Series, steps: Preparation) -> Series:
    if steps.decimal == ",":
        column = _with_points(column)
    return _without(column, _split(steps.na_values)) if steps.na_values else column


def log_columns(steps: Preparation, names: Sequence[str]) -> list[str]:
    """Columns of which the logarithm is taken."""
    return _columns("log", steps.log, tuple(names)) if steps.log else []


def logarithm(column: Float[np.ndarray, " n"], name: str) -> tuple[np.ndarray, Kind]:
    """The natural logarithm of a column of positive numbers, NaN where one is missing."""
    wrong = np.flatnonzero(column <= 0)
    if wrong.size:
        raise InputError(
            f"the logarithm of column {name!r} is asked for, and it holds "
            f"{column[wrong[0]]:g} in row {wrong[0] + 1}; only positive numbers have one"
        )
    return np.log(column), CONTINUOUS._replace(reason="natural logarithm of the numbers given")


def log_name(name: str) -> str:
    """What a column is called once its logarithm is taken."""
    return f"log({name})"


def with_logarithms(table: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The table with the logarithms of these columns at its end."""
    from bayesdag.data import encoding

    measured, taken = Declaration("continuous"), {}
    for name in columns:
        column: Any = table[name]
        numbers = encoding.column(column, name, (), measured).values
        taken[log_name(name)] = logarithm(numbers, name)[0]
    return table.assign(**taken)


def declared_for_log(
    declared: dict[str, Declaration], logs: Sequence[str]
) -> dict[str, Declaration]:
    """Columns whose logarithm is taken are measured, however few values they have."""
    return declared | {name: Declaration("continuous") for name in logs}


def _columns(option: str, wanted: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    """Names that are meant: a name may itself contain a comma."""
    found = []
    for entry in wanted:
        found += [entry] if entry in names else _split((entry,))
    for name in found:
        if name not in names:
            raise InputError(
                f"{option} names {name!r}, which is no column of the data "
                f"({did_you_mean(name, names)})"
            )
    return list(dict.fromkeys(found))


def _split(entries: tuple[str, ...]) -> list[str]:
    return [part.strip() for entry in entries for part in entry.split(",") if part.strip()]


def _with_points(column: Series) -> Series:
    """Numbers with decimal commas as numbers; any other column as it is."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    texts = [text for text in column.dropna() if not isinstance(text, str) or text.strip()]
    if not all(isinstance(t, str) for t in texts) or not any("," in t for t in texts):
        return column
    # Codes for missing cells may stand among numbers: they are judged later.
    changed = [
        t.replace(",", ".") if isinstance(t, str) and re.fullmatch(_DECIMAL_COMMA, t) else t
        for t in column
    ]
    return pd.Series(changed, index=column.index, dtype=object, name=column.name)


def _without(column: Series, codes: list[str]) -> Series:
    """The column with cells that equal a code taken as missing."""
    labels = column.map(label_of, na_action="ignore").astype(object)
    hit = labels.isin([label_of(_number_or_text(code)) for code in codes])
    return column.mask(hit) if hit.any() else column


def _number_or_text(code: str) -> object:
    try:
        return float(code)
    except ValueError:
        return code
