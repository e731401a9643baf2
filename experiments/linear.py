r"""Linear data, unequal noise, 2d edges, 1000 rows: who finds the graph, and in what time?

Runs `collapsed`, the trivial methods and, where an interpreter with sumu and causal-learn is
named, Gadget and BOSS on the same data sets, one after the other, and writes
`results/linear.json` (every cell) and `results/linear.md`. From the root of the repository:

    python experiments/linear.py --sizes 20 50 100 --num-datasets 10 \
        --opponents /path/to/venv/bin/python      # pip install "numpy<2" sumu causal-learn
    python experiments/linear.py --exact          # distance to the exact posterior
    python experiments/linear.py --table-only     # the tables again, from the stored cells

Every cell of `collapsed` holds the score of the true graph beside the best of each stage, so
that a shortfall can be put down to the search or to the score.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
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
    "seconds": ("s", 1),
}


def judged(edge: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """What marginal probabilities are worth."""
    return {
        "brier": metrics.brier(edge, truth),
        "auprc": metrics.auprc(edge, truth),
        "num_edges": float(edge.sum()),
    }


def ours(name: str, source: Any, seed: int) -> dict[str, Any]:
    """One of this package's methods on one data set."""
    started = time.perf_counter()
    posterior = bayesdag.fit(source.train, name, seed=seed)
    seconds = time.perf_counter() - started
    d = posterior.num_variables
    graphs, weights = posterior.graphs.reshape(-1, d, d), posterior.weights.reshape(-1)
    cell = {
        "seconds": seconds,
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
    """A method of another package, in its own interpreter; None where it gave up."""
    x = source.train.scaled
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, x=x)
        words = [f"{key}={value}" for key, value in settings.items()]
        script = HERE / "linear_opponents.py"
        subprocess.run(
            [python, script, name, given, found, *words],
            check=True,
            timeout=3600,
            capture_output=True,
        )
        with np.load(found) as file:
            result = dict(file)
    cell = {"seconds": float(result["seconds"]), **judged(result["edge"], source.graph)}
    if "graphs" in result:
        cell["shd"] = metrics.expected_shd(result["graphs"], source.graph)
        cell["cpdag_shd"] = metrics.expected_cpdag_shd(result["graphs"], source.graph)
    else:
        differ = result["cpdag"] != cpdag(source.graph)
        cell["cpdag_shd"] = float(np.triu(differ | differ.T).sum())
    return cell


def opponents(options: argparse.Namespace, source: Any, num_edges: float) -> dict[str, dict]:
    """All opponents on one data set.

    BOSS runs with the penalty of BIC, and with that of BIC plus the log prior odds of an
    edge at the density `collapsed` has found: the penalty our score has.
    """
    num_rows, d = source.train.values.shape
    density = num_edges / (d * (d - 1) / 2)
    matched = 0.5 + np.log(1 / density - 1) / np.log(num_rows)
    rows = {
        "BOSS, BIC (causal-learn)": ("boss", {"penalty": 0.5}),
        "BOSS, matched penalty": ("boss", {"penalty": matched}),
        "Gadget (sumu)": ("gadget", {"iterations": options.iterations, "candidates": 10}),
    }
    return {
        title: opponent(options.opponents, name, source, **settings)
        for title, (name, settings) in rows.items()
        if name not in options.skip
    }


def compare(options: argparse.Namespace, cells: list[dict[str, Any]]) -> Iterator[list]:
    """Cells of every method on every data set, those of earlier runs included."""
    done = {(cell["d"], cell["seed"]) for cell in cells}
    for d in options.sizes:
        make = Synthetic(
            num_variables=d, mechanism="signed_linear", num_train=1000, num_test=0,
            scaling="standardised",
        )  # fmt: skip
        for seed in range(FIRST_SEED, FIRST_SEED + options.num_datasets):
            if (d, seed) in done:
                continue
            source = make(seed)
            rows = {n: ours(n, source, seed) for n in OURS if n in plugins.names("methods")}
            if options.opponents:
                found = rows["collapsed"]["num_edges"]
                rows |= opponents(options, source, found)
            for method, row in rows.items():
                cells.append({"d": d, "seed": seed, "method": method, **row})
            told = ", ".join(f"{k} {v:+.1f}" for k, v in rows["collapsed"]["stages"].items())
            print(f"d={d}, seed {seed}: best minus true score: {told}", flush=True)
            yield cells


def distances(num_datasets: int) -> Iterator[list]:
    """How far draws are from the exact posterior of the same score and prior."""
    cells = []
    for d, num_rows, edges_per_node in ((5, 100, 1), (12, 200, 2)):
        make = Synthetic(
            num_variables=d, edges_per_node=edges_per_node, mechanism="signed_linear",
            num_train=num_rows, num_test=0,
        )  # fmt: skip
        for seed in range(FIRST_SEED, FIRST_SEED + num_datasets):
            train = make(seed).train
            exact = bayesdag.fit(train, Exact(), seed=seed).edge_matrix()
            drawn = bayesdag.fit(train, Collapsed(num_samples=5000), seed=seed)
            cell = {
                "d": d,
                "seed": seed,
                "draws": drawn.weights.size,
                "mmd": metrics.mmd_of_marginals(drawn.edge_matrix(), exact),
                "largest edge error": float(np.abs(drawn.edge_matrix() - exact).max()),
            }
            cells.append(cell)
            print(json.dumps(cell), flush=True)
            yield cells


def provenance() -> dict[str, Any]:
    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=HERE, text=True).strip()

    return {
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
    cells = document.get("cells", [])
    if cells:
        lines += ["| d | method | data sets | " + " | ".join(t for t, _ in COLUMNS.values()) + " |"]
        lines += ["|" + "---|" * (3 + len(COLUMNS))]
    for d, method in dict.fromkeys((cell["d"], cell["method"]) for cell in cells):
        group = [cell for cell in cells if (cell["d"], cell["method"]) == (d, method)]
        numbers = [interval([c.get(k) for c in group], n) for k, (_, n) in COLUMNS.items()]
        lines.append(f"| {d} | {method} | {len(group)} | " + " | ".join(numbers) + " |")
    for d in dict.fromkeys(cell["d"] for cell in cells):
        gaps = [c["above_truth"] for c in cells if c["d"] == d and "above_truth" in c]
        share = np.mean(np.array(gaps) > -1e-6)
        lines += ["", f"d={d}: the best graph scores no less than the true one in {share:.0%}."]
    for cell in document.get("distances", []):
        lines += ["", ", ".join(f"{key} {value:.4g}" for key, value in cell.items())]
    stamp = [f"- {key}: {json.dumps(value)}" for key, value in document["provenance"].items()]
    return "\n".join([*lines, "", *stamp])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--num-datasets", type=int, default=10)
    parser.add_argument("--opponents", help="interpreter that has sumu and causal-learn")
    parser.add_argument("--skip", nargs="*", default=[], help="opponents to leave out")
    parser.add_argument("--iterations", type=int, default=20_000, help="of Gadget, twice")
    parser.add_argument("--exact", action="store_true", help="distance to the exact posterior")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--table-only", action="store_true", help="no runs")
    options = parser.parse_args()
    store = options.out / "linear.json"
    document = json.loads(store.read_text()) if store.is_file() else {}
    if not options.table_only:
        warnings.simplefilter("ignore", bayesdag.BayesdagWarning)  # said of every benchmark
        options.out.mkdir(parents=True, exist_ok=True)
        runs = distances(options.num_datasets)
        if not options.exact:
            runs = compare(options, document.get("cells", []))
        for cells in runs:
            document["distances" if options.exact else "cells"] = cells
            document["provenance"] = provenance()
            store.write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "linear.md").write_text(markdown(document) + "\n")


if __name__ == "__main__":
    main()
