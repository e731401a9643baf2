"""How the data of a posterior were read, from the summary that it keeps of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayesdag.data import KINDS, Dataset, preparing, read, tables
from bayesdag.data.preparing import Preparation
from bayesdag.data.reading import labelled
from bayesdag.errors import FileFormatError, InputError
from bayesdag.posterior.check_result import Check
from bayesdag.posterior.libraries import DataFrame


def read_again(
    summary: Mapping[str, Any],
    variables: Sequence[str],
    source: object,
    interventions: object,
    environment: object,
) -> Dataset:
    """A table, prepared and understood as the one that was fitted.

    Columns that were dropped, or that it does not have, may be missing in it: whether these are
    the data that were fitted is judged afterwards.
    """
    steps: Mapping[str, Any] = summary.get("preparation", {})
    table = tables.frame(source, decimal=str(steps.get("decimal", ".")))
    kept = {name: steps[name] for name in (*Preparation._fields, "scaling") if name in steps}
    if "drop" in kept:
        kept["drop"] = [name for name in kept["drop"] if name in table.columns] or None
    logs = {preparing.log_name(name) for name in steps.get("log", ())}
    declared = {name: _kind(summary, name) for name in variables if name not in logs}
    known = {n: kind for n, kind in declared.items() if kind is not None and n in table.columns}
    asked = {"interventions": interventions, "environment": environment}
    return read(table, kinds=known or None, **asked, **kept)


def units(summary: Mapping[str, Any], rows: object) -> DataFrame:
    """Rows with labels and logarithms, from the table as it was before it was prepared, too."""
    if isinstance(rows, Dataset):
        return labelled(rows)
    steps: Mapping[str, Any] = summary.get("preparation", {})
    table = tables.frame(rows, decimal=str(steps.get("decimal", ".")))
    logs = [name for name in steps.get("log", ()) if name in table.columns]
    return preparing.with_logarithms(table, logs)


def with_kinds_of(summary: Mapping[str, Any], data: Dataset) -> Dataset:
    """The data with those columns as numbers that were numbers to the method."""
    kinds = {name: (_kind(summary, name) or {"kind": kind.name}) for name, kind in _kinds(data)}
    codes = [
        name
        for name, kind in _kinds(data)
        if kind.name != "continuous" and kinds[name]["kind"] == "continuous"
    ]
    why = next((str(kinds[name]["reason"]) for name in codes), "")
    return data.as_numbers(codes, why)


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
    kind = {"kind": facts["kind"], "reason": str(facts.get("reason", ""))}
    return {**kind, "levels": [*map(str, levels)]} if levels else kind  # pyright: ignore
