"""Commands that make a result: fit, extend, merge and the demonstration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesdag.cli import result_file
from bayesdag.cli.app import app, examples
from bayesdag.cli.options import (
    AsJson,
    Cluster,
    Environment,
    Force,
    Interventions,
    Kinds,
    NoAssumedRoots,
    Quiet,
    Result,
    Seed,
    Steps,
    Table,
    Top,
    check_suffix,
    path_or_name,
    settings,
    with_preparing,
)
from bayesdag.cli.output import print_table, say, typed_command
from bayesdag.cli.posterior_tables import print_posterior
from bayesdag.cli.report import ReportFile, check_before_fit, write_report

if TYPE_CHECKING:
    from bayesdag.posterior import Posterior


@app.command(
    epilog=examples(
        "fit cells.csv --out cells.nc",
        "fit cells.csv --out cells.nc --report cells.html",
        "fit cells.csv --out cells.nc --knowledge tiers.yaml",
        "fit cells.csv --out cells.nc --interventions targets",
        "fit cells.csv --out cells.nc --environment condition",
        "fit cells.csv --out cells.nc --environment condition=control --environment batch",
        "fit cells.csv --out cells.nc --drop id,date --na-values -9 --kinds kinds.yaml",
        "fit cells.csv --out cells.nc --minutes 30",
        "fit cells.csv --out cells.nc --method collapsed --preset quick",
        "fit cells.csv --out cells.nc --method exact --set num_samples=500",
        "methods                         (what --method takes)",
        "methods collapsed               (what --preset and --set take)",
    )
)
@with_preparing
def fit(
    table: Table,
    out: Annotated[Path, typer.Option(help="Where the result goes (.nc).")],
    *,
    method: Annotated[
        str | None, typer.Option(help="A name from `bayesdag methods`; default: auto.")
    ] = None,
    knowledge: Annotated[Path | None, typer.Option(help="YAML file with prior knowledge.")] = None,
    no_assumed_roots: NoAssumedRoots = False,
    interventions: Interventions = None,
    environment: Environment = None,
    kinds: Kinds = None,
    steps: Steps,
    scaling: Annotated[str, typer.Option(help="standardise, centre or none.")] = "standardise",
    seed: Seed = 0,
    preset: Annotated[
        str | None, typer.Option(help="Named settings; `bayesdag methods NAME` lists them.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Time that auto may plan for (default: 5 on a CPU, any on a GPU): it learns "
            "functions as rich as that allows, and says what it leaves out."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting: name=value; repeat. `bayesdag methods NAME` lists them.",
        ),
    ] = None,
    keep_state: Annotated[
        bool, typer.Option("--keep-state", help="Keep what `bayesdag extend` needs to go on.")
    ] = False,
    truth: Annotated[
        Path | None,
        typer.Option(help="CSV with the true edges, one `cause,effect` per row: print its score."),
    ] = None,
    cluster: Cluster = None,
    report: ReportFile = None,
    force: Force = False,
    top: Top = 20,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a table and write the posterior to a file."""
    from bayesdag import fitting
    from bayesdag.cli.truth import beside_the_truth, read_edges, refuse_gaps
    from bayesdag.data import read
    from bayesdag.knowledge import Knowledge
    from bayesdag.runs import parallel

    check_suffix(out)
    check_before_fit(report, out, force)
    given = settings(set_ or []) | ({} if minutes is None else {"minutes": minutes})
    chosen = fitting.build_method(method or fitting.DEFAULT_METHOD, preset=preset, **given)
    data = read(
        table,
        interventions=path_or_name(interventions),
        scaling=scaling,
        environment=tuple(environment or ()) or None,
        kinds=path_or_name(kinds),
        **steps,
    )
    wrapped, taken = fitting.suited(chosen, data)
    graph = None if truth is None else read_edges(truth, data.names)
    if graph is not None:
        refuse_gaps(data)
    partial = out.with_name(f"{out.name}.partial")
    said = fitting.known(Knowledge.read(knowledge), chosen, data, not no_assumed_roots)
    wanted = fitting.settings_of(wrapped, taken, said, seed)

    def run(kept: result_file.KeptProgress) -> "Posterior":
        with parallel.using(cluster):
            return fitting.fit(
                data,
                chosen,
                knowledge=knowledge,
                assumed_roots=not no_assumed_roots,
                seed=seed,
                checkpoint=partial,
                monitor=kept,
                keep_state=keep_state,
                progress=not quiet,
            )

    posterior = result_file.produced(
        out,
        run,
        partial=partial,
        num_bytes=result_file.expected_bytes(wrapped, data.num_variables),
        find=None if force else lambda: result_file.finished(out, wanted, keep_state),
    )
    print_posterior(posterior, top, as_json)
    if graph is not None:
        say(beside_the_truth(fitting.log_scores(posterior, taken, graph)), as_json)
    say(f"Written to {out}", as_json)
    if report is not None:
        names = {"title": table.stem, "table": table.name, "result": out.name}
        write_report(posterior, report, force, data=taken, **names)
        say(f"Written to {report}; open it in a browser", as_json)


@app.command(epilog=examples("extend cells.nc cells.csv --out longer.nc --num-samples 500"))
def extend(
    result: Result,
    table: Table,
    out: Annotated[Path, typer.Option(help="Where the longer result goes (.nc).")],
    num_samples: Annotated[int, typer.Option(min=1, help="Draws to add to each chain.")],
    interventions: Interventions = None,
    force: Force = False,
    top: Top = 20,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add draws to a result. It ends as if all of them had been asked for at once."""
    from bayesdag import fitting
    from bayesdag.posterior import load

    check_suffix(out)
    shorter = load(result)
    data = shorter.read(table, interventions=path_or_name(interventions))
    partial = out.with_name(f"{out.name}.partial")

    def run(kept: result_file.KeptProgress) -> "Posterior":
        return fitting.extend(
            shorter, data, num_samples, checkpoint=partial, monitor=kept, progress=not quiet
        )

    longer = result_file.produced(
        out,
        run,
        partial=partial,
        num_bytes=result.stat().st_size * (2 + num_samples // shorter.num_draws),
        find=None if force else lambda: result_file.extended(out, shorter, num_samples),
    )
    print_posterior(longer, top, as_json)
    say(f"Written to {out}", as_json)


@app.command(epilog=examples("merge seed0.nc seed1.nc --out both.nc"))
def merge(
    results: Annotated[list[Path], typer.Argument(help="Results that differ in their seed only.")],
    out: Annotated[Path, typer.Option(help="Where the merged result goes (.nc).")],
    force: Force = False,
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Put runs with different seeds together."""
    from bayesdag.posterior import load, merge

    check_suffix(out)
    merged = result_file.produced(
        out,
        lambda _: merge.merge([load(path) for path in results]),
        num_bytes=sum(path.stat().st_size for path in results if path.is_file()),
        find=None if force else lambda: result_file.refuse_existing(out),
    )
    print_posterior(merged, top, as_json)
    say(f"Written to {out}", as_json)


@app.command(epilog=examples("demo", "demo --out example.nc"))
def demo(
    out: Annotated[Path, typer.Option(help="Where the result goes.")] = Path("demo.nc"),
    force: Force = False,
) -> None:
    """Fit the example in the package, compare it with the truth, and write a report."""
    from bayesdag.cli import demo

    check_suffix(out)
    for line in demo.introduction():
        say(line)
    posterior = result_file.produced(
        out,
        lambda _: demo.run(),
        num_bytes=10**6,
        find=None if force else lambda: result_file.finished(out, demo.settings()),
    )
    comparison = demo.compare(posterior, demo.truth())
    print_table(comparison.edges, title="Most probable edges, and whether they are there in truth")
    say(comparison.words)
    say(f"Written to {out}; look again with: {typed_command()} show {out}")
    page = out.with_name("report.html")
    write_report(posterior, page, force, **demo.report_facts(out.name))
    say(f"Written to {page}; open it in a browser")
