"""The page: what was found, put into one HTML file that needs nothing else.

Everything that comes from the data is escaped by the template or stands in a JSON element; a
content security policy allows the page's own scripts and styles, by their hashes, and nothing else.
"""

import base64
import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from bayesdag.data import Dataset
from bayesdag.errors import BayesdagWarning
from bayesdag.posterior import Posterior, fitted_data
from bayesdag.posterior.predictive_checks import refuse_other_data
from bayesdag.report import answer, chains, columns, effects, glossary, graph, numbers, reproduce
from bayesdag.runs.files import write_whole
from bayesdag.text import printable

HERE = Path(__file__).parent
SCRIPTS = ("dom", "charts", "graph", "heatmap", "tables", "effects", "page")
MOST_ROWS = 200
MOST_CLASSES = 8
LEAST_TARGET = 0.05  # probability that an environment acts on a variable at all
MOST_CANDIDATES = 12
EXPERIMENTS: dict[str, Any] = {"num_draws": 300, "num_experiments": 32}


def write(
    posterior: Posterior,
    path: str | Path,
    *,
    data: object = None,
    title: str = "",
    table: str = "TABLE.csv",
    result: str = "RESULT.nc",
    num_rows: int = MOST_ROWS,
) -> None:
    """Write the report of a posterior to an HTML file, whole or not at all.

    Args:
        posterior: of any method.
        path: where it goes.
        data: the table that was fitted; its rows are then shown behind the functions. Another
            table is refused.
        title: what the page is called; the number of variables by default.
        table: file name in the command that makes the result again.
        result: file name in that command and in those of further questions.
        num_rows: measured rows that the page shows, and carries, at most; 0 for none.
    """
    text = render(posterior, data=data, title=title, table=table, result=result, num_rows=num_rows)
    write_whole(Path(path), lambda to: to.write_text(text, encoding="utf-8"))


def render(
    posterior: Posterior,
    *,
    data: object = None,
    title: str = "",
    table: str = "TABLE.csv",
    result: str = "RESULT.nc",
    num_rows: int = MOST_ROWS,
) -> str:
    """The report as the text of an HTML page; arguments as in `write`."""
    rows = _rows(posterior, data, num_rows)
    classes = posterior.equivalence_classes()
    found, d = posterior.diagnostics(), len(posterior.variables)
    compelled = classes.compelled_matrix()[:d, :d]
    payload = {
        **graph.graph_view(posterior, classes),
        "functions": graph.functions_view(posterior, rows),
        "rows": None if rows is None else [numbers.short(column) for column in rows.values.T],
        "columns": _column_numbers(posterior),
        "effects": effects.effects_view(posterior),
        "chains": chains.chains_view(posterior),
        "result": result,
        "misfits": sorted(answer.misfits(posterior)),
        "contexts": np.flatnonzero(posterior.contexts.mask).tolist(),
    }
    return _template().render(
        title=title or f"{posterior.num_variables} variables",
        posterior=posterior,
        answer=answer.answer(
            posterior, found, compelled, posterior.evidence_matrix(among_variables=True)
        ),
        found=found,
        edge_errors=_largest_error(posterior),
        classes=classes.table().head(MOST_CLASSES),
        num_classes=len(classes.mass),
        columns=columns.columns(posterior),
        checked=posterior.checked,
        experiment=_experiment(posterior),
        targets=_targets(posterior),
        glossary=sorted(glossary.TERMS.items(), key=lambda item: item[0].lower()),
        command=reproduce.command(posterior, table, result),
        knowledge=reproduce.knowledge(posterior),
        provenance=_provenance(posterior),
        result=result,
        has_rows=rows is not None,
        num_shown=0 if rows is None else len(rows.values),
        payload=numbers.script_json(payload),
        **_assets(),
    )


def _rows(posterior: Posterior, data: object, num_rows: int) -> graph.ShownRows | None:
    if data is None or num_rows == 0:
        return None
    dataset = data if isinstance(data, Dataset) else posterior.read(data)
    dataset = fitted_data.with_kinds_of(posterior.summary, dataset)
    refuse_other_data(posterior.provenance, posterior.summary, dataset)
    dataset = dataset.complete_rows()
    return graph.shown_rows(dataset, num_rows)


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "figure": numbers.figure,
        "probability": numbers.probability,
        "printable": printable,
        "id": lambda term: "term-" + "".join(c if c.isalnum() else "-" for c in term.lower()),
    }
    return environment.get_template("report.html.jinja")


def _assets() -> dict[str, Any]:
    """Scripts and styles as they stand in the page, and the policy that allows only them."""
    library = (HERE / "vendor" / "cytoscape.min.js").read_text(encoding="utf-8")
    licence = (HERE / "vendor" / "cytoscape-LICENSE.txt").read_text(encoding="utf-8")
    own = "\n".join(
        (HERE / "static" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS
    )
    style = (HERE / "static" / "report.css").read_text(encoding="utf-8")
    scripts = " ".join(_source(text) for text in (library, own))
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    texts = {"library": library, "script": own, "style": style}
    return {**texts, "policy": policy, "licence": licence}


def _source(text: str) -> str:
    """A hash that allows exactly this text in a content security policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _largest_error(posterior: Posterior) -> float:
    _, error = posterior.edge_probabilities(with_error=True)
    return float(error.to_numpy().max(initial=0.0))


def _column_numbers(posterior: Posterior) -> list[dict[str, Any]]:
    """What the page's own drawings need of each column."""
    facts = posterior.summary["columns"]
    variables = set(posterior.variables)
    return [
        {
            "kind": columns.kind_of(facts[name]) if name in variables else "environment",
            "low": numbers.short([facts[name]["min"]], 6)[0],
            "high": numbers.short([facts[name]["max"]], 6)[0],
            "mean": numbers.short([facts[name]["mean"]])[0],
            "sd": numbers.short([facts[name]["sd"]])[0],
            "assumption": printable(columns.assumption_of(posterior, name)),
        }
        for name in posterior.names
    ]


def _experiment(posterior: Posterior) -> dict[str, Any]:
    """Which variable to set next: the ranking, and what qualifies it.

    Where there are many columns only those with the least decided edges are compared, and
    fewer draws than `bayesdag experiment` takes: the page is made in seconds.
    """
    d = len(posterior.variables)
    candidates = undecided(posterior.edge_matrix()[:d, :d], posterior.variables)
    if not candidates:
        return {"rows": [], "notes": [], "num_candidates": 0, **EXPERIMENTS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BayesdagWarning)
        ranked = posterior.next_experiment(candidates, **EXPERIMENTS)
    notes = [str(one.message) for one in caught if issubclass(one.category, BayesdagWarning)]
    widest = float(ranked["high"].to_numpy().max())
    ranked = ranked.assign(share=ranked["gain"] / widest if widest > 0 else 0.0)
    return {
        "rows": ranked.rename(columns={"fraction removed": "fraction"}).to_dict("records"),
        "notes": notes,
        "num_candidates": len(candidates),
        **EXPERIMENTS,
    }


def _targets(posterior: Posterior) -> list[dict[str, Any]]:
    """What environments act on, most probable first, but for what is improbable."""
    if not posterior.contexts:
        return []
    found = posterior.environment_targets().rename(columns={"compared with": "reference"})
    rows = found.rename(columns={"at all": "total"}).to_dict("records")
    return [row for row in rows if row["total"] >= LEAST_TARGET]


def undecided(edge: np.ndarray, names: tuple[str, ...]) -> list[str]:
    """Columns with undecided edges, those with the most entropy first; at most twelve."""
    clipped = np.clip(edge, 1e-12, 1 - 1e-12)
    entropy = -(clipped * np.log(clipped) + (1 - clipped) * np.log(1 - clipped))
    own = entropy.sum(axis=0) + entropy.sum(axis=1)
    order = np.argsort(-np.round(own, 9), kind="stable")[:MOST_CANDIDATES]
    return [names[int(i)] for i in order if own[i] > 0.01]


def _provenance(posterior: Posterior) -> list[tuple[str, str]]:
    """Where the result comes from, line by line."""
    stated = posterior.provenance
    wanted = {
        "version": "version",
        "model": "model",
        "prior": "prior",
        "temperature": "temperature",
        "seed": "seed",
        "data_hash": "SHA-256 of the data",
    }
    lines = [(words, str(stated[key])) for key, words in wanted.items() if key in stated]
    for key in ("method", "chosen"):
        if key in stated:
            words = "method" if key == "method" else "method chosen by it"
            lines.append((words, json.dumps(stated[key], indent=1, sort_keys=True)))
    size = f"{posterior.num_chains} chain(s) of {posterior.num_draws}"
    return [*lines, ("draws", size), ("rows", str(posterior.summary["num_rows"]))]
