"""A progress line on the terminal."""

from dataclasses import dataclass
from typing import Any


@dataclass
class ProgressLine:
    """A line on the terminal: energy, expected edges, time left.

    Used as a context manager, so that the line is closed whatever happens.
    """

    def __enter__(self) -> "ProgressLine":
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Line

        columns = (
            BarColumn(),
            TextColumn("{task.fields[steps]}"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        )
        self._line = Line(*columns, console=Console(stderr=True), transient=True)
        self._line.start()
        self._task = None
        return self

    def __exit__(self, *_: Any) -> None:
        self._line.stop()

    def resume(self, template: Any) -> None:
        """Nothing is kept here."""
        del template

    def chunk(self, step: int, total: int, state: Any, stats: dict[str, float]) -> None:
        """Show the newest figures."""
        del state
        words = "  ".join(f"{name.replace('_', ' ')} {value:.5g}" for name, value in stats.items())
        self._show(words, completed=step, total=total, steps=f"{step}/{total}")

    def report(self, words: str) -> None:
        """Show what is being done before steps can be counted."""
        self._show(words, steps="")

    def _show(self, words: str, **fields: Any) -> None:
        if self._task is None:
            self._task = self._line.add_task(words, total=None, steps="")
        self._line.update(self._task, description=words, **fields)
