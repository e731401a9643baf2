"""The store: one JSON file per cell, written whole, found again by its place; and packs of them.

`<root>/<part>/<setting>/<method>/<seed>.json`, while a run goes on: one that was interrupted
resumes with the cells that are missing. What is kept is packed, one line per cell in
`<root>.jsonl.gz`.
Stores of several machines are put together by `merge`.
"""

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from bayesdag.errors import FileFormatError
from bayesdag.runs.files import write_whole
from bayesdag.types import PlainData

PACKED = ".jsonl.gz"
Status = Literal["done", "failed", "out of time", "out of memory"]


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
        return self.part, json.dumps(self.setting, sort_keys=True), self.method, self.seed

    @property
    def place(self) -> Path:
        """Its file, below the root of the store."""
        setting = "_".join(_slug(value) for value in self.setting.values()) or "all"
        return Path(_slug(self.part), setting, _slug(self.method), f"{self.seed}.json")


@dataclass(frozen=True)
class Store:
    """The cells of one suite: loose ones below a folder, others packed beside it.

    A loose cell stands in place of a packed one of the same key.

    Attributes:
        root: the folder; its name is that of the suite.
        known: stores whose cells count as measured; nothing is written there.
    """

    root: Path
    known: tuple["Store", ...] = ()

    @property
    def packed(self) -> Path:
        """The file of packed cells: JSON lines, compressed."""
        return self.root.with_name(self.root.name + PACKED)

    def find(self, cell: Cell) -> Cell | None:
        """The stored cell of the same part, setting, method and seed, or None."""
        path = self.root / cell.place
        if path.is_file():
            return _read(path)
        if cell.key in (packed := _unpacked(self.packed)):
            return packed[cell.key]
        return next((f for one in self.known if (f := one.find(cell)) is not None), None)

    def write(self, cell: Cell) -> None:
        """Keep a cell, in place of an earlier one of the same key."""
        path = self.root / cell.place
        if path.is_file() and (other := _read(path)).key != cell.key:
            raise FileFormatError(f"{path} holds another cell, {other.key}; rename one of the two")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _text(cell)
        write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def read(self) -> list[Cell]:
        """All cells, sorted by their place; those of `known` are not among them."""
        found = {**_unpacked(self.packed), **{cell.key: cell for cell in map(_read, self._loose())}}
        return sorted(found.values(), key=lambda cell: cell.place)

    def pack(self) -> None:
        """Put all cells into the packed file; equal cells give equal bytes.

        The file appears whole before loose cells are removed, so nothing is ever in neither.
        """
        loose = self._loose()
        if loose:
            write_pack(self.packed, {self.root.name: self.read()})
            for path in loose:
                path.unlink()
            _remove_empty(self.root)

    def _loose(self) -> list[Path]:
        return [path for path in sorted(self.root.rglob("*.json")) if path.name[0] != "."]


def write_pack(path: Path, cells: Mapping[str, Iterable[Cell]]) -> None:
    """Write cells by suite, one JSON line each, compressed, without a date."""
    lines = (
        json.dumps({"suite": suite} | _plain(asdict(cell)), ensure_ascii=False, allow_nan=False)
        for suite, some in cells.items()
        for cell in some
    )
    content = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda temporary: temporary.write_bytes(content))


def read_pack(path: Path) -> dict[str, list[Cell]]:
    """Cells by suite, of a packed file."""
    found: dict[str, list[Cell]] = {}
    try:
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            facts = json.loads(line)
            found.setdefault(facts.pop("suite"), []).append(Cell(**facts))
    except (OSError, EOFError, ValueError, TypeError, KeyError, zlib.error) as error:
        raise FileFormatError(f"{path} holds no packed cells of a benchmark ({error})") from error
    return found


def merge(source: Path, out: Path) -> dict[str, int]:
    """Take the cells of a packed file, or of a folder of stores, into the stores below `out`.

    A cell that is there already is replaced, unless the new one was lost and the old one was not.
    Returns how many cells were taken, by suite.
    """
    given = read_pack(source) if source.is_file() else _stores_below(source)
    taken: dict[str, int] = {}
    for suite, cells in given.items():
        store, taken[suite] = Store(out / suite), 0
        for cell in cells:
            old = store.find(cell)
            if old is None or cell.status == "done" or old.status != "done":
                store.write(cell)
                taken[suite] += 1
        store.pack()
    return taken


def _stores_below(folder: Path) -> dict[str, list[Cell]]:
    if not folder.is_dir():
        raise FileFormatError(f"{folder} is neither a file of packed cells nor a folder of stores")
    packed = {path.name.removesuffix(PACKED) for path in folder.glob(f"*{PACKED}")}
    names = packed | {path.name for path in folder.iterdir() if path.is_dir()}
    return {name: cells for name in sorted(names) if (cells := Store(folder / name).read())}


def _unpacked(path: Path) -> dict[tuple[str, str, str, int], Cell]:
    """Packed cells by key; read once for each state of the file."""
    if not path.is_file():
        return {}
    about = path.stat()
    return _unpacked_at(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _unpacked_at(path: Path, *state: int) -> dict[tuple[str, str, str, int], Cell]:
    del state
    return {cell.key: cell for cells in read_pack(path).values() for cell in cells}


def _remove_empty(folder: Path) -> None:
    """Remove folders without files."""
    for path in sorted((p for p in folder.rglob("*") if p.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


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
