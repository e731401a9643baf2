"""What a stated probability has been worth on generated data with a misfit like this one.

A model that does not fit is often too sure. How much too sure is not a matter of theory: the
benchmarks count, on data that break the model in known ways, how many of the edges that were
said to be at least 95 % probable are true, by misfit and number of rows. The counts come with the
package (`observed_reliability.json`, written by `bayesdag bench … --reliability-table`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from bayesdag.errors import FileFormatError
from bayesdag.types import Facts, PlainData

TABLE = Path(__file__).with_name("observed_reliability.json")
# Lower ends: nats per row and variable beyond what is negligible, and rows.
MISFITS = (0.0, 0.01, 0.05, 0.2)
ROWS = (0, 500, 2000)
ANY_ROWS = -1  # instead of the number of a bin of rows: all of them together
FEWEST_EDGES = 5  # below which a fraction says nothing
SURE, LIKELY = 0.95, 0.5


class EdgeCount(NamedTuple):
    """Edges said to be so probable, how many are true, and the 95 % interval of the share."""

    said: int
    true: int
    low: float
    high: float


@dataclass(frozen=True)
class ReliabilityEntry:
    """What was observed under one model, at one size of misfit and number of rows.

    Attributes:
        model: as `model_of` names it.
        misfit: number of the bin in `MISFITS`.
        rows: number of the bin in `ROWS`, or `ANY_ROWS`.
        datasets: how many were fitted.
        sure: edges said to be at least 95 % probable.
        likely: edges said to be 50 to 95 % probable.
    """

    model: str
    misfit: int
    rows: int
    datasets: int
    sure: EdgeCount
    likely: EdgeCount


@dataclass(frozen=True)
class ObservedReliability:
    """The counts of all models, and where they come from.

    Attributes:
        entries: one per model, bin of misfit and bin of rows.
        origin: command, commits and families of data, as plain data.
    """

    entries: tuple[ReliabilityEntry, ...] = ()
    origin: Facts = field(default_factory=PlainData)

    def find(self, model: str, misfit: float, num_rows: int) -> ReliabilityEntry | None:
        """The counts under this model, with a misfit and a number of rows like these.

        Where too few edges were said to be sure with so many rows, those with any number of rows.
        """
        place = (model, bin_of(misfit, MISFITS))
        alike = {e.rows: e for e in self.entries if (e.model, e.misfit) == place}
        own, of_all = alike.get(bin_of(num_rows, ROWS)), alike.get(ANY_ROWS)
        return own if own is not None and own.sure.said >= FEWEST_EDGES else of_all or own

    def sentence(self, model: str, misfit: float | None, num_rows: int) -> str:
        """What 95 % has been worth, in words; or that nobody has measured it."""
        if misfit is None:
            return (
                "What a probability of 95 % is worth here is not known: there are too few rows to "
                "measure how far the model fits."
            )
        entry = self.find(model, misfit, num_rows)
        rows = bin_words(num_rows, ROWS, "fewer than", "rows")
        if entry is not None and entry.rows == ANY_ROWS:
            rows = "any number of rows"
        like = f"{bin_words(misfit, MISFITS, 'below', 'nats per row and variable')}, {rows}"
        if entry is None:
            return (
                "What a probability of 95 % is worth here has not been measured: no generated "
                f"data with a misfit like this ({like}) were fitted by this model."
            )
        if entry.sure.said < FEWEST_EDGES:
            return (
                f"On generated data with a misfit like this ({like}), too few edges were said to "
                f"be at least 95 % probable to judge by ({entry.sure.said})."
            )
        return (
            f"On generated data with a misfit like this ({like}), edges said to be at least 95 % "
            f"probable were right in {_observed(entry.sure)}{_and_likely(entry.likely)}."
        )

    def to_json(self) -> str:
        """The file that comes with the package."""
        entries = [asdict(entry) for entry in self.entries]
        lines = ",\n  ".join(json.dumps(entry) for entry in entries)
        bins = json.dumps({"misfits": MISFITS, "rows": ROWS})
        origin = json.dumps(dict(self.origin), ensure_ascii=False)
        return f'{{"bins": {bins},\n "origin": {origin},\n "entries": [\n  {lines}\n]}}\n'


@cache
def shipped() -> ObservedReliability:
    """The counts that come with this version; none where they were not measured."""
    return read(TABLE) if TABLE.is_file() else ObservedReliability()


def read(path: Path) -> ObservedReliability:
    """Counts from a file that `to_json` wrote."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        bins = stored["bins"]
        if (tuple(bins["misfits"]), tuple(bins["rows"])) != (MISFITS, ROWS):
            raise ValueError("its bins are those of another version")
        return ObservedReliability(tuple(map(_entry, stored["entries"])), stored["origin"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(
            f"{path} is no table of observed reliability ({error}); write it again with "
            "bayesdag bench reliability --tables-only --reliability-table FILE"
        ) from error


def model_of(method: Facts | None) -> str:
    """Name of what decides how sure a method is: its score, or else the method itself.

    `exact` and `collapsed` with one score have one posterior, so they share what was observed:
    of evidence that counts less where the rows contradict the model. Of evidence that is taken at
    its word nothing was.
    """
    if not isinstance(method, Mapping) or not method.get("coarsened", True):
        return ""
    score = method.get("score")
    chosen = cast(Facts, score) if isinstance(score, Mapping) else method
    return str(chosen.get("plugin", ""))


def bin_of(value: float | int, lower_ends: Sequence[float | int]) -> int:
    """Number of the bin that holds a value; all below the first are in it."""
    return max(int(np.searchsorted(lower_ends, value, side="right")) - 1, 0)


def bin_words(value: float | int, lower_ends: Sequence[float | int], less: str, unit: str) -> str:
    """The bin of a value, in words; `less` is the comparative that suits the unit."""
    number = bin_of(value, lower_ends)
    if number == 0:
        return f"{less} {lower_ends[1]:g} {unit}"
    if number == len(lower_ends) - 1:
        return f"{lower_ends[-1]:g} or more {unit}"
    return f"{lower_ends[number]:g} to {lower_ends[number + 1]:g} {unit}"


def _entry(stored: Facts) -> ReliabilityEntry:
    counts: PlainData = {name: EdgeCount(*stored[name]) for name in ("sure", "likely")}
    return ReliabilityEntry(**{**stored, **counts})


def _observed(count: EdgeCount) -> str:
    fraction, low, high = (f"{100 * x:.0f} %" for x in (count.true / count.said, *count[2:]))
    return f"{fraction} ({count.true} of {count.said}; 95 % interval {low} to {high})"


def _and_likely(count: EdgeCount) -> str:
    if count.said < FEWEST_EDGES:
        return ""
    return f", those said to be 50 to 95 % probable in {_observed(count)}"
