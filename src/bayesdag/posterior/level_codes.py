"""Levels by their labels: what people write in questions, and codes as models have them.

A column of levels holds codes 0 … K−1 in the order of its labels. Questions name labels, in
words or as the numbers that stood in the table, and rows come back with labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, SupportsFloat

import numpy as np
from jaxtyping import Float

from bayesdag.data.kinds import DISCRETE, label_of
from bayesdag.errors import InputError, did_you_mean
from bayesdag.posterior.effect_result import Effect
from bayesdag.posterior.levels import Columns
from bayesdag.posterior.libraries import DataFrame

Labelled = Mapping[str, float | int | str]


class LevelCodes(NamedTuple):
    """Labels of the columns that have levels.

    Attributes:
        labels: by column, in the order of the codes.
        unordered: columns whose levels have no order.
    """

    labels: dict[str, tuple[str, ...]]
    unordered: frozenset[str]

    def code(self, column: str, value: SupportsFloat | str) -> float:
        """The code of a label; a number where the column has no levels."""
        if column not in self.labels:
            if isinstance(value, str):
                raise InputError(f"{column!r} holds numbers and cannot be {value!r}")
            return float(value)
        label, known = label_of(value), self.labels[column]
        if label not in known:
            raise InputError(
                f"{column!r} has no level {label!r}; {did_you_mean(label, known)}: one of "
                f"{', '.join(known[:8])}"
            )
        return float(known.index(label))

    def codes(self, assignment: Labelled | None) -> dict[str, float] | None:
        """Codes in place of the labels of an assignment."""
        if assignment is None:
            return None
        return {name: self.code(name, value) for name, value in assignment.items()}

    def two_codes(
        self, column: str, values: Sequence[SupportsFloat | str] | None
    ) -> tuple[float, ...] | None:
        """Codes of the values that a cause is set to."""
        return None if values is None else tuple(self.code(column, value) for value in values)

    def outcome(self, names: Sequence[str], said: str) -> tuple[str, int]:
        """A column, and the level whose probability is meant; -1: its mean.

        `"species=setosa"` is the probability of that level of the column "species".
        """
        column, equals, label = said.rpartition("=")
        if said not in names and equals and column in self.labels:
            return column, int(self.code(column, label))
        if said in self.unordered:
            first = self.labels[said][0]
            raise InputError(
                f"the levels of {said!r} have no order and no mean; ask for the probability of "
                f"one of them, for example outcome='{said}={first}'"
            )
        return said, -1

    def said(self, column: str, value: float) -> float | str:
        """The label of a code, a number where all labels are; a value of any other column."""
        if column not in self.labels:
            return value
        label = _as_numbers(self.labels[column])[int(value)]
        return label if isinstance(label, str) else float(label)

    def labelled(self, found: Effect, level: int) -> Effect:
        """An effect with labels in place of codes, and with what changes in words.

        Args:
            level: of the outcome, whose probability was compared; -1: its mean was.
        """
        low, high = found.values
        values = (self.said(found.cause, float(low)), self.said(found.cause, float(high)))
        return replace(found, values=values, quantity=self.quantity(found.outcome, level))

    def quantity(self, column: str, level: int) -> str:
        """What an effect is a change of, in words.

        Args:
            level: whose probability is meant; -1: the mean of the column.
        """
        labels = self.labels.get(column, ())
        level = 1 if level < 0 and len(labels) == 2 else level
        if level >= 0:
            return f"P({column} = {labels[level]})"
        if labels:
            return f"the mean code of {column} (0 … {len(labels) - 1})"
        return f"the mean of {column}"

    def encoded(self, table: DataFrame) -> DataFrame:
        """A table with codes in place of labels."""
        result = table.copy()
        for name in self.labels:
            if name in table.columns:
                cells = np.asarray(table[name], dtype=object).tolist()
                result[name] = [self.code(name, cell) for cell in cells]
        return result

    def decoded(self, table: DataFrame) -> DataFrame:
        """A table with labels in place of codes; as numbers where all of them are numbers."""
        result = table.copy()
        for name, labels in self.labels.items():
            if name in table.columns:
                known = _as_numbers(labels)
                result[name] = known[np.asarray(table[name], dtype=float).astype(int)]
        return result


def level_codes(columns: Columns, variables: Sequence[str]) -> LevelCodes:
    """From what a posterior keeps of its data; nothing in results without kinds."""
    kinds = {name: str(columns[name].get("kind", "continuous")) for name in variables}
    labels = {
        name: tuple(str(label) for label in columns[name].get("levels", ()))
        for name, kind in kinds.items()
        if kind in DISCRETE
    }
    unordered = frozenset(name for name, kind in kinds.items() if kind == "categorical")
    return LevelCodes(labels, unordered)


def _as_numbers(labels: tuple[str, ...]) -> Float[np.ndarray, " k"] | np.ndarray:
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels, dtype=object)
