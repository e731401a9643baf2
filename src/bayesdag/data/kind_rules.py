"""Kinds of columns found by looking at their values, each with its reason in words.

A measurement takes many values; a code takes few, and each of them often. What few numbers
mean cannot be seen from them with certainty: the rules below take what costs least where they
are wrong, and every reason says how to declare something else.
"""

import re

import numpy as np
from jaxtyping import Float

from bayesdag.data.kinds import Kind, label_of, label_rank
from bayesdag.errors import InputError

# Different values of a code, at most, and rows per value, at least.
MOST_CODES = 10
ROWS_PER_CODE = 10
# Codes from 0 on with so few values name classes; with more they are a scale.
MOST_CLASSES = 4
# Levels of text, at most; and rows per level, at least, where there are many.
MOST_LEVELS = 50
FEW_LEVELS = 10
ROWS_PER_LEVEL = 2
# A count is small as a rule; larger ones are as good as measured.
LARGEST_MEDIAN_COUNT = 20
# Words in a column's name by which its codes name classes, not a scale.
_CLASS_WORDS = frozenset(
    {"batch", "brand", "category", "city", "class", "cluster", "color", "colour", "country"}
    | {"county", "ethnicity", "gender", "group", "job", "occupation", "party", "profession"}
    | {"race", "region", "religion", "sex", "site", "species", "state", "target", "type"}
)
_IDENTIFIER_WORDS = frozenset({"id", "identifier", "ids", "index", "key", "uuid"})
_NUMBER_AND_MORE = r"[^\w]*\d+([.,]\d+)?\s*[^\d\s]{0,8}"  # 40 kg, ="40"
_ROWS_OF_IDENTIFIERS = 20  # fewer whole numbers may differ by chance
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def of_text(
    labels: tuple[str | None, ...], name: str, levels: tuple[str, ...] | None = None
) -> Kind:
    """Kind of a column of text; identifiers and free text are refused.

    Args:
        levels: in the order in which the type of the column has them, if it does.
    """
    present = [label for label in labels if label is not None]
    found = tuple(sorted(set(present), key=label_rank)) if levels is None else levels
    refuse_identifier(len(found), len(present), name, found[:1])
    if len(found) == 1:
        raise InputError(
            f"column {name!r} is always {found[0]!r}; a constant cannot be a cause or an effect: "
            f"drop it (drop=[{name!r}], --drop {name})"
        )
    if len(found) == 2:
        return Kind("binary", found, f"text with two labels: {found[0]} and {found[1]}")
    return Kind(
        "categorical",
        found,
        f"text with {len(found)} labels, without an order (declare the labels in order if they "
        "have one)",
    )


def refuse_identifier(
    num_levels: int, num_rows: int, name: str, example: tuple[str, ...] = ()
) -> None:
    """Refuses text that names rows, or that has more labels than could be learned from."""
    said = f", such as {example[0]!r}" if example else ""
    drop = f"drop it (drop=[{name!r}], --drop {name})"
    if example and re.fullmatch(_NUMBER_AND_MORE, example[0]) and num_levels > FEW_LEVELS:
        drop += "; if these are numbers with a unit or in quotes, take that out"
    if num_levels > FEW_LEVELS and num_levels * ROWS_PER_LEVEL > num_rows:
        raise InputError(
            f"column {name!r} holds {num_levels} different texts in {num_rows} rows{said}: an "
            f"identifier or free text, from which nothing can be learned; {drop}"
        )
    if num_levels > MOST_LEVELS:
        raise InputError(
            f"column {name!r} holds {num_levels} different labels{said}, and at most {MOST_LEVELS} "
            f"can be learned from; put rare ones together, or {drop}"
        )


def of_numbers(column: Float[np.ndarray, " n"], name: str) -> Kind:
    """Kind of a column of numbers; NaN where a cell is missing."""
    present = column[~np.isnan(column)]
    values, counts = np.unique(present, return_counts=True)
    if _differ_by_rounding(values):
        return Kind("continuous", (), "numbers that differ by rounding")
    if len(values) == 2 and len(present) >= ROWS_PER_CODE:
        levels = tuple(map(label_of, values.tolist()))
        return Kind("binary", levels, f"two values: {levels[0]} and {levels[1]}")
    whole = bool(len(values)) and bool((values == np.floor(values)).all())
    if whole and _is_count(values, counts):
        return Kind(
            "count",
            (),
            f"whole numbers from 0 to {values[-1]:g}, most of them small, with a long right tail",
        )
    few = 2 < len(values) <= MOST_CODES and len(present) >= ROWS_PER_CODE * len(values)
    if few:
        return _of_codes(values, name, whole)
    words = f"{len(values)} different {'whole ' * whole}number{'s' * (len(values) != 1)}"
    return Kind("continuous", (), words)


def _differ_by_rounding(values: np.ndarray) -> bool:
    """Whether two of the sorted values are the same but for the last digit."""
    return len(values) > 1 and bool(np.diff(values).min() <= _ROUNDING * np.abs(values).max())


def _of_codes(values: np.ndarray, name: str, whole: bool) -> Kind:
    """Few values, each in many rows: a scale, or names of classes."""
    levels = tuple(map(label_of, values.tolist()))
    listed = f"{len(levels)} different values in many rows each ({levels[0]} to {levels[-1]})"
    consecutive = whole and bool((np.diff(values) == 1).all())
    words = set(re.split(r"[^a-z]+", name.lower()))
    if consecutive and words & _CLASS_WORDS:
        named = sorted(words & _CLASS_WORDS)[0]
        why = f"{listed}, and {named!r} names classes; declare it ordinal if they have an order"
        return Kind("categorical", levels, why)
    if consecutive and values[0] == 0 and len(levels) <= MOST_CLASSES:
        why = f"{listed}, coded from 0 as classes are; declare it ordinal if they have an order"
        return Kind("categorical", levels, why)
    why = f"{listed}, taken as a scale; declare it categorical if they have no order"
    return Kind("ordinal", levels, why)


def _is_count(values: np.ndarray, counts: np.ndarray) -> bool:
    """Whether whole numbers start at 0, are mostly small, and run out to the right."""
    if values[0] != 0 or len(values) < 4:
        return False
    total, mode = counts.sum(), int(np.argmax(counts))
    below = np.cumsum(counts)
    median = values[np.searchsorted(below, total / 2)]
    mean = float(values @ counts) / total
    variance = float((values - mean) ** 2 @ counts) / total
    skewness = float((values - mean) ** 3 @ counts) / total / max(variance, 1e-300) ** 1.5
    thin_end = counts[-1] <= counts[mode] / 10
    early = values[mode] <= values[-1] / 2
    return bool(median <= LARGEST_MEDIAN_COUNT and skewness > 0.5 and thin_end and early)


def identifier_words(column: Float[np.ndarray, " n"], name: str) -> str:
    """Advice where whole numbers, all different, seem to number the rows; else nothing."""
    present = column[~np.isnan(column)]
    if len(present) < _ROWS_OF_IDENTIFIERS or not (present == np.floor(present)).all():
        return ""
    if len(np.unique(present)) < len(present):
        return ""
    words = set(re.split(r"[^a-z]+", name.lower()))
    dense = np.ptp(present) + 1 <= 1.5 * len(present)
    if not (dense or words & _IDENTIFIER_WORDS):
        return ""
    return (
        f"column {name!r} holds another whole number in every row; drop it if it only names the "
        f"rows (drop, --drop {name})"
    )
