"""Results of a run in memory: what a longer run, or a task elsewhere, need not compute again."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bayesdag.runs import journal
from bayesdag.runs.journal import Arrays
from bayesdag.runs.packing import leaves_of, pack, unpack, with_room
from bayesdag.types import Pytree


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
        wanted, leaves = list(pack(template).values()), leaves_of(arrays)
        if len(wanted) != len(leaves):
            return None
        pairs = zip(wanted, leaves, strict=True)
        longer = [grown for like, leaf in pairs if (grown := with_room(like, leaf)) is not None]
        return unpack(template, longer) if len(longer) == len(wanted) else None
