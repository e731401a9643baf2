"""Writes the two worked cases on measured data again: `python docs/worked_cases.py`.

The data come from the folder that BAYESDAG_DATA names and are never stored here; every number on
the pages is of the fits that this program makes, about a minute of one core.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesdag import fit
from bayesdag.datasets import Benchmark
from bayesdag.datasets.light_tunnel import LightTunnel
from bayesdag.datasets.sachs_full import SachsFull
from bayesdag.plot import save
from bayesdag.posterior import Posterior
from bayesdag.report import answer

DOCS = Path(__file__).parent
NUM_ROWS = 1000
SURE = answer.SURE
TOLD = {
    "nothing": "nothing: rows pooled",
    "environment": "the condition of each row",
    "targets": "which cells were set",
}
TRUE, REVERSED, UNSCORED, WRONG = "true", "reversed", "not scored", "no such link"
NUM_CAVEATS = 4


@dataclass(frozen=True)
class Case:
    """One page.

    Attributes:
        name: of the page and of its pictures.
        title: heading.
        dataset: makes the rows, given what a method is told.
        settings: of the data set.
        begin: what was measured, and what is known of the truth.
        end: what to learn from it.
    """

    name: str
    title: str
    dataset: type
    settings: dict[str, Any]
    begin: str
    end: str


CASES = (
    Case(
        "light-tunnel",
        "A light tunnel: the truth is wiring",
        LightTunnel,
        {},
        "A box of lamps, polarisers and sensors, built so that its causes are known (Gamella, "
        "Peters & Bühlmann 2025). Three colours of a lamp (`red`, `green`, `blue`), a polariser"
        " (`pol_1`) and the exposure time of a sensor (`t_ir_3`) were set at random; six "
        "sensors read what arrives. The actuators follow other distributions in other "
        "conditions. Two sensors at one place share a fluctuation that is not in the table, so "
        "that the pair has no right answer and is not scored.",
        "**Where it fails, and how the report warned.** Pooled rows leave directions open that "
        "the conditions decide, and one of the few sure arrows is false: the rows seem to come in "
        "groups, half of the draws allow for them, and guessed groups are no conditions. Told "
        "where rows come from, nearly all of the wiring is found. The functions are products of "
        "brightness and the squared cosine of the polariser, and not straight lines: the check "
        "sees it, names the variables, and says that what a probability of 95 % is worth was "
        "never measured for a misfit of this size. That caution costs something here, because "
        "most arrows are right; on the next table they need not be.",
    ),
    Case(
        "flow-cytometry",
        "Flow cytometry: the truth is what experts agreed on",
        SachsFull,
        {"logarithm": True},
        "Eleven proteins and lipids in single immune cells, measured under nine conditions, in "
        "which reagents activate or inhibit some of them (Sachs et al. 2005); logarithms of the"
        " readings. The truth is a network of 17 arrows that the field compares with. It is "
        "what experts agreed on, has been disputed since, and is no DAG in the cell, where "
        "signals feed back.",
        "**Where it fails, and how the report warned.** Pooled, the conditions make proteins "
        "move together that do not act on each other. The rows seem to come in groups that nobody "
        "marked, half of the draws allow for them, and no arrow is sure any more. Told "
        "the condition of each row, the links are mostly right, but an arrow "
        "between linked proteins may point against the textbook, because reagents act on "
        "several proteins and on what proteins do rather than on their level. Told that cells "
        "were *set* it is worst: a level that an inhibitor was aimed at still follows its "
        "causes, so that marking it as set is a false statement, and false statements make a "
        "method sure. In every one of the fits the report lists all sure arrows under what not "
        "to trust, because each touches a variable that the model does not fit. Its line on "
        "what 95 % has been worth comes from generated data, and these cells are worse than "
        "those: the line is no promise.",
    ),
)


def main() -> None:
    """Fit both cases and write their pages and pictures."""
    for case in CASES:
        fits = {told: _fitted(case, told) for told in TOLD}
        for told in ("nothing", "environment"):
            picture = DOCS / "pictures" / f"{case.name}-{told}.svg"
            save(fits[told][1].among_variables().plot(), picture, "svg")
        page = "\n\n".join(_page(case, fits)) + "\n"
        (DOCS / "cases" / f"{case.name}.md").write_text(page, encoding="utf-8")


def _fitted(case: Case, told: str) -> tuple[Benchmark, Posterior]:
    """The rows and what `collapsed` with linear functions says of them."""
    source = case.dataset(marking=told, num_rows=NUM_ROWS, **case.settings)(0)
    known = {"environment": source.environment} if told == "environment" else {}
    return source, fit(source.train, "collapsed", seed=0, progress=False, **known)


def _page(case: Case, fits: dict[str, tuple[Benchmark, Posterior]]) -> Iterator[str]:
    source, posterior = fits["environment"]
    yield f"# {case.title}"
    yield "Generated by `python docs/worked_cases.py`; do not edit."
    yield case.begin
    data, told = case.dataset.__name__, ", ".join(f"{k}={v}" for k, v in case.settings.items())
    made = f"{data}(marking=…, num_rows={NUM_ROWS}{', ' + told if told else ''})"
    yield (
        f"**What is fitted.** {NUM_ROWS} rows, drawn by seed 0 (`{made}`), method `collapsed` with "
        "its "
        "defaults, linear functions, three times: with rows pooled, with the condition of each "
        "row named (`environment=`), and with the cells that an experimenter set marked "
        "(`interventions=`). [All methods on these data, neural functions "
        "included](../results/measured.md), are in the results."
    )
    yield "## What it says, and what is true"
    yield _counts(fits)
    yield (
        f"An arrow is *sure* at probability {SURE:g} or more; *reversed* means that the truth has "
        f"the opposite one. The truth has {int(source.graph.sum())} arrows."
    )
    for told, words in (("nothing", "Pooled"), ("environment", "Told the conditions")):
        yield f"![{words}: the graph](../pictures/{case.name}-{told}.svg)"
    yield "*Above: rows pooled. Below: told the conditions.*"
    yield "Sure arrows when told the conditions:"
    yield _arrows(source, posterior)
    yield "What the conditions are said to act on, as far as it is sure:"
    yield _targets(posterior)
    yield "## What the report says"
    for told, (_, fitted) in fits.items():
        yield from _report(told, fitted)
    yield "## What to learn from it"
    yield case.end


def _counts(fits: dict[str, tuple[Benchmark, Posterior]]) -> str:
    head = ("told", "sure arrows", TRUE, REVERSED, WRONG, UNSCORED, "misfit, nats")
    rows = []
    for told, (source, posterior) in fits.items():
        found = [verdict(source, *pair) for pair in sure_arrows(posterior)]
        counts = [found.count(kind) for kind in (TRUE, REVERSED, WRONG, UNSCORED)]
        misfit = posterior.checked.misfit if posterior.checked else float("nan")
        rows.append((TOLD[told], len(found), *counts, f"{misfit:.2f}"))
    return table(head, rows)


def sure_arrows(posterior: Posterior) -> list[tuple[int, int]]:
    """Arrows between variables at probability SURE or more, most probable first."""
    edge = posterior.among_variables().edge_matrix()
    found = [(int(i), int(j)) for i, j in np.argwhere(edge >= SURE)]
    return sorted(found, key=lambda pair: -edge[pair])


def verdict(source: Benchmark, cause: int, effect: int) -> str:
    """What the truth says of an arrow."""
    if source.unknown is not None and source.unknown[cause, effect]:
        return UNSCORED
    if source.graph[cause, effect]:
        return TRUE
    return REVERSED if source.graph[effect, cause] else WRONG


def _arrows(source: Benchmark, posterior: Posterior) -> str:
    edge, names = posterior.among_variables().edge_matrix(), posterior.variables
    rows = [
        (f"{names[i]} → {names[j]}", f"{edge[i, j]:.3f}", verdict(source, i, j))
        for i, j in sure_arrows(posterior)
    ]
    return table(("arrow", "probability", "in truth"), rows)


def _targets(posterior: Posterior) -> str:
    acted: dict[str, list[str]] = {}
    for row in posterior.environment_targets().to_dict("records"):
        if row["probability"] >= SURE:
            acted.setdefault(f"{row['environment']} {row['label']}", []).append(row["target"])
    return table(("condition", "acts on"), [(k, ", ".join(v)) for k, v in sorted(acted.items())])


def _report(told: str, posterior: Posterior) -> Iterator[str]:
    compelled = posterior.equivalence_classes().compelled_matrix()
    num = len(posterior.variables)
    said = answer.answer(posterior, posterior.diagnostics(), compelled[:num, :num])
    yield f"**Told {TOLD[told]}**"
    yield f"> *Sure.* {said.sure}\n>\n> *Open.* {said.open}\n>\n> *Not to trust.* {said.distrust}"
    yield f"> {said.worth}"
    if told == "environment":
        yield f"The first {NUM_CAVEATS} of its {len(said.caveats)} caveats:"
        yield "\n".join(f"- {caveat}" for caveat in said.caveats[:NUM_CAVEATS])


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Rows in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
