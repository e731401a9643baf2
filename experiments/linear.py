r"""Linear data, unequal noise, 2d edges, 1000 rows: who finds the graph, and in what time?

Runs `collapsed`, the trivial methods and, where an interpreter with sumu and causal-learn is
named, Gadget and BOSS on the same data sets, one after the other; then measures how far
`collapsed` is from the exact posterior of its own score and prior. Writes
`results/linear.json` (every cell) and `results/linear.md`. From the root of the repository:

    python experiments/linear.py --opponents /path/to/venv/bin/python
        # that interpreter: pip install "numpy<2" sumu causal-learn
    python experiments/linear.py --table-only     # the tables again, from the stored cells

A run that was interrupted goes on where it stopped. Every cell of `collapsed` holds the score
of the true graph beside the best of each stage, so that a shortfall can be put down to the
search or to the score. Times are CPU seconds, compilation included: every fit starts without
compiled code.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy import stats

import bayesdag
from bayesdag import metrics, plugins
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.graphs import cpdag
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact

HERE = Path(__file__).parent
FIRST_SEED = 1000  # smaller seeds are for development
OURS = ("collapsed", "bootstrap_ges", "empty", "random_order", "sort_variance", "sort_r2")
COLUMNS = {
    "cpdag_shd": ("CPDAG-SHD", 1),
    "shd": ("E-SHD", 1),
    "brier": ("Brier", 5),
    "auprc": ("AUPRC", 3),
    "num_edges": ("edges", 1),
    "above_truth": ("best − true score", 1),
    "cpu": ("CPU s", 1),
    "seconds": ("wall s", 1),
}
# Data sets of each size, and on how many of them the opponents run.
NUM_DATASETS = {20: (12, 5), 50: (5, 2), 100: (3, 1)}
# Partition moves of Gadget, before the first draw and after; on development data with d=20
# four times as many changed little. One chain: sixteen tempered ones cost sixteen times that.
ITERATIONS = 30_000
NUM_DISTANCES = 4  # data sets of each size on which the exact posterior judges
PATIENCE = 1800  # seconds until an opponent has given up


def judged(edge: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """What marginal probabilities are worth."""
    return {
        "brier": metrics.brier(edge, truth),
        "auprc": metrics.auprc(edge, truth),
        "num_edges": float(edge.sum()),
    }


def ours(name: str, source: Any, seed: int) -> dict[str, Any]:
    """One of this package's methods on one data set."""
    jax.clear_caches()
    started, cpu = time.perf_counter(), time.process_time()
    posterior = bayesdag.fit(source.train, name, seed=seed)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    d = posterior.num_variables
    graphs, weights = posterior.graphs.reshape(-1, d, d), posterior.weights.reshape(-1)
    cell = {
        "seconds": seconds,
        "cpu": cpu,
        "shd": metrics.expected_shd(graphs, source.graph, weights),
        "cpdag_shd": metrics.expected_cpdag_shd(graphs, source.graph, weights),
        **judged(posterior.edge_matrix(), source.graph),
    }
    if name == "collapsed":
        known = Constraints.free(source.train.names)
        truth = Collapsed().log_score_of(source.train, known, source.graph)
        stages = posterior.provenance["search"]["stages"]
        cell["above_truth"] = max(stage["best"] for stage in stages) - truth
        cell["stages"] = {stage["stage"]: stage["best"] - truth for stage in stages}
        cell["tables"] = {
            key: posterior.provenance["tables"][key]
            for key in ("missing_log_mass", "missing_edges")
        }
        cell["chains differ"] = between_chains(posterior)
    return cell


def between_chains(posterior: Any) -> float:
    """Largest difference of an edge probability between a chain and the mean of all."""
    each = posterior.graphs.mean(axis=1)
    return float(np.abs(each - each.mean(axis=0)).max())


def opponent(python: str, name: str, source: Any, **settings: Any) -> dict[str, Any]:
    """A method of another package, in its own interpreter."""
    x = source.train.scaled
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, x=x)
        words = [f"{key}={value}" for key, value in settings.items()]
        script = HERE / "linear_opponents.py"
        subprocess.run(
            [python, script, name, given, found, *words],
            check=True,
            timeout=PATIENCE,
            capture_output=True,
        )
        with np.load(found) as file:
            result = dict(file)
    spent = {"seconds": float(result["seconds"]), "cpu": float(result["cpu"])}
    cell = {**spent, **judged(result["edge"], source.graph)}
    if "graphs" in result:
        cell["shd"] = metrics.expected_shd(result["graphs"], source.graph)
        cell["cpdag_shd"] = metrics.expected_cpdag_shd(result["graphs"], source.graph)
    else:
        differ = result["cpdag"] != cpdag(source.graph)
        cell["cpdag_shd"] = float(np.triu(differ | differ.T).sum())
    return cell


def opponents(python: str, source: Any, num_edges: float) -> dict[str, dict]:
    """All opponents on one data set; one that runs out of time has no cell.

    BOSS runs with the penalty of BIC, and with that of BIC plus the log prior odds of an
    edge at the density `collapsed` has found: the penalty our score has.
    """
    num_rows, d = source.train.values.shape
    density = num_edges / (d * (d - 1) / 2)
    matched = 0.5 + np.log(1 / density - 1) / np.log(num_rows)
    rows = {
        "BOSS, BIC (causal-learn)": ("boss", {"penalty": 0.5}),
        "BOSS, matched penalty": ("boss", {"penalty": matched}),
        "Gadget (sumu)": ("gadget", {"iterations": ITERATIONS, "candidates": 10, "chains": 1}),
    }
    cells = {}
    for title, (name, settings) in rows.items():
        try:
            cells[title] = opponent(python, name, source, **settings)
        except subprocess.TimeoutExpired:
            print(f"{title} gave up after {PATIENCE} s", flush=True)
    return cells


def compare(options: argparse.Namespace, cells: list[dict[str, Any]]) -> Iterator[None]:
    """Adds the cells of every method on every data set that earlier runs left out."""
    done = {(cell["d"], cell["seed"]) for cell in cells}
    for d in options.sizes:
        make = Synthetic(
            num_variables=d, mechanism="signed_linear", num_train=1000, num_test=0,
            scaling="standardised",
        )  # fmt: skip
        num, with_opponents = NUM_DATASETS[d]
        for seed in range(FIRST_SEED, FIRST_SEED + num):
            if (d, seed) in done:
                continue
            source = make(seed)
            rows = {n: ours(n, source, seed) for n in OURS if n in plugins.names("methods")}
            if options.opponents and seed < FIRST_SEED + with_opponents:
                rows |= opponents(options.opponents, source, rows["collapsed"]["num_edges"])
            for method, row in rows.items():
                cells.append({"d": d, "seed": seed, "method": method, **row})
            told = ", ".join(f"{k} {v:+.1f}" for k, v in rows["collapsed"]["stages"].items())
            print(f"d={d}, seed {seed}: best minus true score: {told}", flush=True)
            yield


def distances(cells: list[dict[str, Any]]) -> Iterator[None]:
    """Adds how far draws are from the exact posterior of the same score and prior."""
    method = Collapsed(num_samples=5000)
    exact = Exact(method.score, method.prior, method.order_modular)
    done = {(cell["d"], cell["seed"]) for cell in cells}
    for d, num_rows, edges_per_node in ((5, 100, 1), (12, 200, 2)):
        make = Synthetic(
            num_variables=d, edges_per_node=edges_per_node, mechanism="signed_linear",
            num_train=num_rows, num_test=0,
        )  # fmt: skip
        for seed in range(FIRST_SEED, FIRST_SEED + NUM_DISTANCES):
            if (d, seed) in done:
                continue
            train = make(seed).train
            drawn = bayesdag.fit(train, method, seed=seed)
            truth, found = bayesdag.fit(train, exact, seed=seed).edge_matrix(), drawn.edge_matrix()
            cell = {
                "d": d,
                "rows": num_rows,
                "seed": seed,
                "draws": drawn.weights.size,
                "MMD": metrics.mmd_of_marginals(found, truth),
                "largest edge error": float(np.abs(found - truth).max()),
            }
            cells.append(cell)
            print(json.dumps(cell), flush=True)
            yield


def provenance(earlier: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Where the figures come from; runs that went on add up their time."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=HERE, text=True).strip()

    return {
        "command": " ".join(
            [
                "python",
                *(Path(word).name if Path(word).is_absolute() else word for word in sys.argv),
            ]
        ),
        "first seed": FIRST_SEED,
        "wall seconds": earlier.get("wall seconds", 0.0) + seconds,
        "commit": git("rev-parse", "HEAD"),
        "uncommitted changes in src": bool(git("status", "--porcelain", "--", ":/src")),
        "device": f"{jax.devices()[0].platform}, {os.cpu_count()} cores, {platform.machine()}",
        "load while running": os.getloadavg()[1],
        "method": plugins.configuration(Collapsed()),
    }


def interval(values: list[float | None], digits: int) -> str:
    """Mean ± half of Student's 95 % interval over data sets."""
    if not values or None in values:
        return "–"
    half = stats.sem(values) * stats.t.ppf(0.975, len(values) - 1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {half:.{digits}f}"


def markdown(document: dict[str, Any]) -> str:
    """The tables, generated."""
    lines = ["# Linear data", "", "Generated by `experiments/linear.py`; do not edit.", ""]
    lines += [
        "Mean ± half of Student's 95 % interval over data sets (1000 rows, 2d edges, unequal",
        "noise, standardised columns). The matched penalty of BOSS is that of BIC and the log",
        "prior odds of an edge at the density `collapsed` found. Gadget has a prior of its own",
        "(fair in-degree, each graph once) and its own BGe.",
        "",
        *compared(document.get("cells", [])),
        *judged_by_exact(document.get("distances", [])),
    ]
    stamp = [f"- {key}: {json.dumps(value)}" for key, value in document["provenance"].items()]
    return "\n".join([*lines, "", *stamp])


def compared(cells: list[dict[str, Any]]) -> list[str]:
    """One line a size and method, and the share of runs in which nothing was lost."""
    cells = sorted(cells, key=lambda cell: cell["d"])
    lines = ["| d | method | data sets | " + " | ".join(t for t, _ in COLUMNS.values()) + " |"]
    lines += ["|" + "---|" * (3 + len(COLUMNS))]
    for d, method in dict.fromkeys((cell["d"], cell["method"]) for cell in cells):
        group = [cell for cell in cells if (cell["d"], cell["method"]) == (d, method)]
        numbers = [interval([c.get(k) for c in group], n) for k, (_, n) in COLUMNS.items()]
        lines.append(f"| {d} | {method} | {len(group)} | " + " | ".join(numbers) + " |")
    lines += ["", *(paired(cells, d) for d in dict.fromkeys(cell["d"] for cell in cells)), ""]
    gaps = [(c["d"], c["above_truth"]) for c in cells if "above_truth" in c]
    for d in dict.fromkeys(d for d, _ in gaps):
        reached = [gap > -1e-6 for size, gap in gaps if size == d]
        lines.append(f"- d={d}: best graph scores no less than the true one: "
                     f"{sum(reached)} of {len(reached)} runs")  # fmt: skip
    return lines


def paired(cells: list[dict[str, Any]], d: int) -> str:
    """`collapsed` and the opponents on the data sets that both had."""
    of_size = [cell for cell in cells if cell["d"] == d]
    common = {cell["seed"] for cell in of_size if cell["method"].startswith(("BOSS", "Gadget"))}
    if not common:
        return f"- d={d}: no opponents"
    told = []
    for method in dict.fromkeys(cell["method"] for cell in of_size):
        if method == "collapsed" or method.startswith(("BOSS", "Gadget")):
            group = [c for c in of_size if c["method"] == method and c["seed"] in common]
            shd, brier = (np.mean([c[k] for c in group]) for k in ("cpdag_shd", "brier"))
            told.append(f"{method} {shd:.1f} / {brier:.4f}")
    return f"- d={d}, CPDAG-SHD / Brier on the {len(common)} common data sets: {'; '.join(told)}"


def judged_by_exact(cells: list[dict[str, Any]]) -> list[str]:
    """Distances to the exact posterior."""
    if not cells:
        return []
    head = ["", "Distance of `collapsed` from the exact posterior, same score and prior:", ""]
    head += ["| " + " | ".join(cells[0]) + " |", "|" + "---|" * len(cells[0])]
    return head + ["| " + " | ".join(f"{v:.4g}" for v in c.values()) + " |" for c in cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 50, 100])
    parser.add_argument("--opponents", help="interpreter that has sumu and causal-learn")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--table-only", action="store_true", help="no runs")
    options = parser.parse_args()
    store = options.out / "linear.json"
    document = json.loads(store.read_text()) if store.is_file() else {"provenance": {}}
    earlier, started = document["provenance"], time.perf_counter()
    if not options.table_only:
        warnings.simplefilter("ignore", bayesdag.BayesdagWarning)  # said of every benchmark
        options.out.mkdir(parents=True, exist_ok=True)
        cells, errors = document.setdefault("cells", []), document.setdefault("distances", [])
        for _ in chain(distances(errors), compare(options, cells)):
            document["provenance"] = provenance(earlier, time.perf_counter() - started)
            store.write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "linear.md").write_text(markdown(document) + "\n")


if __name__ == "__main__":
    main()
