"""Columns of a table as numbers and codes, with their kinds: declared, or found by looking."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesdag.data import kind_rules, numeric
from bayesdag.data.kinds import Declaration, Kind, label_of, label_rank
from bayesdag.data.numeric import Cells
from bayesdag.errors import InputError, did_you_mean

Names = tuple[str, ...]


class EncodedColumn(NamedTuple):
    """Numbers, counts or codes of levels, NaN where a cell is missing, and their kind."""

    values: Float[np.ndarray, " n"]
    kind: Kind


def columns(table: pd.DataFrame, declared: Mapping[str, Declaration]) -> list[EncodedColumn]:
    """All columns of a table."""
    names = tuple(table.columns)
    refuse_unknown_columns(declared, names, "kinds")
    return [
        column(table.iloc[:, j], name, names, declared.get(name)) for j, name in enumerate(names)
    ]


def column(
    given: pd.Series, name: str, names: Names = (), declared: Declaration | None = None
) -> EncodedColumn:
    """One column, of the kind that is declared, or that its type or its values have."""
    if declared is not None and (declared.levels or declared.name == "categorical"):
        given = given.astype(object)  # Text that looks like a number among text is a label, too.
        return _with_levels(_as_labels(given), name, declared)
    found = numeric.cells(given, name, names)
    if declared is None:
        return _by_looking(found, name)
    if declared.name in {"continuous", "count"}:
        return _as_numbers(found, name, declared)
    return _with_levels(_labels_of(found), name, declared)


def refuse_unknown_columns(said: Mapping[str, object], names: Names, option: str) -> None:
    """Refuses names that no column has."""
    for name in said:
        if name not in names:
            raise InputError(
                f"{option} names {name!r}, which is no column of the data "
                f"({did_you_mean(name, names)})"
            )


def _by_looking(found: Cells, name: str) -> EncodedColumn:
    if found.levels is not None and found.labels is not None:
        kind = _by_type(found, name)
        return EncodedColumn(_codes(found.labels, kind.levels, name), kind)
    if found.numbers is None:
        labels = found.labels or ()
        kind = kind_rules.of_text(labels, name)
        return EncodedColumn(_codes(labels, kind.levels, name), kind)
    kind = kind_rules.of_numbers(found.numbers, name)
    if not kind.is_discrete:
        return EncodedColumn(found.numbers, kind)
    gap = np.isnan(found.numbers)
    codes = np.searchsorted(np.unique(found.numbers[~gap]), found.numbers)
    return EncodedColumn(np.where(gap, np.nan, codes), kind)


def _by_type(found: Cells, name: str) -> Kind:
    """Kind of a column whose type has levels."""
    levels = found.levels or ()
    kind_rules.refuse_identifier(len(levels), len(found.labels or ()), name, levels[:1])
    if found.is_ordered and len(levels) > 2:
        return Kind("ordinal", levels, found.words)
    return Kind("binary" if len(levels) == 2 else "categorical", levels, found.words)


def _as_numbers(found: Cells, name: str, declared: Declaration) -> EncodedColumn:
    """Declared to be measured or counted: every cell must be a number."""
    kind = Kind(str(declared.name), (), declared.reason)
    if found.numbers is None:
        labels = found.labels or ()
        numeric.refuse_text(labels, name, kind.name)
        numbers = np.array([np.nan if label is None else float(label) for label in labels])
    else:
        numbers = found.numbers
    if kind.name == "count":
        _refuse_no_counts(numbers, name)
    return EncodedColumn(numbers, kind)


def _refuse_no_counts(numbers: np.ndarray, name: str) -> None:
    wrong = np.flatnonzero((numbers < 0) | (numbers != np.floor(numbers)) & ~np.isnan(numbers))
    if wrong.size:
        raise InputError(
            f"column {name!r} is declared count and holds {numbers[wrong[0]]:g} in row "
            f"{wrong[0] + 1}; counts are whole numbers from 0 on: correct it or declare the "
            "column continuous"
        )


def _with_levels(labels: tuple[str | None, ...], name: str, declared: Declaration) -> EncodedColumn:
    """Declared to have levels: those that are listed, or that occur."""
    present = [label for label in labels if label is not None]
    occurring = tuple(sorted(set(present), key=label_rank))
    levels = occurring if declared.levels is None else declared.levels
    kind = declared.name or ("binary" if len(levels) == 2 else "ordinal")
    if kind == "binary" and len(levels) != 2:
        raise InputError(
            f"column {name!r} is declared binary and holds {len(levels)} different values "
            f"({', '.join(levels[:5])}{', …' * (len(levels) > 5)}); declare it ordinal or "
            "categorical"
        )
    if declared.levels is None:
        kind_rules.refuse_identifier(len(levels), len(present), name, levels[:1])
    return EncodedColumn(_codes(labels, levels, name), Kind(kind, levels, declared.reason))


def _codes(labels: tuple[str | None, ...], levels: tuple[str, ...], name: str) -> np.ndarray:
    """Place of each label among the levels; NaN where it is missing."""
    number = {level: float(code) for code, level in enumerate(levels)}
    codes = np.empty(len(labels))
    for row, label in enumerate(labels):
        if label is not None and label not in number:
            raise InputError(
                f"column {name!r} holds {label!r} in row {row + 1}, which is none of its levels "
                f"({did_you_mean(label, levels)}); correct it or list it among the levels"
            )
        codes[row] = np.nan if label is None else number[label]
    return codes


def _labels_of(found: Cells) -> tuple[str | None, ...]:
    if found.labels is not None:
        return found.labels
    numbers = found.numbers if found.numbers is not None else np.empty(0)
    return tuple(None if np.isnan(x) else label_of(x) for x in numbers.tolist())


def _as_labels(given: pd.Series) -> tuple[str | None, ...]:
    return tuple(None if pd.isna(v) or not label_of(v) else label_of(v) for v in given)
