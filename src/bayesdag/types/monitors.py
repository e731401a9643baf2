"""Protocols of what watches a run: progress, words, results that are kept."""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from bayesdag.types.arrays import Pytree


@runtime_checkable
class Monitor(Protocol):
    """Watches a long run: shows progress, may stop it."""

    def resume(self, template: Pytree) -> Pytree | None:
        """State that an interrupted run left, in the structure of `template`, or None."""
        ...

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Called after each chunk of steps, with everything needed to go on from here."""
        ...


@runtime_checkable
class StatusReporter(Protocol):
    """A monitor that also wants to hear of work that is not counted in steps."""

    def report(self, words: str, done: int | None = None, total: int | None = None) -> None:
        """Report what is being done, and how much of it is done, where that can be counted."""
        ...


@runtime_checkable
class Announcer(Protocol):
    """A monitor that has a line of its own for what is said once."""

    def announce(self, words: str) -> None:
        """Say it at once."""
        ...


@runtime_checkable
class Recorder(Protocol):
    """A monitor as methods see it: it also keeps results, so that none is computed twice.

    Names of results belong to a scope; `child` opens one inside. The name of a result must say
    what decides it (`runs.packing.fingerprint`), so that a run with other inputs, as one that
    extends another, does not take it for its own.
    """

    def child(self, name: str) -> "Recorder":
        """The same recorder with a scope of its own: a noise model, a bag."""
        ...

    def recall(
        self, name: str, compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> Mapping[str, np.ndarray]:
        """The result of this name, or what `compute` returns, which is then kept."""
        ...

    def records(self) -> dict[str, Mapping[str, np.ndarray]]:
        """Everything that is kept in this scope, for a task that is computed elsewhere."""
        ...

    def keep(self, records: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Keep what a task has computed elsewhere, under the names it has in this scope."""
        ...

    def unfinished(self, name: str) -> Mapping[str, np.ndarray] | None:
        """The last state that was kept on the way to the result of this name, or None."""
        ...

    def keep_unfinished(self, name: str, make: Callable[[], Mapping[str, np.ndarray]]) -> None:
        """Keep a state on the way to a result, if it is time; `make` is called only then."""
        ...

    def resume(self, template: Pytree) -> Pytree | None:
        """The last state of this scope's chains, in the structure of `template`, or None."""
        ...

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Called after each chunk of steps, with everything needed to go on from here."""
        ...

    def report(self, words: str) -> None:
        """Report what is being done, and how much of it is done."""
        ...
