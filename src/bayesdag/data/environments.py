"""Where rows come from: columns of labels that become context variables.

A column such as `condition`, `site` or `batch` says in which environment a row was taken. Every
environment but one, the reference, becomes an indicator, a context variable: nothing acts on
it, and it may act on any variable. What an environment does to a variable is thus a soft
intervention with an unknown target: the variable still follows its causes, differently.
How many rows come from where is a matter of design: that distribution is not modelled.

References:
    Mooij, Magliacane & Claassen (2020), Joint causal inference from multiple contexts, JMLR.
"""

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag.data.kinds import Kind, label_of, label_rank
from bayesdag.errors import BayesdagWarning, InputError, did_you_mean

if TYPE_CHECKING:
    import pandas

# Fewest rows of an environment: fewer say nothing of what it does.
FEWEST_ROWS = 5
DEFAULT_COLUMN = "environment"


class Environment(NamedTuple):
    """One column of labels.

    Attributes:
        column: its name.
        reference: the label that the others are compared with.
        others: the other labels; each has an indicator, in this order.
    """

    column: str
    reference: str
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the indicators."""
        return tuple(f"{self.column}={label}" for label in self.others)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of the indicators: a row comes from this environment or from elsewhere."""
        rest = self.reference if len(self.others) == 1 else "elsewhere"
        reason = "says whether the row comes from this environment"
        return tuple(Kind("binary", (rest, label), reason) for label in self.others)


class LabelColumn(NamedTuple):
    """Labels row by row, and the one to compare with (None: the most frequent one)."""

    labels: Any
    reference: Any = None


class Encoded(NamedTuple):
    """What a Dataset is given: the environments, and their indicators side by side."""

    environments: tuple[Environment, ...]
    indicators: Float[np.ndarray, "n k"]


def encode(given: object, num_rows: int) -> Encoded:
    """Indicators of labels: one sequence of them, or a mapping from column names to them."""
    is_table = isinstance(given, Mapping) or hasattr(given, "columns")
    columns: dict[Any, Any] = dict(given) if is_table else {_name_of(given): given}  # pyright: ignore
    found, indicators = [], [np.zeros((num_rows, 0))]
    for column, labels in columns.items():
        known = labels if isinstance(labels, LabelColumn) else LabelColumn(labels)
        environment, codes = _codes(str(column), known, num_rows)
        found.append(environment)
        indicators.append(np.eye(1 + len(environment.others))[codes][:, 1:])
    encoded = Encoded(tuple(found), np.hstack(indicators))
    _warn_of_confounded(encoded)
    return encoded


def take_out(table: "pandas.DataFrame", given: object) -> tuple["pandas.DataFrame", object]:
    """The table without the columns that `given` names, and the labels that they hold.

    Args:
        given: the name of a column, "column=reference", several of these, a mapping from names
            to reference labels (None: the most frequent one), or the labels themselves.
    """
    named = _named(given, tuple(table.columns), len(table))
    if named is None:
        return table, given
    labels = {name: LabelColumn(table[name].tolist(), ref) for name, ref in named.items()}
    return table.drop(columns=list(named)), labels


def patterns(
    indicators: Float[np.ndarray, "n k"],
) -> tuple[Int[np.ndarray, "p k"], Int[np.ndarray, " p"]]:
    """The different rows of indicators, and how often each occurs."""
    different, counts = np.unique(indicators.astype(int), axis=0, return_counts=True)
    return different, counts


def warn_of_fixed(
    values: Float[np.ndarray, "n d"], names: tuple[str, ...], indicators: Float[np.ndarray, "n k"]
) -> None:
    """Warns of variables that the environments determine: they cannot be told apart."""
    _, group = np.unique(indicators, axis=0, return_inverse=True)
    group = group.reshape(-1)
    first = np.array([np.argmax(group == g) for g in range(group.max() + 1)])
    fixed = (values == values[first[group]]).all(axis=0)
    for j in np.flatnonzero(fixed).tolist():
        _warn(
            f"column {names[j]!r} has one value in each environment; the data cannot tell what it "
            "does from what the environments do: drop one of them"
        )


def _name_of(given: object) -> str:
    name = getattr(given, "name", None)
    return DEFAULT_COLUMN if name is None else str(name)


def _named(given: object, columns: tuple[str, ...], num_rows: int) -> dict[str, Any] | None:
    """Columns that are meant, with their reference labels; None where `given` holds labels."""
    if isinstance(given, str):
        return dict([_column_and_reference(given, columns)])
    if isinstance(given, Mapping):
        if all(value is None or np.ndim(value) == 0 for value in given.values()):
            return {_known(str(name), columns): ref for name, ref in given.items()}
        return None
    if not isinstance(given, list | tuple) or not all(isinstance(g, str) for g in given):
        return None
    is_name = [g in columns or g.partition("=")[0] in columns for g in given]
    if len(given) == num_rows and not (all(is_name) and len(set(given)) == num_rows):
        return None
    return dict(_column_and_reference(g, columns) for g in given)


def _column_and_reference(text: str, columns: tuple[str, ...]) -> tuple[str, str | None]:
    if text in columns or "=" not in text:
        return _known(text, columns), None
    name, _, reference = text.partition("=")
    return _known(name, columns), reference


def _known(name: str, columns: tuple[str, ...]) -> str:
    if name not in columns:
        raise InputError(
            f"environment={name!r} is no column of the data ({did_you_mean(name, columns)}); "
            "check the name, or pass one label for each row"
        )
    return name


def _codes(
    column: str, known: LabelColumn, num_rows: int
) -> tuple[Environment, Int[np.ndarray, " n"]]:
    """The environments of a column, and the number of that of each row; the reference is 0."""
    given = np.asarray(known.labels, dtype=object)
    if given.shape != (num_rows,):
        raise InputError(
            f"the environment {column!r} has labels of shape {given.shape} and the data have "
            f"{num_rows} rows; give one label for each row"
        )
    labels = [_label(value, column, row) for row, value in enumerate(given.tolist(), start=1)]
    counts = Counter(labels)
    different = sorted(counts, key=label_rank)
    _refuse_too_few(column, different, counts)
    reference = _reference(column, known.reference, different, counts)
    ordered = [reference, *(label for label in different if label != reference)]
    number = {label: code for code, label in enumerate(ordered)}
    environment = Environment(column, reference, tuple(ordered[1:]))
    return environment, np.array([number[label] for label in labels])


def _label(value: object, column: str, row: int) -> str:
    from pandas import isna

    text = "" if isna(value) is True else label_of(value)
    if not text:
        raise InputError(
            f"the environment {column!r} is missing in row {row}; say where the row comes from, "
            "or drop it"
        )
    return text


def _refuse_too_few(column: str, different: list[str], counts: Mapping[str, int]) -> None:
    if len(different) < 2:
        raise InputError(
            f"the environment {column!r} is {different[0]!r} in every row; there is nothing to "
            "compare: leave it out"
        )
    few = [label for label in different if counts[label] < FEWEST_ROWS]
    if few:
        more = f" and {len(few) - 1} more have as few" if len(few) > 1 else ""
        rows = f"{counts[few[0]]} row{'s' * (counts[few[0]] > 1)}"
        raise InputError(
            f"the environment {few[0]!r} of {column!r} has {rows}{more}; fewer than {FEWEST_ROWS} "
            "say nothing of what it does: put it together with another, drop its rows, or, if "
            f"{column!r} is a measurement, keep it as a variable"
        )


def _reference(column: str, wanted: object, different: list[str], counts: Mapping[str, int]) -> str:
    if wanted is None:
        return max(different, key=lambda label: counts[label])  # the first of the largest
    text = label_of(wanted)
    if text not in different:
        raise InputError(
            f"no row has the environment {column}={text}; {did_you_mean(text, different)}"
        )
    return text


def _warn_of_confounded(encoded: Encoded) -> None:
    """Warns where one column of labels follows from the others."""
    if len(encoded.environments) < 2:
        return
    centred = encoded.indicators - encoded.indicators.mean(axis=0)
    if np.linalg.matrix_rank(centred) < centred.shape[1]:
        names = ", ".join(one.column for one in encoded.environments)
        _warn(
            f"some environments of {names} follow from one another; the data cannot tell which "
            "of them acts: leave one column out"
        )


def _warn(message: str) -> None:
    warnings.warn(message, BayesdagWarning, stacklevel=4)
