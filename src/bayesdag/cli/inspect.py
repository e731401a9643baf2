"""The command that looks at a table before anything is fitted."""

from typing import TYPE_CHECKING

from bayesdag.cli.app import app, examples
from bayesdag.cli.options import (
    AsJson,
    Environment,
    Kinds,
    Steps,
    Table,
    path_or_name,
    with_preparing,
)
from bayesdag.cli.output import print_json, print_rows, say

if TYPE_CHECKING:
    from bayesdag.data.inspection import Inspection


@app.command(
    epilog=examples(
        "inspect cells.csv",
        "inspect cells.csv --drop id --na-values -9",
        "inspect cells.csv --kinds kinds.yaml",
        "inspect cells.csv --json",
    )
)
@with_preparing
def inspect(
    table: Table,
    *,
    environment: Environment = None,
    kinds: Kinds = None,
    steps: Steps,
    as_json: AsJson = False,
) -> None:
    """Show what each column holds and what a fit would do with it; nothing is fitted."""
    from bayesdag.data import inspection
    from bayesdag.runs.processes import one_blas_thread

    with one_blas_thread():
        found = inspection.inspect(
            table,
            environment=tuple(environment or ()) or None,
            kinds=path_or_name(kinds),
            **steps,
        )
    if as_json:
        print_json(inspection.to_dict(found))
    else:
        _show(found)


def _show(found: "Inspection") -> None:
    num = len(found.columns)
    say(f"{found.num_rows} row{'s' * (found.num_rows != 1)}, {num} column{'s' * (num != 1)}")
    rows = [
        (
            column.name,
            column.kind,
            column.distribution,
            column.values,
            f"{column.missing_fraction:.1%}" if column.missing_fraction else "",
            column.reason,
            column.fit,
        )
        for column in found.columns
    ]
    heads = ("column", "kind", "distribution", "values", "missing", "why", "a fit takes it as")
    print_rows(heads, rows)
    for name in found.environments:
        say(f"{name}: says where rows come from; its labels become context variables")
    roots = [column.name for column in found.columns if column.assumed_root]
    if roots:
        whom = "them" if len(roots) > 1 else "it"
        say(
            f"{', '.join(roots)}: a fit takes {whom} to have no causes in this table, by name "
            "(fit --no-assumed-roots lets the data decide)"
        )
    for advice in (*(words for column in found.columns for words in column.advice), *found.advice):
        say(f"note: {advice}")
    if found.refusal:
        say(f"a fit would refuse this table: {found.refusal}")
