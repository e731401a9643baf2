"""The command that runs benchmarks: one suite, its missing cells, its page of tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import AsJson
from bayesdag.cli.output import print_json, print_rows, say

if TYPE_CHECKING:
    from bayesdag.bench import Cell

_SHOWN = ("expected_shd", "edge_f1", "nll", "step_cpu", "seconds")


@app.command(
    epilog=examples(
        "bench",
        "bench trivial",
        "bench nonlinear --size paper --methods collapsed,exact --out results",
    )
)
def bench(
    suite: Annotated[
        str | None, typer.Argument(help="Suite to run; without one they are listed.")
    ] = None,
    size: Annotated[str, typer.Option(help="quick (minutes) or paper (hours).")] = "quick",
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Only these, and the baselines; repeat, or separate by commas."),
    ] = None,
    part: Annotated[list[str] | None, typer.Option(help="Only this part; repeat.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of cells and tables.")] = Path("bench"),
    limit: Annotated[float | None, typer.Option(help="Seconds per cell.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run lost cells again.")] = False,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Write the tables again; run nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure methods on a suite of data sets; cells that are stored are not run again."""
    from bayesdag.bench import Store, describe_suites, load_suite, run_suite, write_page

    if suite is None:
        _list_suites(describe_suites(), as_json)
        return
    wanted, store = load_suite(suite, size), Store(out / suite)
    out.mkdir(parents=True, exist_ok=True)
    if not tables_only:
        known = {name for one in wanted.parts for name in one.runners}
        left_out = run_suite(
            wanted,
            store,
            methods=_names(methods or [], known),
            parts=part or [],
            limit=limit,
            retry=retry,
            report=lambda cell: say(_line(cell), as_json),
        )
        for words in left_out:
            say(f"left out: {words}", as_json)
    path = out / f"{suite}.md"
    write_page(path, suite, wanted, store)
    say(f"Tables in {path}, cells in {store.root}", as_json)


def _names(given: list[str], known: set[str]) -> list[str]:
    """Names as they are, where a suite knows them: some have a comma of their own."""
    found = []
    for text in given:
        found += [text] if text in known else [name.strip() for name in text.split(",")]
    return found


def _line(cell: "Cell") -> str:
    where = ", ".join(map(str, (*cell.setting.values(), cell.method, f"seed {cell.seed}")))
    if cell.status != "done":
        return f"{where}: {cell.status} ({cell.error})"
    shown: dict[str, Any] = {k: cell.measures[k] for k in _SHOWN if k in cell.measures}
    return f"{where}: " + ", ".join(f"{name} {value:.3g}" for name, value in shown.items())


def _list_suites(found: dict[str, str], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_rows(("suite", "what it measures"), found.items())
