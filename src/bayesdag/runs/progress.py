"""Progress of a run and time left: one line on a terminal, plain lines elsewhere.

Everything goes to stderr. A thread of its own writes, so that a stage that reports nothing
for a while still shows that it is at work; a fit that ends within seconds shows nothing.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from bayesdag.text import printable
from bayesdag.types import Pytree

SILENT_SECONDS = 2.0  # a fit shorter than this shows nothing
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 1.0  # of the one line on a terminal


class Stage(NamedTuple):
    """Stage of a run, and since when it has been counting.

    Attributes:
        words: what is being done.
        done: how much of it, or None where nothing is counted.
        total: out of how much.
        first: what was done when the count began, at `since` (seconds on the clock).
        figures: of the run as it is now, in words.
    """

    words: str
    done: int | None = None
    total: int | None = None
    first: int = 0
    since: float = 0.0
    figures: str = ""

    def next(self, words: str, done: int | None, total: int | None, now: float) -> "Stage":
        """The stage after a report; a count that goes on keeps its beginning."""
        if done is None or self.done is None:
            return Stage(words, done, total, done or 0, now)
        if total == self.total and done >= self.done:
            return self._replace(words=words, done=done, figures="")
        return Stage(words, done, total, done, now)

    def seconds_left(self, now: float) -> float | None:
        """From the speed since the count began; None where it cannot be estimated."""
        if self.done is None or self.total is None or self.done <= self.first:
            return None
        return (now - self.since) * (self.total - self.done) / (self.done - self.first)

    def describe(self, elapsed: float, now: float) -> str:
        """The stage on one line."""
        parts = [self.words]
        if self.done is not None and self.total:
            parts = [f"{self.words} {self.done}/{self.total} ({self.done / self.total:.0%})"]
        parts.append(f"{duration(elapsed)} so far")
        left = self.seconds_left(now)
        if left is not None:
            parts.append(f"about {duration(left)} left")
        if self.figures:
            parts.append(self.figures)
        return printable(", ".join(parts))


class ProgressReport:
    """A monitor that shows done / total and the time left; use it as a context manager."""

    def __init__(self) -> None:
        self._stage, self._started = Stage("working"), time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> "ProgressReport":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def announce(self, words: str) -> None:
        """Say something once, at once."""
        with suppress(OSError, ValueError):
            _write_line(printable(words))

    def resume(self, template: Pytree) -> None:
        """Nothing is kept here."""
        del template

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Take note of the steps that are done."""
        del state
        self.report("sampling", step, total)
        figures = (f"{name.replace('_', ' ')} {value:.5g}" for name, value in stats.items())
        self._stage = self._stage._replace(figures=", ".join(figures))

    def report(self, words: str, done: int | None = None, total: int | None = None) -> None:
        """Take note of what is being done."""
        self._stage = self._stage.next(words, done, total, time.monotonic())

    def describe(self) -> str:
        """Progress of the run, on one line."""
        now = time.monotonic()
        return self._stage.describe(now - self._started, now)

    def _show(self) -> None:
        if self._over.wait(SILENT_SECONDS):
            return
        try:
            terminal = _terminal()
            if terminal is None:
                self._write_lines()
            else:
                self._update_line(terminal)
        except (OSError, ValueError):
            return  # a reader that has gone is no reason to stop the run

    def _write_lines(self) -> None:
        _write_line(self.describe())
        while not self._over.wait(SECONDS_BETWEEN_LINES):
            _write_line(self.describe())

    def _update_line(self, console: Any) -> None:
        from rich.text import Text

        with console.status(Text(self.describe())) as status:
            while not self._over.wait(SECONDS_BETWEEN_UPDATES):
                status.update(Text(self.describe()))


@contextmanager
def progress_report(shown: bool) -> Iterator[ProgressReport | None]:
    """A progress report for the time of a run, or None where none is wanted."""
    if not shown:
        yield None
        return
    with ProgressReport() as report:
        yield report


def duration(seconds: float | int) -> str:
    """A time in the two units that matter.

    >>> duration(4), duration(130), duration(7500)
    ('4 s', '2 min 10 s', '2 h 5 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{minutes} min {rest} s" if hours < 1 else f"{hours} h {minutes} min"


def _terminal() -> Any:
    """The terminal behind stderr, if a line on it can be overwritten."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return None if console.is_dumb_terminal else console


def _write_line(words: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"bayesdag: {words}\n")
        sys.stderr.flush()
