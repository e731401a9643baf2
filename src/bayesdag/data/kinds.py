"""What a column holds: a measurement, a count, or one of some levels."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Shaped

from bayesdag.errors import InputError, did_you_mean

KINDS = ("continuous", "count", "ordinal", "binary", "categorical")
# Kinds whose values are codes 0 … K−1 of labels.
DISCRETE = frozenset({"ordinal", "binary", "categorical"})


class Kind(NamedTuple):
    """What one column holds.

    Attributes:
        name: one of `KINDS`.
        levels: labels of a binary, ordinal or categorical column in the order of their codes
            0 … K−1; none for continuous columns and counts.
        reason: why, in words: declared, by the type of the column, or found by looking.
    """

    name: str
    levels: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_discrete(self) -> bool:
        """Whether values are codes of levels."""
        return self.name in DISCRETE

    def to_dict(self) -> dict[str, Any]:
        """As the summary of a data set keeps it."""
        return {"kind": self.name, "levels": [*self.levels], "reason": self.reason}


CONTINUOUS = Kind("continuous")


def refuse_bad_kinds(
    kinds: tuple[Kind, ...], values: Shaped[np.ndarray, "n d"], names: tuple[str, ...]
) -> None:
    """Refuses kinds that are unknown, or that values contradict."""
    if len(kinds) != len(names):
        raise InputError(f"there are {len(kinds)} kinds for {len(names)} columns; give one each")
    for kind, column, name in zip(kinds, values.T, names, strict=True):
        refuse_unknown(kind.name, name)
        if kind.is_discrete and not kind.levels:
            raise InputError(
                f"column {name!r} is declared {kind.name} without levels; list their labels"
            )
        if kind.name == "binary" and len(kind.levels) != 2:
            raise InputError(
                f"column {name!r} is declared binary with {len(kind.levels)} levels; "
                "a binary column has two"
            )
        _refuse_wrong_numbers(kind, column, name)


def refuse_unknown(kind: object, name: str) -> None:
    """Refuses what is no kind."""
    if kind not in KINDS:
        raise InputError(
            f"column {name!r} is declared {kind!r}, which is no kind ({did_you_mean(kind, KINDS)})"
        )


def _refuse_wrong_numbers(kind: Kind, column: Shaped[np.ndarray, " n"], name: str) -> None:
    """Refuses numbers that are no codes of levels, or no counts."""
    if kind.name == "continuous":
        return
    bound = len(kind.levels) if kind.is_discrete else np.inf
    wrong = np.flatnonzero((column < 0) | (column >= bound) | (column != np.floor(column)))
    if not wrong.size:
        return
    needed = (
        f"codes 0 to {len(kind.levels) - 1} of its levels"
        if kind.is_discrete
        else "whole numbers from 0 on"
    )
    raise InputError(
        f"column {name!r} is {kind.name} and holds {column[wrong[0]]:g} in row {wrong[0] + 1}; it "
        f"needs {needed}: correct it, or declare the column continuous"
    )


def unscaled(kinds: tuple[Kind, ...]) -> Bool[np.ndarray, " d"]:
    """True where values are codes or counts: engines get them as they are."""
    return np.array([kind.name != "continuous" for kind in kinds])
