"""Commands that ask a result: show, adjust, effect, experiment and export."""

from pathlib import Path
from typing import Annotated

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import (
    AsJson,
    Cause,
    EffectValues,
    Force,
    Interventions,
    Outcome,
    Result,
    Seed,
    Top,
    levels_or_numbers,
    number_or_label,
    numbers,
    path_or_name,
)
from bayesdag.cli.output import print_json, print_table, say
from bayesdag.cli.posterior_tables import print_posterior, print_questions
from bayesdag.cli.result_file import refuse_existing


@app.command(
    epilog=examples(
        "show cells.nc",
        "show cells.nc --top 50",
        "show cells.nc --data cells.csv",
        "show cells.nc --variable Raf",
        "show cells.nc --variable Raf --paths",
        "show cells.nc --json > cells.json",
    )
)
def show(
    result: Result,
    data: Annotated[
        Path | None, typer.Option(help="The table that was fitted: check the model against it.")
    ] = None,
    interventions: Interventions = None,
    variable: Annotated[
        str | None,
        typer.Option(help="Only this column: edges into and out of it, and its Markov blanket."),
    ] = None,
    paths: Annotated[
        bool, typer.Option("--paths", help="Causes at all, direct or not: directed paths.")
    ] = False,
    blanket: Annotated[
        bool, typer.Option("--blanket", help="Markov blankets: what screens a column off.")
    ] = False,
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Show edges with their probabilities, and whether to trust them."""
    from bayesdag.errors import InputError
    from bayesdag.posterior import load

    if interventions is not None and data is None:
        raise InputError("--interventions says what was set in a table; name it with --data")
    posterior = load(result)
    wanted = {kind for kind, asked in {"paths": paths, "blanket": blanket}.items() if asked}
    if variable is not None or wanted:
        _refuse_data(data)
        print_questions(posterior, variable, wanted or {"edges", "blanket"}, top, as_json)
        return
    checked = None
    if data is not None:
        checked = posterior.check(posterior.read(data, interventions=path_or_name(interventions)))
    print_posterior(posterior, top, as_json, checked)


def _refuse_data(data: Path | None) -> None:
    from bayesdag.errors import InputError

    if data is not None:
        raise InputError(
            "--data checks the whole model; leave out --variable, --paths and --blanket"
        )


@app.command(
    epilog=examples(
        "adjust cells.nc --cause Raf --outcome Mek",
        "adjust cells.nc --cause Raf --outcome Mek --for PKA --for PKC",
    )
)
def adjust(
    result: Result,
    cause: Cause,
    outcome: Outcome,
    for_: Annotated[
        list[str] | None,
        typer.Option("--for", help="Judge this set: a column to adjust for; repeat for more."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show so many sets.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Rank sets of columns to adjust for. Each would give the effect from observed rows."""
    from bayesdag.posterior import load

    posterior = load(result)
    if for_:
        _judge_set(posterior, cause, outcome, for_, as_json)
        return
    sets = posterior.adjustment_sets(cause, outcome, top)
    if as_json:
        print_json(sets.to_dict("records"))
        return
    title = f"Sets that give the total effect of {cause} on {outcome} when adjusted for"
    print_table(sets, title=title)


def _judge_set(posterior, cause: str, outcome: str, columns: list[str], as_json: bool) -> None:
    value, error = posterior.adjustment_probability(cause, outcome, columns, with_error=True)
    if as_json:
        print_json({"adjustment set": columns, "probability": value, "error": error})
        return
    say(
        f"adjusting for {', '.join(columns)} gives the total effect of {cause} on {outcome} with "
        f"probability {value:.3f} (Monte-Carlo error {error:.3f})"
    )


@app.command(
    epilog=examples(
        "effect cells.nc --cause Raf --outcome Mek --values 0 1",
        "effect cells.nc --cause Raf --outcome Mek --values 0 1 --given PKA=2.5",
    )
)
def effect(
    result: Result,
    cause: Cause,
    outcome: Outcome,
    values: EffectValues = None,
    given: Annotated[
        list[str] | None,
        typer.Option(help="Only units seen with name=value or name=label; repeat for more."),
    ] = None,
    prob: Annotated[
        float, typer.Option(help="Probability that the highest-density interval (HDI) holds.")
    ] = 0.95,
    num_rows: Annotated[
        int, typer.Option(min=1, help="Simulated rows per draw (nonlinear models).")
    ] = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate what setting one variable does to another, with its uncertainty."""
    from bayesdag.posterior import load
    from bayesdag.posterior.arguments import check_interval_probability

    check_interval_probability("--prob", prob)
    units, between = levels_or_numbers("--given", given), _two(values)
    found = load(result).effect(cause, outcome, between, given=units, num_rows=num_rows, seed=seed)
    if as_json:
        print_json(found.summary(prob))
        return
    print_table(found.table(prob), title=f"Effect of {cause} on {outcome}", digits=".4g")


@app.command(
    epilog=examples(
        "experiment cells.nc",
        "experiment cells.nc --candidate Raf --candidate PKA --cost PKA=3",
        "experiment cells.nc --edge Raf Mek",
        "experiment cells.nc --effect Raf Mek --values 0 1",
    )
)
def experiment(
    result: Result,
    candidate: Annotated[
        list[str] | None, typer.Option(help="Column that can be set; repeat. Default: all.")
    ] = None,
    edge: Annotated[
        tuple[str, str] | None, typer.Option(help="Learn about the edge SOURCE TARGET.")
    ] = None,
    effect: Annotated[
        tuple[str, str] | None, typer.Option(help="Learn about the effect of CAUSE on OUTCOME.")
    ] = None,
    values: EffectValues = None,
    cost: Annotated[list[str] | None, typer.Option(help="name=cost; repeat. Default: 1.")] = None,
    num_rows: Annotated[int, typer.Option(min=1, help="Rows of the planned experiment.")] = 10,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Rank the next experiments by what they would teach."""
    from bayesdag.posterior import load

    posterior = load(result)
    about = posterior.effect(*effect, _two(values), seed=seed) if effect else edge
    ranked = posterior.next_experiment(
        candidate, about=about, cost=numbers("--cost", cost), num_rows=num_rows, seed=seed
    )
    if as_json:
        print_json(ranked.to_dict("records"))
        return
    kind = "variance of the effect" if effect else "entropy of the edge" if edge else None
    removed = f"fraction removed: of the {kind or 'entropy of the graph'}"
    print_table(ranked, title=f"Expected gain in nats, between low and high; {removed}")


@app.command(
    epilog=examples(
        "export cells.nc --out cells.dot",
        "export cells.nc --out cells.graphml --threshold 0.8",
    )
)
def export(
    result: Result,
    out: Annotated[Path, typer.Option(help="Where it goes: .dot, .graphml, .gml or .csv.")],
    threshold: Annotated[float, typer.Option(help="Edges must be more probable.")] = 0.5,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the graph for another program. It is the DAG closest to the probabilities."""
    from bayesdag.posterior import load
    from bayesdag.runs.files import locked

    posterior = load(result)
    with locked(out):
        if not force:
            refuse_existing(out)
        posterior.export(out, threshold)
    edges = posterior.consensus_graph(threshold).number_of_edges()
    if as_json:
        print_json({"written": str(out), "edges": edges})
        return
    say(f"Written to {out}: {edges} edges")


def _two(values: tuple[str, str] | None) -> tuple[float | str, ...] | None:
    """Numbers or labels that the cause is set to."""
    return None if values is None else tuple(number_or_label(value) for value in values)
