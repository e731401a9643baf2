"""Output of commands: tables with rules on a terminal, plain columns in a pipe, or JSON.

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
    from rich.table import Table as RichTable

NOTHING = "–"
LARGE = 1000.0  # numbers that need no decimals
# In a pipe nobody says how wide a line may be, so nothing is wrapped or cut.
_NO_LIMIT = 1_000_000
_LOOKS: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}


def print_table(frame: "pandas.DataFrame", title: str | None = None, digits: str = ".3f") -> None:
    """A table with a title; numbers to the right, written as `digits` says."""
    print_rows(list(frame.columns), frame.itertuples(index=False), title, digits)


def print_columns(
    columns: Mapping[str, Any], title: str | None = None, digits: str = ".3f"
) -> None:
    """A table of columns by name."""
    values = [plain_column(column) for column in columns.values()]
    print_rows(list(columns), zip(*values, strict=True), title, digits)


def plain_column(column: Any) -> list[object]:
    """The values of a column as Python has them."""
    return column.tolist() if hasattr(column, "tolist") else list(column)


def print_rows(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    digits: str = ".3f",
) -> None:
    """Rows under their headings."""
    if title is not None:
        say(title)
    rows = list(rows)
    cells = [[_cell(value, digits) for value in row] for row in rows]
    numeric = [all(_is_number(row[place]) for row in rows) for place in range(len(headings))]
    if not sys.stdout.isatty():
        _print(_table(headings, cells, numeric, ruled=False))
        return
    ruled = _table(headings, cells, numeric, ruled=True)
    _print(ruled if _fits(ruled) else _table(headings, cells, numeric, ruled=False))


def _table(
    headings: Sequence[str], cells: list[list[str]], numeric: list[bool], ruled: bool
) -> "RichTable":
    """The cells with rules around them, or without; where there is no room, words wrap."""
    from rich.table import Table as RichTable

    narrow = sys.stdout.isatty() and not ruled
    looks: dict[str, Any] = {} if ruled else {"box": None, "pad_edge": False}
    table = RichTable(collapse_padding=narrow, **looks)
    for place, heading in enumerate(headings):
        justify = "right" if numeric[place] else "left"
        widest = max((len(row[place]) for row in cells), default=0)
        width = widest if narrow and numeric[place] else None
        table.add_column(printable(str(heading)), justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*row)
    return table


def _fits(table: "RichTable") -> bool:
    from rich.console import Console

    console = Console(**_LOOKS)
    unlimited = console.options.update(max_width=_NO_LIMIT)
    return console.measure(table, options=unlimited).maximum <= console.width


def say(text: str, as_json: bool = False) -> None:
    """One line of words; on stderr when stdout carries JSON."""
    from rich.text import Text

    if as_json or not sys.stdout.isatty():
        typer.echo(printable(text), err=as_json)
    else:
        _print(Text(printable(text)))


def print_json(value: object) -> None:
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


def _is_number(value: object) -> bool:
    return value is None or hasattr(value, "__float__")


def _cell(value: object, digits: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    if isinstance(value, float):
        return format(value, digits if abs(value) < LARGE else ".6g")
    if isinstance(value, tuple | list):
        return ", ".join(printable(str(item)) for item in value) or "(none)"
    return printable(str(value))


def _print(content: object) -> None:
    """Onto the terminal as wide as it is; into a pipe unwrapped, without spaces at line ends."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(**_LOOKS).print(content)
        return
    console = Console(width=_NO_LIMIT, **_LOOKS)
    with console.capture() as captured:
        console.print(content)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
