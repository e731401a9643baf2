"""How answers look: tables with rules on a terminal, plain columns in a pipe, or JSON.

Names of columns come from the data: they are never taken as markup, never cut, and what a
terminal would obey is shown escaped.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from bayesdag.text import printable

if TYPE_CHECKING:
    import pandas
    from rich.console import Console

NOTHING = "–"
# In a pipe nobody says how wide a line may be, so nothing is wrapped or cut.
_NO_LIMIT = 1_000_000


def print_table(frame: "pandas.DataFrame", title: str | None = None, digits: str = ".3f") -> None:
    """A table with a title; numbers to the right, written as `digits` says."""
    print_rows(list(frame.columns), frame.itertuples(index=False), title, digits)


def print_rows(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str | None = None,
    digits: str = ".3f",
) -> None:
    """Rows under their headings."""
    from rich.table import Table as RichTable

    rows, piped = [tuple(row) for row in rows], not sys.stdout.isatty()
    looks: dict[str, Any] = {"box": None, "pad_edge": False} if piped else {}
    table = RichTable(title=title and printable(title), title_justify="left", **looks)
    for place, heading in enumerate(headings):
        numeric = all(_is_number(row[place]) for row in rows)
        justify = "right" if numeric else "left"
        table.add_column(printable(heading), justify=justify, overflow="fold", no_wrap=numeric)
    for row in rows:
        table.add_row(*(_cell(value, digits) for value in row))
    _print(table)


def say(text: str, as_json: bool = False) -> None:
    """One line of words; on stderr when stdout carries JSON."""
    from rich.text import Text

    if as_json or not sys.stdout.isatty():
        typer.echo(printable(text), err=as_json)
    else:
        _print(Text(printable(text)))


def print_json(value: Any) -> None:
    """Plain data as JSON that every reader takes: numbers that do not exist are null."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """`value` as JSON knows it: no tuples, no numbers of numpy, nothing that is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # an array, or a number of numpy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def typed_command() -> str:
    """The command as the user can type it again: it may not be on the PATH."""
    called = sys.argv[0]
    return "python -m bayesdag" if called.endswith("__main__.py") else called


def _is_number(value: Any) -> bool:
    return value is None or hasattr(value, "__float__")


def _cell(value: Any, digits: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    if isinstance(value, float):
        return format(value, digits)
    if isinstance(value, tuple | list):
        return ", ".join(printable(item) for item in value) or "(none)"
    return printable(value)


def _print(content: Any) -> None:
    _console().print(content)


def _console() -> "Console":
    from rich.console import Console

    width = None if sys.stdout.isatty() else _NO_LIMIT
    return Console(width=width, markup=False, highlight=False, emoji=False)
