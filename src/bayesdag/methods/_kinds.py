"""Which methods have a model for which kinds of columns, and what the others do with them.

A method that knows measurements only takes codes for numbers, with a warning that names them;
text with more than two labels has no numbers, and is refused with the methods that can.
"""

import warnings
from dataclasses import replace
from functools import cache

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.data.kinds import label_numbers
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.types import MEASUREMENTS, Method, PlainData, Score, kinds_taken


@cache
def _registered() -> dict[str, frozenset[str]]:
    """Kinds that every score takes with its default settings, by name."""
    return {name: kinds_taken(plugins.load("scores", name)()) for name in plugins.names("scores")}


def kinds_of_scores() -> frozenset[str]:
    """Kinds that the most general score of measurements takes."""
    return max((kinds for kinds in _registered().values() if kinds >= MEASUREMENTS), key=len)


def score_for(kinds: frozenset[str], usual: Score) -> Score:
    """The score itself where it takes these kinds; else the most special one that does."""
    if kinds <= kinds_taken(usual):
        return usual
    able = sorted((len(taken), name) for name, taken in _registered().items() if kinds <= taken)
    return plugins.load("scores", able[0][1])() if able else usual


def as_taken(method: Method, name: str, data: Dataset) -> Dataset:
    """The data as the method takes them: columns that it has no model for as numbers."""
    codes = _codes(method, data)
    if not codes:
        return data
    refuse(method, name, data)
    return data.as_numbers(codes, f"taken as a number: method {name!r} has no model for its kind")


def _codes(method: Method, data: Dataset) -> list[str]:
    """Names of the variables that the method has no model for."""
    taken = kinds_taken(method) | MEASUREMENTS
    variables = zip(data.names, data.kinds, ~data.contexts, strict=True)
    return [name for name, kind, own in variables if own and kind.name not in taken]


def refuse(method: Method, name: str, data: Dataset) -> None:
    """Refuses text with more than two labels where the method has no model for it."""
    for column, kind in zip(data.names, data.kinds, strict=True):
        no_number = kind.is_discrete and label_numbers(kind) is None and len(kind.levels) > 2
        if no_number and kind.name not in kinds_taken(method):
            shown = f"{', '.join(kind.levels[:3])}{', …' * (len(kind.levels) > 3)}"
            raise InputError(
                f"column {column!r} is {kind.name} ({shown}), and method {name!r} takes numbers "
                f"only; {_instead(data, 'use method ')}drop the column (drop, --drop {column}), "
                "or, if it says where rows come from, pass its name as `environment`"
            )


def warn(method: Method, name: str, data: Dataset) -> None:
    """Says which columns are codes that the method takes for measurements."""
    kind = dict(zip(data.names, data.kinds, strict=True))
    codes = [f"{column!r} ({kind[column].name})" for column in _codes(method, data)]
    if not codes:
        return
    more = f" and {len(codes) - 5} more" if len(codes) > 5 else ""
    warnings.warn(
        f"method {name!r} takes {', '.join(codes[:5])}{more} for measurements: directions and "
        f"effects of such columns may be artefacts of their coding"
        f"{_instead(data, '; a model for them has method ').removesuffix(', ')}",
        BayesdagWarning,
        stacklevel=3,
    )


def able(data: Dataset) -> list[str]:
    """Methods that have a model for every column of these data, with their default settings."""
    return [n for n in plugins.names("methods") if data.kinds_present <= taken_by(n)]


def taken_by(name: str) -> frozenset[str]:
    """Kinds that the method of this name takes with its default settings."""
    return kinds_taken(plugins.load("methods", name)())


def _instead(data: Dataset, words: str) -> str:
    names = able(data)
    return f"{words}{' or '.join(map(repr, names))}, " if names else ""


def with_score_for(method: Method, data: Dataset) -> tuple[Method, list[str]]:
    """The method with a score that has a model for all columns, and why it was exchanged."""
    usual: Score = method.score  # pyright: ignore[reportAttributeAccessIssue]
    score = score_for(data.kinds_present, usual)
    if score is usual:
        return method, []
    name = type(score).__module__.rpartition(".")[2]
    kinds = ", ".join(sorted(data.kinds_present - kinds_taken(usual)))
    note = f"score {name!r} is used, because there are columns that it has a model for ({kinds})"
    return replace(method, score=score), [note]  # pyright: ignore[reportArgumentType]


def stated(provenance: PlainData, chosen: Method, notes: list[str]) -> PlainData:
    """Provenance of a result, with the method that was chosen and why."""
    return {
        **provenance,
        "chosen": plugins.configuration(chosen),
        "notes": [*notes, *provenance.get("notes", [])],
    }
