"""Commands that list what there is: methods, their settings, and data sets."""

from typing import Annotated

import typer

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import AsJson
from bayesdag.cli.output import print_json, print_rows, say

MEASUREMENTS = "Measurements."


@app.command(epilog=examples("methods", "methods collapsed", "methods collapsed --json"))
def methods(
    name: Annotated[
        str | None, typer.Argument(help="A method: show its presets and settings.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods, or the presets and settings of one."""
    from bayesdag import plugins

    if name is not None:
        _print_method(name, as_json)
        return
    found, kinds = plugins.first_lines("methods"), plugins.described("methods", "takes_kinds")
    if as_json:
        print_json(found)
        return
    rows = [(method, words, kinds[method] or MEASUREMENTS) for method, words in found.items()]
    print_rows(("method", "what it does", "kinds of columns that it has a model for"), rows)
    say(
        "columns that a method has no model for count as numbers to it; text with more labels "
        "than two is refused"
    )
    say("cells may be missing with every method: they are imputed (bayesdag methods imputed)")
    say("bayesdag methods NAME shows the presets and settings of one")


def _print_method(name: str, as_json: bool) -> None:
    from bayesdag.cli.method_help import describe

    found = describe(name)
    if as_json:
        print_json(found._asdict())
        return
    say(f"{name}: {found.summary}")
    say(f"kinds of columns that it has a model for: {', '.join(found.kinds)}")
    columns = ("setting", "default", "meaning")
    if found.settings:
        print_rows(
            columns,
            [[row[column] for column in columns] for row in found.settings],
            title="Settings: --set name=value on the command line, name=value in Python",
        )
    if found.presets:
        rows = [(preset, ", ".join(changes)) for preset, changes in found.presets.items()]
        print_rows(("preset", "what it changes"), rows, title="Presets: --preset NAME")
    else:
        say("no presets")


@app.command(epilog=examples("datasets", "datasets --json"))
def datasets(as_json: AsJson = False) -> None:
    """List the data sets that come with their truth."""
    from bayesdag.datasets import catalogue

    rows = [entry._asdict() for entry in catalogue()]
    if as_json:
        print_json(rows)
        return
    print_rows(list(rows[0]), [tuple(row.values()) for row in rows])
