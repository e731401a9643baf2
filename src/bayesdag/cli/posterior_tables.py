"""A posterior as the commands show it: edges, paths, blankets, and the verdicts."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bayesdag.cli.output import plain_column, print_columns, print_json, print_table, say

if TYPE_CHECKING:
    from bayesdag.posterior import Posterior
    from bayesdag.posterior.check_result import Check

Columns = dict[str, Any]  # values by heading
Tables = dict[str, tuple[str, Columns]]  # each with its title

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
        acting = first_rows(posterior.environment_columns(with_error=True), top)
        print_columns(acting, title="What environments act on, compared with the reference")
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
    found = first_rows(posterior.environment_columns(with_error=True), top)
    return {"environment_targets": _records(found)}


def print_questions(
    posterior: "Posterior", variable: str | None, wanted: set[str], top: int, as_json: bool
) -> None:
    """Tables about one variable, or about all: `wanted` are edges, paths and blanket."""
    makers = {"edges": _edges_of, "paths": _paths, "blanket": _blanket}
    tables: Tables = {}
    for kind, make in makers.items():
        if kind in wanted:
            tables |= make(posterior, variable, top)
    rests_on = variable in posterior.variables and "edges" in wanted
    said = {"assumption": posterior.assumption(str(variable))} if rests_on else {}
    if as_json:
        found = {name: _records(table) for name, (_, table) in tables.items()}
        print_json({**said, **found})
        return
    for words in said.values():
        say(words)
    for title, table in tables.values():
        print_columns(table, title=title)


def first_rows(columns: Columns, top: int) -> Columns:
    """The first rows of columns."""
    return {name: column[:top] for name, column in columns.items()}


def _edges_of(posterior: "Posterior", variable: str, top: int) -> Tables:
    edges = posterior.edge_columns(with_error=True, variable=variable)
    ends = {"into": ("target", "Edges into"), "out_of": ("source", "Edges out of")}
    found: Tables = {}
    for name, (end, words) in ends.items():
        own = edges[end] == variable
        rows = {heading: column[own] for heading, column in edges.items()}
        found[name] = (f"{words} {variable}", first_rows(rows, top))
    return {**found, **_function_of(posterior, variable)}


def _function_of(posterior: "Posterior", variable: str) -> Tables:
    """How probable each class of functions is, where a result has several."""
    weights = posterior.provenance.get("function_weights", {}).get(variable)
    if not weights:
        return {}
    columns = {"function": list(weights), "probability": list(weights.values())}
    return {"function": (f"The function behind {variable}", columns)}


def _paths(posterior: "Posterior", variable: str | None, top: int) -> Tables:
    from bayesdag.posterior import graph_queries

    drawn = (posterior.graphs, posterior.weights, posterior.marginals)
    found = graph_queries.path_probabilities(*drawn).value
    title = f"Causes and effects{_of(variable)}: directed paths, direct or not"
    return {"paths": (title, graph_queries.pair_columns(found, posterior.names, variable, top))}


def _blanket(posterior: "Posterior", variable: str | None, top: int) -> Tables:
    from bayesdag.posterior import graph_queries

    found = graph_queries.markov_blanket_probabilities(posterior.graphs, posterior.weights).value
    headings = ("variable", "in its blanket") if variable else ("one", "other")
    title = f"Markov blanket{_of(variable)}: parents, children and their other parents"
    asked = (found, posterior.names, variable, top)
    columns = graph_queries.pair_columns(*asked, headings=headings, symmetric=True)
    return {"blanket": (title, columns)}


def _of(variable: str | None) -> str:
    return "" if variable is None else f" of {variable}"


def _records(columns: Columns) -> list[dict[str, object]]:
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
