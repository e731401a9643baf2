"""Checkpoints: results that a run need not compute again, in a file or in memory.

Everything is deterministic, so a run that is resumed repeats the cheap steps and finds the
results of the expensive ones (trained families, local searches, chains) in its journal: it ends
in the same bytes as one that was never interrupted.
"""

import hashlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesdag.errors import FileFormatError, WriteError
from bayesdag.runs import journal, trees
from bayesdag.runs.files import write_whole
from bayesdag.runs.journal import Arrays, Located
from bayesdag.types import (
    Announcer,
    HostKey,
    Monitor,
    PlainData,
    Pytree,
    Recorder,
    StatusReporter,
)
from bayesdag.types.late_imports import jax, jnp

_CHAINS = "chains"
_UNFINISHED = "unfinished "  # prefix of what is kept of a result on the way to it
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
        leaves, wanted = _leaves(arrays), pack(template)
        if [leaf.shape for leaf in leaves] != [like.shape for like in wanted.values()]:
            raise journal.refusal(str(self.path), "holds chains of other shapes than this run's")
        return _unpack(template, leaves)

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


@dataclass
class MemoryJournal:
    """Results of a run in memory, to be stored with its posterior and extended later.

    Only finished results are kept, whatever time they took: equal runs keep equal journals.

    Attributes:
        earlier: what a shorter run kept.
    """

    earlier: dict[str, np.ndarray] | None = None
    _known: dict[str, bytes] = field(default_factory=dict, repr=False)
    _used: dict[str, bytes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.earlier is None:
            return
        stored, name = self.earlier.get("journal"), "the state in this result"
        if stored is None:
            raise journal.refusal(name, "is of another version of bayesdag")
        content = np.asarray(stored, dtype=np.uint8).tobytes()
        file = io.BytesIO(content)
        for found in journal.scan(file, name):
            self._known[found.name] = content[found.start : found.start + found.length]

    @classmethod
    def knowing(cls, records: Mapping[str, Arrays]) -> "MemoryJournal":
        """A journal that begins with these records."""
        made = cls()
        made._known = {name: journal.record(name, arrays) for name, arrays in records.items()}
        return made

    def added(self) -> dict[str, Arrays]:
        """Results that this run has computed, or kept in place of others."""
        new = (name for name, content in self._used.items() if self._known.get(name) != content)
        return {name: journal.arrays_of(self._used[name]) for name in new}

    def kept(self) -> dict[str, np.ndarray]:
        """Results that this run has used or computed, as plain arrays."""
        content = b"".join(self._used[name] for name in sorted(self._used))
        return {"journal": np.frombuffer(content, dtype=np.uint8)}

    def get(self, name: str) -> Arrays | None:
        """The record of this name, or None."""
        content = self._used.get(name) or self._known.get(name)
        if content is None:
            return None
        self._used[name] = content
        return journal.arrays_of(content)

    def names(self) -> list[str]:
        """Names of all records."""
        return list(dict.fromkeys([*self._known, *self._used]))

    def put(self, name: str, arrays: Arrays) -> None:
        """Keep a finished result."""
        self._used[name] = journal.record(name, arrays)

    def put_unfinished(self, name: str, make: Callable[[], Arrays], *, last: bool) -> None:
        """Keep the last state of all."""
        if last:
            self.put(name, make())

    def unpacked(self, template: Pytree, arrays: Arrays) -> Pytree | None:
        """The state with room for the draws of a longer run; None where shapes forbid it."""
        wanted, leaves = list(pack(template).values()), _leaves(arrays)
        if len(wanted) != len(leaves):
            return None
        pairs = zip(wanted, leaves, strict=True)
        longer = [grown for like, leaf in pairs if (grown := _with_room(like, leaf)) is not None]
        return _unpack(template, longer) if len(longer) == len(wanted) else None


@dataclass(frozen=True)
class MonitorGroup:
    """Several monitors and journals as one `Recorder`.

    Attributes:
        monitors: who watches; those that are journals keep results.
        scope: prefix of the names of all results, with a slash at its end.
    """

    monitors: tuple[Any, ...] = ()
    scope: str = ""

    def child(self, name: str) -> "MonitorGroup":
        """The same monitors, with a name space of its own."""
        return replace(self, scope=f"{self.scope}{name}/")

    def recall(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The result of this name, from a journal or computed and kept."""
        name = self.scope + name
        found = self._first(lambda journal: journal.get(name))
        result = found if found is not None else dict(compute())
        for one in self._journals:
            if one.get(name) is None:
                one.put(name, result)
        return result

    def records(self) -> dict[str, Arrays]:
        """Everything that is kept in this scope, for a task that computes it elsewhere."""
        found: dict[str, Arrays] = {}
        for one in self._journals:
            for name in one.names():
                own = name.removeprefix(self.scope)
                if name.startswith(self.scope) and own not in found:
                    found[own] = one.get(name)
        return found

    def keep(self, records: Mapping[str, Arrays]) -> None:
        """Keep what a task has computed elsewhere, under the names it has in this scope."""
        for name, arrays in records.items():
            for one in self._journals:
                one.put(self.scope + name, arrays)

    def unfinished(self, name: str) -> Arrays | None:
        """The last state that was kept on the way to the result of this name."""
        return self._first(lambda journal: journal.get(self.scope + _UNFINISHED + name))

    def keep_unfinished(self, name: str, make: Callable[[], Arrays]) -> None:
        """Keep a state on the way to the result of this name, now and then."""
        for one in self._journals:
            one.put_unfinished(self.scope + _UNFINISHED + name, make, last=False)

    def resume(self, template: Pytree) -> Pytree | None:
        """The first state of chains that one of them kept."""
        name = self.scope + _CHAINS

        def state(one: Any) -> Pytree | None:
            found = one.get(name)
            return None if found is None else one.unpacked(template, found)

        found = self._first(state)
        if found is not None or self.scope:
            return found
        # Monitors that are no journals know of one run only: the outermost.
        return next((s for m in self._watchers if (s := m.resume(template)) is not None), None)

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Tell all of them."""
        for one in self._journals:
            one.put_unfinished(self.scope + _CHAINS, lambda: pack(state), last=step >= total)
        for monitor in self._watchers:
            monitor.chunk(step, total, state, stats)

    def report(self, words: str, done: int | None = None, total: int | None = None) -> None:
        """Tell those who want to hear it."""
        for monitor in self._watchers:
            if isinstance(monitor, StatusReporter):
                monitor.report(words, done, total)

    def announce(self, words: str) -> None:
        """Tell those who say it."""
        for monitor in self.monitors:
            if isinstance(monitor, Announcer):
                monitor.announce(words)

    @property
    def _journals(self) -> list[Any]:
        return [m for m in self.monitors if isinstance(m, Checkpoint | MemoryJournal)]

    @property
    def _watchers(self) -> list[Monitor]:
        return [m for m in self.monitors if not isinstance(m, Checkpoint | MemoryJournal)]

    def _first(self, ask: Callable[[Any], Any]) -> Any:
        return next((found for one in self._journals if (found := ask(one)) is not None), None)


def recorder_of(monitor: Monitor | Recorder | None) -> Recorder:
    """Recorder of a method, whatever monitor it has."""
    if isinstance(monitor, Recorder):
        return monitor
    return MonitorGroup(() if monitor is None else (monitor,))


def fingerprint(*decides: Pytree) -> str:
    """A name for a result, by everything that decides it."""
    digest = hashlib.blake2b(digest_size=12)
    for leaf in trees.leaves(decides):
        value = np.asarray(_plain(leaf))
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def pack(state: Pytree) -> dict[str, np.ndarray]:
    """The leaves of a tree, numbered."""
    return {f"leaf{k}": np.asarray(_plain(leaf)) for k, leaf in enumerate(trees.leaves(state))}


def unpack_like(structure: Pytree, arrays: Arrays) -> Pytree:
    """Inverse of `pack`: a tree of the same structure, whatever its leaves."""
    return trees.filled(structure, iter(_leaves(arrays)))


def _leaves(arrays: Arrays) -> list[np.ndarray]:
    return [arrays[f"leaf{k}"] for k in range(len(arrays))]


def _with_room(like: np.ndarray, leaf: np.ndarray) -> np.ndarray | None:
    """`leaf` at the start of an array of the longer run's shape."""
    if like.shape == leaf.shape:
        return leaf
    if like.ndim != leaf.ndim or like.shape[1:] != leaf.shape[1:] or len(like) < len(leaf):
        return None
    longer = np.array(like)
    longer[: len(leaf)] = leaf
    return longer


def _unpack(template: Pytree, leaves: list[np.ndarray]) -> Pytree:
    restored = (
        jax.random.wrap_key_data(jnp.asarray(leaf)) if _is_key(like) else leaf
        for like, leaf in zip(trees.leaves(template), leaves, strict=True)
    )
    return trees.filled(template, restored)


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, HostKey):
        return np.array(leaf.words, np.uint32)
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: object) -> bool:
    """Whether it is a key of JAX; where nobody has loaded JAX there are none."""
    if isinstance(leaf, np.ndarray | np.generic | int | float) or "jax" not in sys.modules:
        return False
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
