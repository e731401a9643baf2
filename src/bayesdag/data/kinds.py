"""What a column holds: a measurement, a count, or one of some levels."""

import datetime
import re
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag.errors import InputError, did_you_mean
from bayesdag.text import why_unreadable

KINDS = ("continuous", "count", "ordinal", "binary", "categorical")
# What of a YAML file is not text: YAML itself takes `no` for false and 010 for eight.
_PLAIN_YAML = {
    "null": r"null|~|",
    "bool": r"(true|True|TRUE|false|False|FALSE)",
    "int": r"[-+]?(0|[1-9]\d*)",
    "float": r"[-+]?(0|[1-9]\d*)?\.\d+([eE][-+]?\d+)?|[-+]?[1-9]\d*\.",
}
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


def label_numbers(kind: Kind) -> Float[np.ndarray, " k"] | None:
    """The labels of a kind's levels as numbers; None where one is none, or there are none."""
    try:
        return np.array([float(level) for level in kind.levels]) if kind.levels else None
    except ValueError:
        return None


class Declaration(NamedTuple):
    """What somebody says of a column: its kind, its levels in order, or both.

    Attributes:
        name: of the kind; None: by the number of levels.
        levels: their labels in order; None: those that occur.
        reason: that is kept of the column.
    """

    name: str | None = None
    levels: tuple[str, ...] | None = None
    reason: str = "declared"


def declarations(given: object) -> dict[str, Declaration]:
    """What is said of columns, from a mapping or a YAML file.

    Args:
        given: for each column a kind ("ordinal"), its levels in order (["low", "high"]), both
            ({"kind": "categorical", "levels": [...]}), or a `Kind`.
    """
    if given is None:
        return {}
    if isinstance(given, str | Path):
        given = _read_yaml(Path(given))
    if not isinstance(given, Mapping):
        raise InputError(
            f"kinds are a mapping from columns to kinds or levels, not {type(given).__name__}; "
            "for example {'grade': ['low', 'mid', 'high'], 'visits': 'count'}"
        )
    return {str(name): _declaration(str(name), said) for name, said in given.items()}


def _declaration(name: str, said: object) -> Declaration:
    if isinstance(said, Kind):
        found = Declaration(said.name, said.levels or None)
    elif isinstance(said, str):
        found = Declaration(said)
    elif isinstance(said, list | tuple):
        found = Declaration(None, tuple(map(label_of, said)))
    elif isinstance(said, Mapping) and said and set(said) <= {"kind", "levels", "reason"}:
        found = _listed(said)
    else:
        raise InputError(
            f"column {name!r} is declared {said!r}; give a kind ({', '.join(KINDS)}) or a list of "
            "its levels in order"
        )
    if found.name is not None:
        refuse_unknown(found.name, name)
    _refuse_levels(found, name)
    return found


def _listed(said: Mapping[str, Any]) -> Declaration:
    levels = said.get("levels")
    labels = None if levels is None else tuple(map(label_of, levels))
    return Declaration(said.get("kind"), labels, str(said.get("reason", "declared")))


def _refuse_levels(found: Declaration, name: str) -> None:
    """Refuses levels of columns that have none, too few, or the same twice."""
    if found.levels is None:
        return
    if found.name in {"continuous", "count"}:
        raise InputError(f"column {name!r} is declared {found.name} with levels; it has none")
    if len(set(found.levels)) < max(2, len(found.levels)):
        raise InputError(
            f"column {name!r} is declared with the levels {', '.join(found.levels)}; give two or "
            "more different ones"
        )


def _read_yaml(path: Path) -> object:
    """Text stays text: yes, no, dates and 007 are labels, and names of columns."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}  # pyright: ignore[reportIncompatibleVariableOverride]

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            names = [key.value for key, _ in node.value]
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise InputError(f"{str(path)!r} declares {twice[0]!r} twice; keep one")
            return super().construct_mapping(node, deep=deep)

    for kind, pattern in _PLAIN_YAML.items():
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{pattern})$"), None
        )
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file of kinds {str(path)!r} {why_unreadable(error)}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(f"{str(path)!r} is not valid YAML{where}: {reason}") from error
    return {} if content is None else content


def label_of(value: object) -> str:
    """A label as people write it: 2.0 is 2, a date is a date."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        return str(int(float(value)))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value).strip()


def label_rank(label: str) -> tuple[int, float, str]:
    """Key that sorts labels: numbers by their size, then text by the alphabet."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
