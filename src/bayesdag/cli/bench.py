"""The command that runs benchmarks: one suite, its missing cells, its page of tables."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import AsJson, Cluster
from bayesdag.cli.output import print_json, print_rows, say
from bayesdag.errors import InputError

if TYPE_CHECKING:
    from bayesdag.bench import Cell, Store, Suite

    Suites = dict[str, tuple[Suite, Store]]

_SHOWN = ("expected_shd", "edge_f1", "nll", "step_cpu", "seconds", "memory_gb")


@app.command(
    epilog=examples(
        "bench",
        "bench trivial",
        "bench nonlinear --size paper --methods collapsed,exact --out results",
        "bench broken_worlds,measured --size paper --limit-minutes 25 --out results",
        "bench nonlinear --size paper --cluster dask://node1:8786 --out results",
        "bench rivals --size paper --gpu-jobs 2 --cpu-jobs 12 --out run --pack cells.jsonl.gz",
        "bench --merge cells.jsonl.gz --out results --compare",
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
    seeds: Annotated[
        str | None, typer.Option(help="Only data sets of these seeds: 1003, or 1000-1004.")
    ] = None,
    release: Annotated[
        bool,
        typer.Option("--release", help="Data sets that only a release scores; kept apart."),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of cells and tables.")] = Path("bench"),
    known: Annotated[
        Path | None, typer.Option(help="Folder of cells that need not be measured again.")
    ] = None,
    limit: Annotated[float | None, typer.Option(help="Seconds per cell.")] = None,
    limit_gb: Annotated[float | None, typer.Option(help="Gigabytes of memory per cell.")] = None,
    limit_minutes: Annotated[
        float | None, typer.Option(help="Minutes of the whole run; the same command goes on.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Cells at once; their times then say less.")] = 1,
    gpu_jobs: Annotated[
        int, typer.Option(help="Instead, so many cells at once of methods that gain by a GPU.")
    ] = 0,
    cpu_jobs: Annotated[
        int, typer.Option(help="And so many others, with one thread each and no accelerator.")
    ] = 0,
    on_cores: Annotated[
        list[str] | None,
        typer.Option(help="Methods counted among these others although they gain by a GPU."),
    ] = None,
    together: Annotated[
        int | None,
        typer.Option(help="Most data sets that engines of the paper fit in one run; then stored."),
    ] = None,
    note: Annotated[
        str, typer.Option(help="Stamp this on every cell, as that the machine was shared.")
    ] = "",
    cluster: Cluster = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run lost cells again.")] = False,
    renew: Annotated[
        bool, typer.Option("--renew", help="Run cells of other commits again.")
    ] = False,
    tables_only: Annotated[
        bool, typer.Option("--tables-only", help="Write the tables again; run nothing.")
    ] = False,
    pack: Annotated[
        Path | None, typer.Option(help="Write all cells of these suites into one file, too.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Write where we are better, equal and worse, too.")
    ] = False,
    merge: Annotated[
        Path | None, typer.Option(help="Take cells from such a file, or a folder of stores.")
    ] = None,
    reliability_table: Annotated[
        Path | None,
        typer.Option(help="Write here what results say of their certainty, counted from cells."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure methods on a suite of data sets; cells that are stored are not run again."""
    from bayesdag.bench import Processes, RunLimits, Selection, describe_suites, run_suites
    from bayesdag.runs import parallel

    out = out / "release" if release else out
    if merge is not None:
        _merge(merge, out, as_json)
    if suite is None:
        if merge is None and not compare:
            _list_suites(describe_suites(), as_json)
        elif compare:
            _compare(out, as_json)
        return
    suites = _with_collected(suite, size, release, out, known)
    out.mkdir(parents=True, exist_ok=True)
    if not tables_only:
        runners = {
            name for one, _ in suites.values() for part in one.parts for name in part.runners
        }
        wanted = Selection(
            _names(methods or [], runners), tuple(part or ()), _range(seeds), retry, renew
        )
        with parallel.using(cluster):
            left_out = run_suites(
                list(suites.values()),
                wanted,
                RunLimits(limit, limit_gb, limit_minutes, together),
                Processes(jobs, gpu_jobs, cpu_jobs, _names(on_cores or [], runners), note),
                report=lambda cell: say(_line(cell), as_json),
            )
        for words in left_out:
            say(f"left out: {words}", as_json)
    for name, (_, store) in suites.items():
        if unheard := len(store.unheard()):
            say(
                f"{name}: {unheard} cells are not shown: another commit has measured more of their "
                "rows, and no row mixes commits (--renew measures whole rows again)",
                as_json,
            )
        _write_page(out / f"{name}.md", name, suites)
        say(f"Tables in {out / f'{name}.md'}, cells in {out / name}", as_json)
    if pack is not None:
        _pack(pack, suites, as_json)
    if compare:
        _compare(out, as_json)
    if reliability_table is not None:
        _write_reliability(reliability_table, f"bayesdag bench {suite} --size {size}", suites)
        say(f"Observed reliability in {reliability_table}", as_json)


def _compare(out: Path, as_json: bool) -> None:
    from bayesdag.bench import write_comparison

    write_comparison(out)
    say(f"Comparison in {out / 'comparison.md'}", as_json)


def _merge(source: Path, out: Path, as_json: bool) -> None:
    """Take cells into the stores, and write the pages of their suites again."""
    from bayesdag.bench import load_suite, merge, suite_names

    taken = merge(source, out)
    for name, (new, left, dropped) in taken.items():
        say(f"{name}: {new} cells taken into {out / name}", as_json)
        if left:
            say(f"{name}: {left} left: lost, or the row has later cells or more of them", as_json)
        if dropped:
            say(f"{name}: {dropped} dropped: another commit speaks for their rows", as_json)
    for name in suite_names():
        if taken.keys() & {name, *load_suite(name).collects}:
            _write_page(out / f"{name}.md", name, _with_collected(name, "paper", False, out, None))


def _pack(path: Path, suites: "Suites", as_json: bool) -> None:
    from bayesdag.bench import write_pack

    cells = {name: store.read() for name, (_, store) in suites.items()}
    write_pack(path, cells)
    say(f"{sum(map(len, cells.values()))} cells packed in {path}", as_json)


def _range(words: str | None) -> range | None:
    """Seeds from "1003" or "1000-1004"."""
    if words is None:
        return None
    first, _, last = words.partition("-")
    if not first.isdigit() or not (last or first).isdigit():
        raise InputError(f"--seeds {words!r}: write 1003 for one data set, 1000-1004 for five")
    return range(int(first), int(last or first) + 1)


def _with_collected(
    names: str, size: str, release: bool, out: Path, known: Path | None
) -> "Suites":
    """The named suites and those that they collect, each with its store."""
    from bayesdag.bench import Store, load_suite, released

    found: "Suites" = {}
    waiting = [name.strip() for name in names.split(",")]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            loaded = load_suite(name, size)
            elsewhere = () if known is None else (Store(known / name),)
            found[name] = released(loaded) if release else loaded, Store(out / name, elsewhere)
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


def _names(given: list[str], known: set[str]) -> tuple[str, ...]:
    """Names as they are, where a suite knows them: some have a comma of their own."""
    found: list[str] = []
    for text in given:
        found += [text] if text in known else [name.strip() for name in text.split(",")]
    return tuple(found)


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
