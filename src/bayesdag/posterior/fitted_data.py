"""How the data of a posterior were read, from the summary that it keeps of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayesdag.data import KINDS, Dataset
from bayesdag.errors import FileFormatError, InputError
from bayesdag.posterior.check_result import Check

_STEPS = ("drop", "only", "na_values", "log", "decimal", "scaling")


def options(summary: Mapping[str, Any], variables: Sequence[str]) -> dict[str, Any]:
    """Options of `read` with which the same table gives the same data; none for old results."""
    steps: Mapping[str, Any] = summary.get("preparation", {})
    logs = {f"log({name})" for name in steps.get("log", ())}
    declared = {name: _kind(summary, name) for name in variables if name not in logs}
    known = {name: kind for name, kind in declared.items() if kind is not None}
    kept = {name: steps[name] for name in _STEPS if name in steps}
    return {**kept, "kinds": known} if known else kept


def with_kinds_of(summary: Mapping[str, Any], data: Dataset) -> Dataset:
    """The data with those columns as numbers that were numbers to the method."""
    kinds = {name: (_kind(summary, name) or {"kind": kind.name}) for name, kind in _kinds(data)}
    codes = [
        name
        for name, kind in _kinds(data)
        if kind.name != "continuous" and kinds[name]["kind"] == "continuous"
    ]
    return data.as_numbers(codes, "taken as a number")


def check_of_completions(made: Check | None) -> Check:
    """The check that was made while completed rows were at hand: a table with gaps has none."""
    if made is None:
        raise InputError("the table has gaps, and completed rows were not checked during the fit")
    return made


def _kinds(data: Dataset) -> list[tuple[str, Any]]:
    return list(zip(data.names, data.kinds, strict=True))


def _kind(summary: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Kind and levels of a column, from a file that may hold anything; None: not stated."""
    facts = summary.get("columns", {}).get(name, {})
    if "kind" not in facts:
        return None
    levels: Any = facts.get("levels")
    if facts["kind"] not in KINDS or not isinstance(levels, list):
        raise FileFormatError(f"it states no possible kind of the column {name!r}")
    kind = {"kind": facts["kind"]}
    return {**kind, "levels": [*map(str, levels)]} if levels else kind  # pyright: ignore
