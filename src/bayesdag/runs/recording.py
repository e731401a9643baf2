"""The recorder of a run: all its monitors, and the journals among them, as one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from bayesdag.runs import packing
from bayesdag.runs.journal import Arrays
from bayesdag.types import Announcer, Monitor, Pytree, Recorder, StatusReporter

_CHAINS = "chains"
_UNFINISHED = "unfinished "  # prefix of what is kept of a result on the way to it


@runtime_checkable
class Journal(Protocol):
    """A store of named results: a file (`Checkpoint`) or memory (`MemoryJournal`)."""

    def get(self, name: str) -> Arrays | None:
        """The record of this name, or None."""
        ...

    def names(self) -> list[str]:
        """Names of all records."""
        ...

    def put(self, name: str, arrays: Arrays) -> None:
        """Keep a finished result."""
        ...

    def put_unfinished(self, name: str, make: Callable[[], Arrays], *, last: bool) -> None:
        """Keep a state on the way to a result, if it is time or the last one."""
        ...

    def unpacked(self, template: Pytree, arrays: Arrays) -> Pytree | None:
        """A state in the structure of `template`, or None where it does not fit."""
        ...


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
                if not name.startswith(self.scope) or own in found:
                    continue
                if (kept := one.get(name)) is not None:
                    found[own] = kept
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

        def state(one: Journal) -> Pytree | None:
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
            one.put_unfinished(
                self.scope + _CHAINS, lambda: packing.pack(state), last=step >= total
            )
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
    def _journals(self) -> list[Journal]:
        return [m for m in self.monitors if isinstance(m, Journal)]

    @property
    def _watchers(self) -> list[Monitor]:
        return [m for m in self.monitors if not isinstance(m, Journal)]

    def _first(self, ask: Callable[[Journal], Any]) -> Any:
        return next((found for one in self._journals if (found := ask(one)) is not None), None)


def recorder_of(monitor: Monitor | Recorder | None) -> Recorder:
    """Recorder of a method, whatever monitor it has."""
    if isinstance(monitor, Recorder):
        return monitor
    return MonitorGroup(() if monitor is None else (monitor,))
