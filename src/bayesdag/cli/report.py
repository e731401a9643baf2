"""The command that writes a report, and what `fit` and `demo` do about theirs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import AsJson, Force, Interventions, Result, path_or_name
from bayesdag.cli.output import print_json, say

if TYPE_CHECKING:
    from bayesdag.posterior import Posterior

ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Also write a report to look at (.html).")
]
SUFFIXES = (".html", ".htm")


@app.command(
    epilog=examples(
        "report cells.nc",
        "report cells.nc --data cells.csv",
        "report cells.nc --data cells.csv --rows 0 --out for-others.html",
    )
)
def report(
    result: Result,
    out: Annotated[
        Path | None, typer.Option(help="Where the report goes (.html); default: beside RESULT.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The table that was fitted: show its rows behind the functions."),
    ] = None,
    interventions: Interventions = None,
    rows: Annotated[
        int, typer.Option(min=0, help="Measured rows that the report carries, at most.")
    ] = 200,
    title: Annotated[str, typer.Option(help="Heading; default: the file's name.")] = "",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML file that shows a result, offline, with pictures and words."""
    from bayesdag.errors import InputError
    from bayesdag.posterior import load

    if interventions is not None and data is None:
        raise InputError("--interventions says what was set in a table; name it with --data")
    place = result.with_suffix(".html") if out is None else out
    check_place(place, "--out")
    posterior = load(result)
    wanted = {"interventions": path_or_name(interventions)}
    table = None if data is None else posterior.read(data, **wanted)
    write_report(
        posterior,
        place,
        force,
        option="--out",
        data=table,
        title=title or result.stem,
        table="TABLE.csv" if data is None else data.name,
        result=result.name,
        num_rows=rows,
    )
    if as_json:
        print_json({"written": str(place), "bytes": place.stat().st_size})
        return
    say(f"Written to {place}; open it in a browser")


def check_place(place: Path, option: str) -> None:
    """Refuse, before any work, a place where no report can go."""
    from bayesdag.errors import InputError

    if place.suffix.lower() not in SUFFIXES:
        raise InputError(f"{option}: a report ends in .html, not {str(place)!r}")
    if not place.parent.is_dir():
        raise InputError(f"{option}: there is no folder {place.parent}; make it first")


def check_before_fit(place: Path | None, out: Path, force: bool) -> None:
    """Refuse a report that the fit could not write; one of a finished fit is compared later."""
    if place is None:
        return
    check_place(place, "--report")
    if not force and not out.exists():
        _refuse_existing(place, "--report")


def write_report(
    posterior: "Posterior", place: Path, force: bool, *, option: str = "--report", **facts: Any
) -> None:
    """Write a report; another file is only overwritten by force, the same report is left."""
    from bayesdag.report import render
    from bayesdag.runs.files import locked, write_whole

    text = render(posterior, **facts)
    with locked(place):
        if not force and place.exists():
            if place.is_file() and place.read_bytes() == text.encode("utf-8"):
                return
            _refuse_existing(place, option)
        write_whole(place, lambda to: to.write_bytes(text.encode("utf-8")))


def _refuse_existing(place: Path, option: str) -> None:
    from bayesdag.errors import InputError

    if place.exists() or place.is_symlink():
        raise InputError(
            f"{option}: {place} is not overwritten: it is there already. Choose another name, or "
            "pass --force"
        )
