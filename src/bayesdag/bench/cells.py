"""The store: one JSON file per cell, written whole, found again by its place.

`<root>/<part>/<setting>/<method>/<seed>.json`. Stores of several machines are put together by
copying their folders; a run that was interrupted goes on with the cells that are missing.
"""

import json
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from bayesdag.errors import FileFormatError
from bayesdag.runs.files import write_whole
from bayesdag.types import PlainData

Status = Literal["done", "failed", "out of time"]


@dataclass(frozen=True)
class Cell:
    """Measures of one method on one data set, or the reason why there are none, and their origin.

    Attributes:
        part: of the suite.
        setting: what the data set is an example of.
        method: the name in the tables.
        seed: of data and fit.
        status: "done", "failed" or "out of time".
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
        return self.part, json.dumps(self.setting, sort_keys=True), self.method, self.seed

    @property
    def place(self) -> Path:
        """Its file, below the root of the store."""
        setting = "_".join(_slug(value) for value in self.setting.values()) or "all"
        return Path(_slug(self.part), setting, _slug(self.method), f"{self.seed}.json")


@dataclass(frozen=True)
class Store:
    """The cells of one suite, below a folder."""

    root: Path

    def find(self, cell: Cell) -> Cell | None:
        """The stored cell of the same part, setting, method and seed, or None."""
        path = self.root / cell.place
        return _read(path) if path.is_file() else None

    def write(self, cell: Cell) -> None:
        """Keep a cell, in place of an earlier one of the same key."""
        path = self.root / cell.place
        if path.is_file() and (other := _read(path)).key != cell.key:
            raise FileFormatError(f"{path} holds another cell, {other.key}; rename one of the two")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _text(cell)
        write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def read(self) -> list[Cell]:
        """All cells, sorted by their place."""
        return [_read(path) for path in sorted(self.root.rglob("*.json")) if path.name[0] != "."]


def _read(path: Path) -> Cell:
    try:
        return Cell(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise FileFormatError(
            f"{path} is not a cell of a benchmark ({error}); remove it and it will be run again"
        ) from error


def _text(cell: Cell) -> str:
    """JSON with one line per field: small, and easy to compare."""
    fields = (
        f"{json.dumps(name)}: {json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)}"
        for name, value in asdict(cell).items()
    )
    return "{" + ",\n ".join(fields) + "}\n"


def _slug(value: object) -> str:
    return re.sub(r"[^\w.+=-]+", "-", str(value).lower()).strip("-") or "none"


def _plain(value: Any) -> Any:
    """JSON has no infinities: they become words, which `float` reads."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
