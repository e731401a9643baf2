"""The store: one JSON file per cell, written whole, found again by its place; and packs of them.

`<root>/<part>/<setting>/<method>/<seed>.json`, while a run goes on: one that was interrupted
resumes with the cells that are missing. What is kept is packed, one line per cell in
`<root>.jsonl.gz`.
Stores of several machines are put together by `merge`.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bayesdag.bench.cells import Cell, cell_text, plain
from bayesdag.bench.commits import joined, of_one_commit
from bayesdag.errors import FileFormatError
from bayesdag.runs.files import write_whole

PACKED = ".jsonl.gz"


@dataclass(frozen=True)
class Store:
    """The cells of one suite: loose ones below a folder, others packed beside it.

    A loose cell stands in place of a packed one of the same key and commit; cells of another
    commit only where theirs is the commit that speaks for the row (`commits`).

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
        text = cell_text(cell)
        write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def read(self) -> list[Cell]:
        """Cells that speak, sorted by their place; those of `known` are not among them."""
        return sorted(of_one_commit(self._all()), key=lambda cell: cell.place)

    def unheard(self) -> list[Cell]:
        """Cells of commits that do not speak for their rows: `pack` does not keep them."""
        chosen = {cell.row: cell.origin for cell in self.read()}
        return [cell for cell in self._all() if cell.origin != chosen[cell.row]]

    def pack(self) -> None:
        """Put the cells that speak into the packed file; equal cells give equal bytes.

        The file appears whole before loose cells are removed, so nothing is ever in neither.
        """
        if self._loose():
            self._keep(self.read())

    def take(self, given: Iterable[Cell]) -> "Taken":
        """Pack the cells together with others, which never replace later ones."""
        stored, given = self._all(), list(given)
        cells = sorted(joined(stored, given), key=lambda cell: cell.place)
        ours = {id(cell) for cell in given}
        new = sum(id(cell) in ours for cell in cells)
        gone = {cell.key for cell in stored} - {cell.key for cell in cells}
        self._keep(cells)
        return Taken(new, len(given) - new, len(gone))

    def _all(self) -> list[Cell]:
        loose = {(cell.key, cell.origin): cell for cell in map(_read, self._loose())}
        packed = {(cell.key, cell.origin): cell for cell in _unpacked(self.packed).values()}
        return list((packed | loose).values())

    def _keep(self, cells: Iterable[Cell]) -> None:
        """Pack these cells, which are then all there are."""
        write_pack(self.packed, {self.root.name: cells})
        for path in self._loose():
            path.unlink()
        _remove_empty(self.root)

    def _loose(self) -> list[Path]:
        return [path for path in sorted(self.root.rglob("*.json")) if path.name[0] != "."]


def write_pack(path: Path, cells: Mapping[str, Iterable[Cell]]) -> None:
    """Write cells by suite, one JSON line each, compressed, without a date."""
    lines = (
        json.dumps({"suite": suite} | plain(asdict(cell)), ensure_ascii=False, allow_nan=False)
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


class Taken(NamedTuple):
    """What became of cells that were given to a store.

    Attributes:
        new: given cells that are now stored.
        left: given cells that are not: lost, of an earlier commit, or fewer than the stored ones.
        dropped: cells that were stored before and gave way to those of another commit.
    """

    new: int
    left: int
    dropped: int


def merge(source: Path, out: Path) -> dict[str, Taken]:
    """Take the cells of a packed file, or of a folder of stores, into the stores below `out`.

    One commit speaks for each row of a store, and a stored row never gives way to an earlier one.
    """
    given = read_pack(source) if source.is_file() else _stores_below(source)
    return {suite: Store(out / suite).take(cells) for suite, cells in given.items()}


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
