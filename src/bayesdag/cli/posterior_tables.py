"""A posterior as the commands show it: edges, paths, blankets, and the verdicts."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bayesdag.cli.output import plain_column, print_columns, print_json, print_table, say

if TYPE_CHECKING:
    from bayesdag.posterior import Posterior
    from bayesdag.posterior.check_result import Check

# Edges above this are counted where the table does not reach them.
PROBABLE = 0.95
RANKING = (
    "edges of equal probability are ranked by evidence: the log likelihood that is lost without "
    "the cause (in nats, approximate)"
)


def print_posterior(
    posterior: "Posterior", top: int, as_json: bool, checked: "Check | None" = None
) -> None:
    """Print whether the model fits, its edges, and the diagnostics of the chains."""
    edges = posterior.edge_columns(top, with_error=True, with_evidence=True)
    found, fit = posterior.diagnostics(), checked or posterior.checked
    described = posterior.describe()
    if posterior.checked is not None:
        described = described[len(posterior.checked.lines()) :]  # said above the edges
    if as_json:
        shown = {
            "edges": _records(edges),
            "num_edges_above_0.95": _num_probable(posterior),
            **_targets(posterior, top),
            "diagnostics": found.summary(),
            "provenance": posterior.provenance,
        }
        print_json(shown if fit is None else {"check": fit.summary(), **shown})
        return
    for line in fit.lines() if fit is not None else []:
        say(line)
    if found.search:
        say(f"search: {found.search}")
    _print_edges(posterior, edges)
    if posterior.contexts:
        table = posterior.environment_targets(with_error=True).head(top)
        print_table(table, title="What environments act on, compared with the reference")
    if found.comparable:
        print_columns(found.columns(), title="Do the chains agree?")
    chains = replace(found, search="").verdict  # of searches enough was said above the edges
    for line in [*(line for line in described if line != found.search), f"chains: {chains}"]:
        say(line)
    if checked is not None:
        print_table(checked.table(), title="Misfit of each variable in nats per row")


def _targets(posterior: "Posterior", top: int) -> dict[str, Any]:
    if not posterior.contexts:
        return {}
    found = posterior.environment_targets(with_error=True).head(top)
    return {"environment_targets": found.to_dict("records")}


def print_questions(
    posterior: "Posterior", variable: str | None, wanted: set[str], top: int, as_json: bool
) -> None:
    """Tables about one variable, or about all: `wanted` are edges, paths and blanket."""
    makers = {"edges": _edges_of, "paths": _paths, "blanket": _blanket}
    tables: dict[str, tuple[str, Any]] = {}
    for kind, make in makers.items():
        if kind in wanted:
            tables |= make(posterior, variable, top)
    rests_on = variable in posterior.variables and "edges" in wanted
    said = {"assumption": posterior.assumption(str(variable))} if rests_on else {}
    if as_json:
        found = {name: table.to_dict("records") for name, (_, table) in tables.items()}
        print_json({**said, **found})
        return
    for words in said.values():
        say(words)
    for title, table in tables.values():
        print_table(table, title=title)


def _edges_of(posterior: "Posterior", variable: str, top: int) -> dict[str, tuple[str, Any]]:
    edges = posterior.edge_table(with_error=True, variable=variable)
    into, out_of = edges[edges["target"] == variable], edges[edges["source"] == variable]
    return {
        "into": (f"Edges into {variable}", into.head(top)),
        "out_of": (f"Edges out of {variable}", out_of.head(top)),
        **_function_of(posterior, variable),
    }


def _function_of(posterior: "Posterior", variable: str) -> dict[str, tuple[str, Any]]:
    """How probable each class of functions is, where a result has several."""
    import pandas

    weights = posterior.provenance.get("function_weights", {}).get(variable)
    if not weights:
        return {}
    rows = [{"function": words, "probability": value} for words, value in weights.items()]
    return {"function": (f"The function behind {variable}", pandas.DataFrame(rows))}


def _paths(posterior: "Posterior", variable: str | None, top: int) -> dict[str, tuple[str, Any]]:
    from bayesdag.posterior.graph_queries import pair_table

    found = posterior.path_probabilities().to_numpy()
    title = f"Causes and effects{_of(variable)}: directed paths, direct or not"
    return {"paths": (title, pair_table(found, posterior.names, variable, top))}


def _blanket(posterior: "Posterior", variable: str | None, top: int) -> dict[str, tuple[str, Any]]:
    from bayesdag.posterior.graph_queries import pair_table

    found = posterior.markov_blanket_probabilities().to_numpy()
    headings = ("variable", "in its blanket") if variable else ("one", "other")
    title = f"Markov blanket{_of(variable)}: parents, children and their other parents"
    table = pair_table(found, posterior.names, variable, top, headings=headings, symmetric=True)
    return {"blanket": (title, table)}


def _of(variable: str | None) -> str:
    return "" if variable is None else f" of {variable}"


def _records(columns: dict[str, Any]) -> list[dict[str, object]]:
    """Columns as rows with names."""
    values = [plain_column(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _print_edges(posterior: "Posterior", edges: dict[str, Any]) -> None:
    import numpy as np

    shown = {name: column for name, column in edges.items() if name != "evidence"}
    print_columns(shown, title="Most probable edges")
    more = _num_probable(posterior) - int(np.sum(edges["probability"] > PROBABLE))
    if more > 0:
        say(f"and {more} more edge{'s' * (more > 1)} above {PROBABLE:.2f} (--top shows more)")
    if np.isfinite(edges["evidence"]).sum() > 1:
        say(RANKING)


def _num_probable(posterior: "Posterior") -> int:
    d = len(posterior.variables)
    return int((posterior.edge_matrix()[:d, :d] > PROBABLE).sum())
