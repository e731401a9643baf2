"""How results look in a notebook: one mixin that writes their words and their table as HTML."""

from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from bayesdag.text import printable

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs] (typed, without saying so)

ROWS = 12  # of a table


class NotebookView:
    """Shows a result in a notebook: its one-line description, sentences, and a table.

    Attributes:
        notebook_words: attribute or method with a sentence or a list of them; empty: none.
        notebook_table: method that returns a DataFrame.
    """

    notebook_words: ClassVar[str] = ""
    notebook_table: ClassVar[str] = "table"

    def _repr_html_(self) -> str:
        said: Any = _called(getattr(self, self.notebook_words)) if self.notebook_words else []
        words: list[str] = [said] if isinstance(said, str) else said
        lines = "".join(f"<li>{_safe(line)}</li>" for line in words)
        listing = f"<ul>{lines}</ul>" if lines else ""
        table = _table(_called(getattr(self, self.notebook_table)).head(ROWS))
        return f"<div><p><strong>{_safe(repr(self).strip('<>'))}</strong></p>{listing}{table}</div>"


def _called(value: object) -> Any:
    return value() if callable(value) else value


def _safe(value: object) -> str:
    return escape(printable(str(value)))


def _table(frame: "pandas.DataFrame") -> str:
    """A table in which everything is text: names of columns are data, never markup."""
    head = "".join(f"<th>{_safe(name)}</th>" for name in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in frame.itertuples(index=False)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _safe(value)
