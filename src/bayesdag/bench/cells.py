"""A cell: what one method measured on one data set, and where that was."""

import json
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from bayesdag.types import PlainData

Status = Literal["done", "failed", "out of time", "out of memory"]
Row = tuple[str, str, str]  # part, setting and method
Origin = tuple[str | None, bool]  # commit, and whether files differed from it


@dataclass(frozen=True)
class Cell:
    """Measures of one method on one data set, or the reason why there are none, and their origin.

    Attributes:
        part: of the suite.
        setting: what the data set is an example of.
        method: the name in the tables.
        seed: of data and fit.
        status: "done", or the way it was lost.
        measures: plain data; under `series`, one set of measures for each row of a table.
        stamp: commit, versions, device, seconds and settings.
        error: text of the exception, or empty.
    """

    part: str
    setting: PlainData
    method: str
    seed: int
    status: Status = "done"
    measures: PlainData = field(default_factory=dict)
    stamp: PlainData = field(default_factory=dict)
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Identity of the cell: equal cells have equal keys."""
        return *self.row, self.seed

    @property
    def row(self) -> Row:
        """The row of results that it belongs to: all data sets of one setting."""
        return self.part, json.dumps(self.setting, sort_keys=True), self.method

    @property
    def origin(self) -> Origin:
        """The commit that measured it, and whether files differed from it."""
        return self.stamp.get("commit"), bool(self.stamp.get("changed"))

    @property
    def device(self) -> str | None:
        """The device that it ran on, and whether other cells or programs slowed it there."""
        name = self.stamp.get("device")
        return f"{name}, shared" if name and self.stamp.get("note") else name

    @property
    def place(self) -> Path:
        """Its file, below the root of the store."""
        setting = "_".join(_slug(value) for value in self.setting.values()) or "all"
        return Path(_slug(self.part), setting, _slug(self.method), f"{self.seed}.json")


def cell_text(cell: Cell) -> str:
    """JSON with one line per field: small, and easy to compare."""
    fields = (
        f"{json.dumps(name)}: {json.dumps(plain(value), ensure_ascii=False, allow_nan=False)}"
        for name, value in asdict(cell).items()
    )
    return "{" + ",\n ".join(fields) + "}\n"


def plain(value: Any) -> Any:
    """JSON has no infinities: they become words, which `float` reads."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _slug(value: object) -> str:
    return re.sub(r"[^\w.+=-]+", "-", str(value).lower()).strip("-") or "none"
