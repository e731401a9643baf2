"""Commands that make a result: fit, extend, merge and the demonstration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesdag.cli import result_file
from bayesdag.cli.app import app
from bayesdag.cli.options import (
    AsJson,
    Force,
    Interventions,
    Result,
    Seed,
    Table,
    Top,
    check_suffix,
    path_or_name,
    settings,
)
from bayesdag.cli.output import print_posterior, print_table, say, typed_command

if TYPE_CHECKING:
    from bayesdag.posterior import Posterior


@app.command()
def fit(
    table: Table,
    out: Annotated[Path, typer.Option(help="Where the result goes (.nc).")],
    method: Annotated[str | None, typer.Option(help="A name from `bayesdag methods`.")] = None,
    knowledge: Annotated[Path | None, typer.Option(help="YAML file with prior knowledge.")] = None,
    interventions: Interventions = None,
    scaling: Annotated[str, typer.Option(help="standardise, centre or none.")] = "standardise",
    seed: Seed = 0,
    preset: Annotated[str | None, typer.Option(help="Named settings of the method.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method: name=value.")
    ] = None,
    keep_state: Annotated[
        bool, typer.Option("--keep-state", help="Keep what `bayesdag extend` needs to go on.")
    ] = False,
    truth: Annotated[
        Path | None,
        typer.Option(help="CSV with the true edges, one `cause,effect` a row: print its score."),
    ] = None,
    force: Force = False,
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Fit a table and write the posterior to a file."""
    from bayesdag import fitting
    from bayesdag.cli.truth import beside_the_truth, read_edges
    from bayesdag.data import read
    from bayesdag.knowledge import Knowledge
    from bayesdag.runs.checkpoint import MonitorGroup
    from bayesdag.runs.progress import ProgressLine

    check_suffix(out)
    chosen = fitting.build_method(
        method or fitting.DEFAULT_METHOD, preset=preset, **settings(set_ or [])
    )
    data = read(table, interventions=path_or_name(interventions), scaling=scaling)
    graph = None if truth is None else read_edges(truth, data.names)
    partial = out.with_name(f"{out.name}.partial")
    wanted = fitting.settings_of(chosen, data, Knowledge.read(knowledge), seed)

    def run(kept: result_file.KeptProgress) -> "Posterior":
        with ProgressLine() as progress:
            return fitting.fit(
                data,
                chosen,
                knowledge=knowledge,
                seed=seed,
                checkpoint=partial,
                monitor=MonitorGroup((progress, kept)),
                keep_state=keep_state,
            )

    posterior = result_file.produced(
        out,
        run,
        partial=partial,
        num_bytes=result_file.expected_bytes(chosen, data.num_variables),
        find=None if force else lambda: result_file.finished(out, wanted, keep_state),
    )
    print_posterior(posterior, top, as_json)
    if graph is not None:
        say(beside_the_truth(fitting.log_scores(posterior, data, graph)), as_json)
    say(f"Written to {out}", as_json)


@app.command()
def extend(
    result: Result,
    table: Table,
    out: Annotated[Path, typer.Option(help="Where the longer result goes (.nc).")],
    num_samples: Annotated[int, typer.Option(help="Draws to add to each chain.")],
    interventions: Interventions = None,
    force: Force = False,
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Add draws to a result, as if it had been asked for all of them at once."""
    from bayesdag import fitting
    from bayesdag.data import read
    from bayesdag.posterior import load
    from bayesdag.runs.checkpoint import MonitorGroup
    from bayesdag.runs.progress import ProgressLine

    check_suffix(out)
    data, shorter = read(table, interventions=path_or_name(interventions)), load(result)
    partial = out.with_name(f"{out.name}.partial")

    def run(kept: result_file.KeptProgress) -> "Posterior":
        with ProgressLine() as progress:
            watching = MonitorGroup((progress, kept))
            return fitting.extend(shorter, data, num_samples, checkpoint=partial, monitor=watching)

    longer = result_file.produced(
        out,
        run,
        partial=partial,
        num_bytes=result.stat().st_size * (2 + num_samples // shorter.num_draws),
        find=None if force else lambda: result_file.extended(out, shorter, num_samples),
    )
    print_posterior(longer, top, as_json)
    say(f"Written to {out}", as_json)


@app.command()
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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the result goes.")] = Path("demo.nc"),
    force: Force = False,
) -> None:
    """Fit the example that ships with the package and compare it with the truth."""
    from bayesdag.cli import demo

    check_suffix(out)
    say(demo.introduction(), False)
    posterior = result_file.produced(
        out,
        lambda _: demo.run(),
        num_bytes=10**6,
        find=None if force else lambda: result_file.finished(out, demo.settings()),
    )
    comparison = demo.compare(posterior, demo.truth())
    print_table(comparison.edges, title="Most probable edges, and whether they are there in truth")
    say(comparison.words, False)
    say(f"Written to {out}; look again with: {typed_command()} show {out}", False)
