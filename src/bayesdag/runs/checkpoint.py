"""Checkpoints: results that a run need not compute again, in a file.

Everything is deterministic, so a run that is resumed repeats the cheap steps and finds the
results of the expensive ones (trained families, local searches, chains) in its journal: it ends
in the same bytes as one that was never interrupted.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bayesdag.errors import FileFormatError, WriteError
from bayesdag.runs import journal, packing
from bayesdag.runs.files import write_whole
from bayesdag.runs.journal import Arrays, Located
from bayesdag.types import PlainData, Pytree

# Bytes of superseded records, beyond those of valid ones, after which a file is rewritten.
_MAX_GARBAGE = 1 << 26
_MAX_PENDING = 1 << 26  # bytes that wait for the next write


@dataclass
class Checkpoint:
    """A journal in a file, appended to as a run goes on and read when it is resumed.

    Attributes:
        path: the file. Records are appended, so a kill costs the last few seconds.
        settings: everything that decides the outcome; a file of other settings is refused.
        every: seconds between two writes of states on the way to a result. Wall time decides
            only *when* something is kept, never what it is.
        results_every: seconds that finished results may wait for one another, to be written
            together.
    """

    path: Path
    settings: PlainData
    every: float = 10.0
    results_every: float = 2.0
    _located: dict[str, Located] | None = field(default=None, repr=False)
    _end: int = field(default=0, repr=False)
    _pending: dict[str, bytes] = field(default_factory=dict, repr=False)
    _flushed: float = field(default_factory=time.monotonic, repr=False)
    _kept: dict[str, float] = field(default_factory=dict, repr=False)

    def open(self) -> None:
        """Read what an interrupted run left; refuse what is no checkpoint of this run."""
        if self._located is None:
            self._located = self._read() if self.path.exists() else {}

    def get(self, name: str) -> Arrays | None:
        """The last record of this name, or None."""
        self.open()
        if (waiting := self._pending.get(name)) is not None:
            return journal.arrays_of(waiting)
        found = (self._located or {}).get(name)
        return None if found is None else journal.arrays_of(self._content(found))

    def names(self) -> list[str]:
        """Names of all records."""
        self.open()
        return list(dict.fromkeys([*(self._located or {}), *self._pending]))

    def put(self, name: str, arrays: Arrays) -> None:
        """Keep a finished result; it is written with others of the same moment."""
        self.open()
        self._pending[name] = journal.record(name, arrays)
        waiting = sum(map(len, self._pending.values()))
        if time.monotonic() - self._flushed >= self.results_every or waiting > _MAX_PENDING:
            self.flush()

    def put_unfinished(self, name: str, make: Callable[[], Arrays], *, last: bool) -> None:
        """Keep a state on the way to a result, unless one was kept a moment ago."""
        now = time.monotonic()
        if last or now - self._kept.get(name, float("-inf")) >= self.every:
            self._kept[name] = now
            self.put(name, make())
            self.flush()

    def unpacked(self, template: Pytree, arrays: Arrays) -> Pytree:
        """A state in the structure of `template`; other shapes are refused."""
        leaves, wanted = packing.leaves_of(arrays), packing.pack(template)
        if [leaf.shape for leaf in leaves] != [like.shape for like in wanted.values()]:
            raise journal.refusal(str(self.path), "holds chains of other shapes than this run's")
        return packing.unpack(template, leaves)

    def flush(self) -> None:
        """Write what is waiting."""
        self._flushed = time.monotonic()
        if not self._pending:
            return
        try:
            self._append()
        except WriteError:
            raise
        except OSError as error:
            raise WriteError(
                f"cannot write the checkpoint {self.path}: {error.strerror or error}; make room "
                "or choose another folder, and repeat the command to resume"
            ) from error

    def _append(self) -> None:
        assert self._located is not None
        if not self._end:
            start = journal.header(self.settings)
            write_whole(self.path, lambda to: to.write_bytes(start))
            self._end = len(start)
        with self.path.open("r+b") as file:
            file.truncate(self._end)  # a torn record of a killed run
            file.seek(self._end)
            for name, content in self._pending.items():
                file.write(content)
                self._located[name] = Located(name, self._end, len(content))
                self._end += len(content)
            file.flush()
            os.fsync(file.fileno())
        self._pending.clear()
        valid = sum(found.length for found in self._located.values())
        if self._end - valid > valid + _MAX_GARBAGE:
            self._rewrite()

    def _rewrite(self) -> None:
        """A new file without superseded records, in the place of the old one."""
        assert self._located is not None
        located, start = {}, journal.header(self.settings)
        end = len(start)

        def write(to: Path) -> None:
            nonlocal end
            with to.open("wb") as file:
                file.write(start)
                for found in self._located.values():  # pyright: ignore
                    file.write(self._content(found))
                    located[found.name] = found._replace(start=end)
                    end += found.length

        write_whole(self.path, write)
        self._located, self._end = located, end

    def _content(self, found: Located) -> bytes:
        with self.path.open("rb") as file:
            file.seek(found.start)
            return file.read(found.length)

    def _read(self) -> dict[str, Located]:
        name = str(self.path)
        try:
            with self.path.open("rb") as file:
                self._refuse_other_settings(journal.read_header(file, name))
                self._end = file.tell()
                located = {}
                for found in journal.scan(file, name):
                    located[found.name] = found
                    self._end = found.start + found.length
        except (OSError, ValueError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise journal.refusal(name, f"cannot be read ({error})") from error
        return located

    def _refuse_other_settings(self, theirs: PlainData) -> None:
        mine = json.loads(json.dumps(self.settings))
        different = sorted(k for k in theirs.keys() | mine.keys() if theirs.get(k) != mine.get(k))
        if different:
            raise FileFormatError(
                f"{self.path} belongs to a run with another {', '.join(different)}; "
                "repeat that command to resume it, or remove the file to start afresh"
            )
