"""The command that runs benchmarks: one suite, its missing cells, its page of tables."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import AsJson
from bayesdag.cli.output import print_json, print_rows, say

if TYPE_CHECKING:
    from bayesdag.bench import Cell, Store, Suite

    Suites = dict[str, tuple[Suite, Store]]

_SHOWN = ("expected_shd", "edge_f1", "nll", "step_cpu", "seconds")


@app.command(
    epilog=examples(
        "bench",
        "bench trivial",
        "bench nonlinear --size paper --methods collapsed,exact --out results",
        "bench broken_worlds,measured --size paper --limit-minutes 25 --out results",
    )
)
def bench(
    suite: Annotated[
        str | None,
        typer.Argument(help="Suite to run, or several (a,b); without one they are listed."),
    ] = None,
    size: Annotated[str, typer.Option(help="quick (minutes) or paper (hours).")] = "quick",
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Only these, and the baselines; repeat, or separate by commas."),
    ] = None,
    part: Annotated[list[str] | None, typer.Option(help="Only this part; repeat.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of cells and tables.")] = Path("bench"),
    limit: Annotated[float | None, typer.Option(help="Seconds per cell.")] = None,
    limit_minutes: Annotated[
        float | None, typer.Option(help="Minutes of the whole run; the same command goes on.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Cells at once; their times then say less.")] = 1,
    retry: Annotated[bool, typer.Option("--retry", help="Run lost cells again.")] = False,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Write the tables again; run nothing.")
    ] = False,
    reliability_table: Annotated[
        Path | None,
        typer.Option(help="Write here what results say of their certainty, counted from cells."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure methods on a suite of data sets; cells that are stored are not run again."""
    from bayesdag.bench import describe_suites, run_suites

    if suite is None:
        _list_suites(describe_suites(), as_json)
        return
    suites = _with_collected(suite, size, out)
    out.mkdir(parents=True, exist_ok=True)
    if not tables_only:
        known = {name for one, _ in suites.values() for part in one.parts for name in part.runners}
        left_out = run_suites(
            list(suites.values()),
            methods=_names(methods or [], known),
            parts=part or [],
            limit=limit,
            minutes=limit_minutes,
            jobs=jobs,
            retry=retry,
            report=lambda cell: say(_line(cell), as_json),
        )
        for words in left_out:
            say(f"left out: {words}", as_json)
    for name in suites:
        _write_page(out / f"{name}.md", name, suites)
        say(f"Tables in {out / f'{name}.md'}, cells in {out / name}", as_json)
    if reliability_table is not None:
        _write_reliability(reliability_table, f"bayesdag bench {suite} --size {size}", suites)
        say(f"Observed reliability in {reliability_table}", as_json)


def _with_collected(names: str, size: str, out: Path) -> "Suites":
    """The named suites and those that they collect, each with its store."""
    from bayesdag.bench import Store, load_suite

    found: "Suites" = {}
    waiting = [name.strip() for name in names.split(",")]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = load_suite(name, size), Store(out / name)
            waiting += found[name][0].collects
    return found


def _write_page(path: Path, name: str, suites: "Suites") -> None:
    from bayesdag.bench import write_page

    wanted, store = suites[name]
    collected = [suites[other] for other in wanted.collects]
    parts = [part for other, _ in collected for part in other.parts]
    whole = replace(wanted, parts=(*wanted.parts, *parts))
    write_page(path, name, whole, store, *(other for _, other in collected))


def _write_reliability(path: Path, command: str, suites: "Suites") -> None:
    from bayesdag.bench.observed import observe
    from bayesdag.runs.files import write_whole

    cells = [cell for _, store in suites.values() for cell in store.read()]
    text = observe(cells, command).to_json()
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


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
