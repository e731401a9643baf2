"""How answers look: tables on a terminal, JSON in a pipe."""

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas

    from bayesdag.posterior import Posterior
    from bayesdag.posterior.check_result import Check


def print_posterior(
    posterior: "Posterior", top: int, as_json: bool, checked: "Check | None" = None
) -> None:
    """Whether the model fits, its edges, and what the chains say of one another."""
    edges, found = posterior.edge_table(top, with_error=True), posterior.diagnostics()
    fit, described = checked or posterior.checked, posterior.describe()
    if posterior.checked is not None:
        described = described[len(posterior.checked.lines()) :]  # said above the edges
    if as_json:
        shown = {
            "edges": edges.to_dict("records"),
            "diagnostics": found.summary(),
            "provenance": posterior.provenance,
        }
        print_json(shown if fit is None else {"check": fit.summary(), **shown})
        return
    for line in fit.lines() if fit is not None else []:
        say(line, False)
    print_table(edges, title="Most probable edges")
    if found.comparable:
        print_table(found.table(), title="Do the chains agree?")
    for line in [*described, f"chains: {found.verdict}"]:
        say(line, False)
    if checked is not None:
        print_table(checked.table(), title="Misfit of each variable in nats per row")


def print_list(rows: dict[str, str], headings: tuple[str, str], as_json: bool) -> None:
    """Names with their descriptions."""
    import pandas

    if as_json:
        print_json(rows)
        return
    print_table(pandas.DataFrame(list(rows.items()), columns=pandas.Index(headings)))


def print_table(frame: "pandas.DataFrame", title: str | None = None) -> None:
    """A table with a rule around it; numbers to the right."""
    from rich.console import Console
    from rich.table import Table as RichTable

    table = RichTable(title=title, title_justify="left")
    numeric = frame.dtypes.map(lambda dtype: dtype.kind in "fi")
    for name in frame.columns:
        table.add_column(str(name), justify="right" if numeric[name] else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    Console(soft_wrap=not sys.stdout.isatty()).print(table)


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def typed_command() -> str:
    """The command as the user can type it again: it may not be on the PATH."""
    called = sys.argv[0]
    return "python -m bayesdag" if called.endswith("__main__.py") else called


def say(text: str, as_json: bool) -> None:
    """Words go to stderr when stdout carries JSON."""
    typer.echo(text, err=as_json)


def print_json(value: Any) -> None:
    """Plain data as JSON."""
    typer.echo(json.dumps(value, indent=2))
