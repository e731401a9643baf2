"""Commands that ask a result: show, effect, experiment and export."""

from pathlib import Path
from typing import Annotated

import typer

from bayesdag.cli.app import app
from bayesdag.cli.options import (
    AsJson,
    Interventions,
    Result,
    Seed,
    Top,
    Values,
    numbers,
    path_or_name,
)
from bayesdag.cli.output import print_json, print_posterior, print_table, say


@app.command()
def show(
    result: Result,
    data: Annotated[
        Path | None, typer.Option(help="The table that was fitted: check the model against it.")
    ] = None,
    interventions: Interventions = None,
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Show the edges of a result with their probabilities, and whether to trust them."""
    from bayesdag.data import read
    from bayesdag.errors import InputError
    from bayesdag.posterior import load

    if interventions is not None and data is None:
        raise InputError("--interventions says what was set in a table; name it with --data")
    posterior, checked = load(result), None
    if data is not None:
        checked = posterior.check(read(data, interventions=path_or_name(interventions)))
    print_posterior(posterior, top, as_json, checked)


@app.command()
def effect(
    result: Result,
    cause: Annotated[str, typer.Option(help="Column that is set.")],
    outcome: Annotated[str, typer.Option(help="Column that is looked at.")],
    values: Values = (0.0, 1.0),
    given: Annotated[
        list[str] | None, typer.Option(help="Only units seen with name=value; repeat for more.")
    ] = None,
    prob: Annotated[float, typer.Option(help="Probability that the interval holds.")] = 0.95,
    num_rows: Annotated[int, typer.Option(help="Simulated rows a draw (nonlinear models).")] = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Tell what setting one variable does to another, with all the uncertainty there is."""
    from bayesdag.posterior import load

    units = numbers("--given", given)
    found = load(result).effect(cause, outcome, values, given=units, num_rows=num_rows, seed=seed)
    if as_json:
        print_json(found.summary(prob))
        return
    print_table(found.table(prob), title=f"Effect of {cause} on {outcome}")


@app.command()
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
    values: Values = (0.0, 1.0),
    cost: Annotated[list[str] | None, typer.Option(help="name=cost; repeat. Default: 1.")] = None,
    num_rows: Annotated[int, typer.Option(help="Rows of the planned experiment.")] = 10,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Rank the next experiment: which variable to set, to learn most for its cost."""
    from bayesdag.posterior import load

    posterior = load(result)
    about = posterior.effect(*effect, values, seed=seed) if effect else edge
    ranked = posterior.next_experiment(
        candidate, about=about, cost=numbers("--cost", cost), num_rows=num_rows, seed=seed
    )
    if as_json:
        print_json(ranked.to_dict("records"))
        return
    print_table(ranked, title="Expected gain in nats; resolved: share of the doubt removed")


@app.command()
def export(
    result: Result,
    out: Annotated[Path, typer.Option(help="Where it goes: .dot, .graphml, .gml or .csv.")],
    threshold: Annotated[float, typer.Option(help="Edges must be more probable.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Write the acyclic graph closest to the edge probabilities for another program."""
    from bayesdag.posterior import load

    posterior = load(result)
    posterior.export(out, threshold)
    edges = posterior.consensus_graph(threshold).number_of_edges()
    if as_json:
        print_json({"written": str(out), "edges": edges})
        return
    say(f"Written to {out}: {edges} edges", False)
