"""The command that draws a figure for a paper or a slide."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import AsJson, Force, Result
from bayesdag.cli.output import print_json, say
from bayesdag.cli.result_file import refuse_existing

SUFFIXES = (".svg", ".pdf", ".png")


@app.command(
    epilog=examples(
        "plot cells.nc --out cells.svg",
        "plot cells.nc --out cells.pdf --threshold 0.8",
        "plot cells.nc --out heat.png --kind edges",
        "plot cells.nc --out effect.svg --kind effect --cause Raf --outcome Mek",
        "plot cells.nc --out curve.svg --kind function --cause Raf --outcome Mek --data cells.csv",
    )
)
def plot(
    result: Result,
    out: Annotated[Path, typer.Option(help="Where it goes: .svg, .pdf or .png.")],
    kind: Annotated[
        str, typer.Option(help="graph, edges, paths, effect, function or traces.")
    ] = "graph",
    threshold: Annotated[
        float | None, typer.Option(help="Of a graph: arrows must be more probable; default 0.5.")
    ] = None,
    cause: Annotated[str | None, typer.Option(help="Of an effect or a function.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Of an effect or a function.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The table that was fitted: points behind a function.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Draw a figure of a result. Needs matplotlib: pip install 'bayesdag[plot]'."""
    from bayesdag.plot import save
    from bayesdag.posterior import load
    from bayesdag.runs.files import locked, write_whole

    _check_suffix(out)
    options = _options(kind, threshold=threshold, cause=cause, outcome=outcome, data=data)
    posterior = load(result)
    with locked(out):
        if not force:
            refuse_existing(out)
        axes = posterior.plot(kind, **options)
        write_whole(out, lambda to: save(axes, to, out.suffix.lstrip(".")))
    if as_json:
        print_json({"written": str(out), "kind": kind})
        return
    say(f"Written to {out}")


def _check_suffix(out: Path) -> None:
    from bayesdag.errors import InputError

    if out.suffix not in SUFFIXES:
        raise InputError(f"--out ends in {', '.join(SUFFIXES)}, not {str(out)!r}")


def _options(kind: str, **given: Any) -> dict[str, Any]:
    """Options that this kind of figure takes; others are refused, missing ones named."""
    from bayesdag.errors import InputError

    pair = ("cause", "outcome")
    takes = {"graph": ("threshold",), "effect": pair, "function": (*pair, "data")}.get(kind, ())
    said = {name: value for name, value in given.items() if value is not None}
    for name in said:
        if name not in takes:
            raise InputError(f"--{name} means nothing for a figure of kind {kind!r}; leave it out")
    for name in set(takes) & set(pair) - set(said):
        raise InputError(f"a figure of kind {kind!r} needs --cause and --outcome; add --{name}")
    return said
