"""The command `bayesdag`. It parses, calls the library, and prints; it decides nothing.

Heavy imports wait inside the commands, so that `--help` answers at once.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas

    from bayesdag.posterior import Posterior

app = typer.Typer(
    help="Bayesian causal discovery: what causes what, and how sure can you be?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Table = Annotated[Path, typer.Argument(help="CSV or Parquet file: one row a measurement.")]
Result = Annotated[Path, typer.Argument(help="Result of `bayesdag fit` (.nc).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Top = Annotated[int, typer.Option(help="Show so many edges.")]


def main() -> None:
    """Run the command; refusals are one message on stderr and exit code 2."""
    with _refusals_in_words():
        app()


@app.command()
def fit(
    table: Table,
    out: Annotated[Path, typer.Option(help="Where the result goes (.nc).")],
    method: Annotated[str | None, typer.Option(help="A name from `bayesdag methods`.")] = None,
    knowledge: Annotated[Path | None, typer.Option(help="YAML file with prior knowledge.")] = None,
    interventions: Annotated[
        str | None,
        typer.Option(help="File of the table's shape, or the column that names what was set."),
    ] = None,
    scaling: Annotated[str, typer.Option(help="standardise, centre or none.")] = "standardise",
    seed: Annotated[int, typer.Option(help="Same seed, same answer.")] = 0,
    preset: Annotated[str | None, typer.Option(help="Named settings of the method.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method: name=value.")
    ] = None,
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Fit a table and write the posterior to a file."""
    from bayesdag import fitting
    from bayesdag.data import read
    from bayesdag.monitors import Progress

    _check_suffix(out)
    data = read(table, interventions=_path_or_name(interventions), scaling=scaling)
    partial = out.with_name(f"{out.name}.partial")
    with Progress() as progress:
        posterior = fitting.fit(
            data,
            method or fitting.DEFAULT_METHOD,
            knowledge=knowledge,
            seed=seed,
            preset=preset,
            checkpoint=partial,
            monitor=progress,
            **_settings(set_ or []),
        )
    posterior.save(out)
    # Only now: a kill between the two leaves the checkpoint, and the command ends the same.
    partial.unlink(missing_ok=True)
    _show(posterior, top, as_json)
    _say(f"Written to {out}", as_json)


@app.command()
def show(result: Result, top: Top = 20, as_json: AsJson = False) -> None:
    """Show the edges of a result with their probabilities."""
    from bayesdag.posterior import load

    _show(load(result), top, as_json)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what each one is."""
    from bayesdag import fitting

    _list(fitting.methods(), ("method", "what it does"), as_json)


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the data sets that come with their truth."""
    import pandas

    from bayesdag.datasets import catalogue

    rows = [entry._asdict() for entry in catalogue()]
    if as_json:
        _json(rows)
        return
    _table(pandas.DataFrame(rows))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the result goes.")] = Path("demo.nc"),
) -> None:
    """Fit the example that ships with the package and compare it with the truth."""
    from bayesdag import demonstration

    _say(demonstration.introduction(), False)
    posterior, comparison = demonstration.run()
    posterior.save(out)
    _table(comparison.edges, title="Most probable edges, and whether they are there in truth")
    _say(comparison.words, False)
    _say(f"Written to {out}; look again with: {_command()} show {out}", False)


def _show(posterior: "Posterior", top: int, as_json: bool) -> None:
    edges = posterior.edge_table().head(top)
    if as_json:
        _json({"edges": edges.to_dict("records"), "provenance": posterior.provenance})
        return
    _table(edges, title="Most probable edges")
    for line in posterior.describe():
        _say(line, False)


def _list(rows: dict[str, str], headings: tuple[str, str], as_json: bool) -> None:
    import pandas

    if as_json:
        _json(rows)
        return
    _table(pandas.DataFrame(list(rows.items()), columns=pandas.Index(headings)))


def _table(frame: "pandas.DataFrame", title: str | None = None) -> None:
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


def _command() -> str:
    """The command as the user can type it again: it may not be on the PATH."""
    called = sys.argv[0]
    return "python -m bayesdag" if called.endswith("__main__.py") else called


def _say(text: str, as_json: bool) -> None:
    """Words go to stderr when stdout carries JSON."""
    typer.echo(text, err=as_json)


def _json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def _settings(pairs: list[str]) -> dict[str, str]:
    from bayesdag.types import InputError

    for pair in pairs:
        if "=" not in pair:
            raise InputError(
                f"--set takes name=value, for example --set num_samples=500; got {pair!r}"
            )
    return {
        name.replace("-", "_"): value for name, _, value in (pair.partition("=") for pair in pairs)
    }


def _check_suffix(out: Path) -> None:
    """Found before the fit, not after an hour of it."""
    from bayesdag.types import InputError

    if out.suffix != ".nc":
        raise InputError(f"--out must end in .nc (netCDF), not {str(out)!r}")
    if not out.parent.is_dir():
        raise InputError(f"--out: there is no folder {out.parent}; make it first")


def _path_or_name(text: str | None) -> str | Path | None:
    return Path(text) if text is not None and Path(text).is_file() else text


@contextmanager
def _refusals_in_words() -> Iterator[None]:
    warnings.showwarning = _short_warning
    try:
        yield
    except ValueError as error:
        if not _is_refusal(error):
            raise
        typer.echo(f"bayesdag: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("bayesdag: stopped", err=True)
        sys.exit(130)


def _is_refusal(error: ValueError) -> bool:
    from bayesdag.types import BayesdagError

    return isinstance(error, BayesdagError)


def _short_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"bayesdag: note: {message}", err=True)
