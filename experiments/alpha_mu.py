"""Which alpha_mu should BGe have? Calibration over random linear worlds decides.

The prior mean of BGe counts as alpha_mu rows, and with it the prior scale of all weights is
set, so that alpha_mu decides how strong an effect must be to count. Every world is fitted by
exact enumeration (dynamic programming) under each value, and with alpha_mu integrated out: the
posteriors averaged with the evidence of the whole table as weights. Densities of the true
graphs come from the prior on graphs itself, so that only alpha_mu is judged. Where there are
experiments, each third of the rows but the first has one variable set to a value two standard
deviations of its noise from zero, so that means differ from row to row. Raw columns are not
standardised (`--scaling none`), and their means are three standard deviations from zero, where
BGe expects them. From the root of the repository:

    OMP_NUM_THREADS=1 python experiments/alpha_mu.py      # what is not stored yet
    python experiments/alpha_mu.py --table-only   # the table again, from the stored cells
"""

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import bayesdag
from bayesdag.data import Dataset, Scaling
from bayesdag.exact.tables import edges
from bayesdag.knowledge import Knowledge
from bayesdag.methods.exact import Exact, score_tables
from bayesdag.model.priors.density import DensityGrid
from bayesdag.scores.bge import BGe

HERE = Path(__file__).parent
ALPHA_MU = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
INTEGRATED = "integrated out"
EFFECTS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "N(0, .3²)": lambda rng, shape: 0.3 * rng.normal(size=shape),
    "N(0, 1)": lambda rng, shape: rng.normal(size=shape),
    "±U(.5, 1.5)": lambda rng, shape: rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape),
}
# Variables, rows, what is special, and worlds: their seeds start at 0, below 1000, for
# development.
SETTINGS = (
    *((4, num_rows, "", 300) for num_rows in (30, 200, 1000)),
    *((6, num_rows, "", 120) for num_rows in (30, 200, 1000)),
    (10, 200, "", 24),
    *((4, num_rows, "experiments", 300) for num_rows in (30, 200)),
    *((4, num_rows, "raw", 150) for num_rows in (30, 200)),
)
FLOOR = 1e-3  # of a probability in the log score


def world(
    d: int, effects: str, num_rows: int, special: str, seed: int
) -> tuple[Dataset, np.ndarray]:
    """Rows of a random linear Gaussian world, and its graph."""
    rng = np.random.default_rng([d, num_rows, list(EFFECTS).index(effects), seed])
    density = rng.choice(DensityGrid().densities(d))
    order = rng.permutation(d)
    graph = np.zeros((d, d), dtype=bool)
    graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < density, k=1)
    weights = graph * EFFECTS[effects](rng, (d, d))
    noise = rng.normal(size=(num_rows, d)) * np.exp(0.3 * rng.normal(size=d))
    names = tuple(f"v{i}" for i in range(d))
    if special != "experiments":
        values = noise @ np.linalg.inv(np.eye(d) - weights)
        shifted = values + 3 * values.std(axis=0)
        raw = Dataset(shifted, names, None, Scaling.of(shifted, "none"))
        return (raw if special == "raw" else Dataset(values, names)), graph
    mask = np.zeros((num_rows, d), dtype=bool)
    for part, node in zip(np.array_split(np.arange(num_rows), 3)[1:], order, strict=False):
        mask[part, node] = True
    values = np.zeros((num_rows, d))
    for node in order:
        caused = values @ weights[:, node] + noise[:, node]
        values[:, node] = np.where(mask[:, node], 2.0, caused)
    return Dataset(values, names, mask), graph


def fitted(data: Dataset, alpha_mu: float) -> tuple[np.ndarray, float]:
    """Edge probabilities, and the log evidence of the whole table."""
    score = BGe(alpha_mu)
    exact, knowledge = Exact(score), Knowledge().bind(data.names)
    tables = score_tables(score, score.prepare(data), knowledge)
    log_prior, _ = exact.prior.components(data.num_variables, True)
    mixture = exact._mixture(tables)
    log_weight = log_prior + np.array([found.log_total for found in mixture.sums])
    kept = np.flatnonzero(mixture.weight > 1e-9)
    marginals = [edges(exact._modular.parent_sets(mixture.sums[c])) for c in kept]
    weight = mixture.weight[kept] / mixture.weight[kept].sum()
    return np.tensordot(weight, marginals, 1), float(np.logaddexp.reduce(log_weight))


def answers(data: Dataset) -> dict[str, np.ndarray]:
    """Edge probabilities under every alpha_mu, and with alpha_mu integrated out."""
    found = [fitted(data, alpha_mu) for alpha_mu in ALPHA_MU]
    log_weight = np.array([log_evidence for _, log_evidence in found])
    weight = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    average = np.tensordot(weight, [edge for edge, _ in found], 1)
    names = [f"{alpha_mu:g}" for alpha_mu in ALPHA_MU]
    single = zip(names, (edge for edge, _ in found), strict=True)
    return {**dict(single), INTEGRATED: average}


def cells(stored: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every measure for each setting and alpha_mu that is not stored."""
    known = {(cell["d"], cell["effects"], cell["rows"]) for cell in stored}
    for d, num_rows, special, num_worlds in SETTINGS:
        rows = f"{num_rows}, {special}" if special else f"{num_rows}"
        for effects in EFFECTS:
            if (d, effects, rows) in known:
                continue
            asked = (world(d, effects, num_rows, special, s) for s in range(num_worlds))
            for name, said in collected(asked).items():
                judged = {
                    f"{kind} {measure}": value
                    for kind, pairs in said.items()
                    for measure, value in judge(np.array(pairs, dtype=float)).items()
                }
                yield {"d": d, "effects": effects, "rows": rows, "alpha_mu": name} | judged
            print(f"{d} variables, {effects}, {rows} rows: done", flush=True)


def collected(worlds: Iterable[tuple[Dataset, np.ndarray]]) -> dict[str, dict[str, list]]:
    """Probability and truth of every pair in all worlds, under each alpha_mu."""
    found: dict[str, dict[str, list]] = {}
    for data, graph in worlds:
        pairs, off = np.triu_indices(len(graph), k=1), ~np.eye(len(graph), dtype=bool)
        for name, edge in answers(data).items():
            kept = found.setdefault(name, {"edge": [], "adjacency": []})
            kept["edge"] += zip(edge[off], graph[off], strict=True)
            both, linked = (edge + edge.T)[pairs], (graph | graph.T)[pairs]
            kept["adjacency"] += zip(both, linked, strict=True)
    return found


def judge(pairs: np.ndarray) -> dict[str, float]:
    """Log score, calibration error, and how often the unlikely and the sure are true."""
    said, true = np.clip(pairs[:, 0], FLOOR, 1 - FLOOR), pairs[:, 1] == 1
    bins = np.minimum((said * 10).astype(int), 9)
    count = np.bincount(bins, minlength=10)
    gap = np.abs(np.bincount(bins, said, 10) - np.bincount(bins, true, 10))
    low, high = said <= 0.05, said >= 0.95
    return {
        "log score": float(np.where(true, np.log(said), np.log1p(-said)).mean()),
        "calibration error": float(gap.sum() / count.sum()),
        "said low": int(low.sum()),
        "low and true": float(true[low].mean()) if low.any() else float("nan"),
        "said high": int(high.sum()),
        "high and true": float(true[high].mean()) if high.any() else float("nan"),
    }


def provenance(seconds: float) -> dict[str, Any]:
    """Where and when the figures were made."""
    head = ["git", "describe", "--always", "--abbrev=40", "--dirty"]
    return {
        "commit": subprocess.check_output(head, cwd=HERE, text=True).strip(),
        "device": f"cpu, {os.cpu_count()} cores, {platform.machine()}",
        "versions": {
            "python": platform.python_version(),
            "bayesdag": bayesdag.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "wall time": f"{seconds:.0f} s",
    }


def table(rows: list[dict[str, Any]], measure: str, digits: int) -> str:
    """One line per setting, one column per alpha_mu; the best of each line in bold."""
    names = list(dict.fromkeys(row["alpha_mu"] for row in rows))
    settings = list(dict.fromkeys((row["d"], row["effects"], row["rows"]) for row in rows))
    found = {(r["d"], r["effects"], r["rows"], r["alpha_mu"]): r[measure] for r in rows}
    lines = [
        f"| d | effects | rows | {' | '.join(names)} |",
        "| --- | --- | --- |" + " --- |" * len(names),
    ]
    for setting in settings:
        values = np.array([found[(*setting, name)] for name in names])
        lines.append(_line(map(str, setting), values, measure, digits))
    mean = np.array([np.nanmean([found[(*s, name)] for s in settings]) for name in names])
    lines.append(_line(("mean", "", ""), mean, measure, digits))
    if measure.endswith("log score"):
        every = np.array([[found[(*s, name)] for name in names] for s in settings])
        shortfall = (every - every.max(axis=1, keepdims=True)).min(axis=0)
        lines.append(_line(("worst shortfall", "", ""), shortfall, measure, digits))
    return "\n".join(lines)


def _line(setting: Any, values: np.ndarray, measure: str, digits: int) -> str:
    best = np.nanmax(values) if measure.endswith("log score") else np.nan
    best = np.nanmin(values) if measure.endswith("calibration error") else best
    words = [f"**{v:.{digits}f}**" if v == best else f"{v:.{digits}f}" for v in values]
    return f"| {' | '.join(setting)} | {' | '.join(words)} |"


def _setting(setting: tuple[int, int, str, int]) -> str:
    d, num_rows, special, num_worlds = setting
    how = f" ({special})" if special else ""
    return f"{num_worlds} of {d} variables and {num_rows} rows{how} for each kind of effects"


def report(stored: dict[str, Any]) -> str:
    """The whole document."""
    parts = [
        "# alpha_mu of BGe\n",
        "Generated by `experiments/alpha_mu.py`; do not edit. Exact posteriors of random linear "
        "Gaussian worlds whose edge densities come from the prior itself. Log scores are per pair, "
        f"in nats, with probabilities cut at {FLOOR:g}; the calibration error is the mean distance "
        "of what was said from what was true over ten bins, weighted by their pairs. The worst "
        "shortfall is the largest distance from the best of a line.\n",
        f"Worlds: {'; '.join(map(_setting, SETTINGS))}; seeds from 0 on.\n",
        "\n".join(f"- run {k + 1}: {json.dumps(v)}" for k, v in enumerate(stored["runs"])) + "\n",
    ]
    for kind, noun in (("adjacency", "Adjacencies"), ("edge", "Directed edges")):
        for measure, digits in (("log score", 3), ("calibration error", 3)):
            parts.append(f"## {noun}: {measure}\n")
            parts.append(table(stored["cells"], f"{kind} {measure}", digits) + "\n")
    parts.append("## How many adjacencies that were said to be at most .05 are true\n")
    parts.append(table(stored["cells"], "adjacency low and true", 3) + "\n")
    parts.append("## How many adjacencies that were said to be at least .95 are true\n")
    parts.append(table(stored["cells"], "adjacency high and true", 3) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table-only", action="store_true")
    stored_in = HERE / "results" / "alpha_mu.json"
    empty = {"runs": [], "cells": []}
    stored = json.loads(stored_in.read_text()) if stored_in.exists() else empty
    if not parser.parse_args().table_only:
        start = time.perf_counter()
        stored["cells"] += list(cells(stored["cells"]))
        stored["runs"].append(provenance(time.perf_counter() - start))
        stored_in.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    (HERE / "results" / "alpha_mu.md").write_text(report(stored))


if __name__ == "__main__":
    main()
