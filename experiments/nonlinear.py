r"""Nonlinear data: who finds the graph, how sure is he, and in what time?

Runs `collapsed` with the learned score beside the linear one and the trivial methods, and
writes `nonlinear.json` (every cell) and `nonlinear.md`. From the root of the repository:

    python experiments/nonlinear.py --sizes 10 20 --num-datasets 10
    python experiments/nonlinear.py --sizes 10 --mechanism gp --noise laplace --rows 500
    BAYESDAG_DATA=DIR python experiments/nonlinear.py --measured sachs syntren
    python experiments/nonlinear.py --table-only

Every cell of `collapsed` holds the score of the true graph beside the best of each stage, so
that a shortfall can be put down to the search or to the score.
"""

import argparse
import dataclasses
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import bayesdag
from bayesdag import metrics, plugins
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.scores.neural import Neural

HERE = Path(__file__).parent
TRIVIAL = ("empty", "random_order", "sort_variance", "sort_r2")
COLUMNS = {
    "shd": ("E-SHD", 2),
    "f1": ("F1", 3),
    "brier_skill": ("Brier skill", 3),
    "auroc": ("AUROC", 3),
    "log_score": ("log score", 4),
    "num_edges": ("edges", 1),
    "above_truth": ("best − true score", 1),
    "num_scores": ("scores", 0),
    "seconds": ("s", 1),
}
SETTING = ("graph", "d", "mechanism", "noise", "rows", "scaling")


def neural(**settings: Any) -> Collapsed:
    """The collapsed engine with the learned score."""
    return dataclasses.replace(Collapsed.PRESETS["neural"], score=Neural(**settings))


def judged(posterior: Any, truth: np.ndarray, seconds: float) -> dict[str, Any]:
    """What a posterior is worth, and its edge probabilities for the reliability curve."""
    d = len(truth)
    graphs, weights = posterior.graphs.reshape(-1, d, d), posterior.weights.reshape(-1)
    edge = posterior.edge_matrix()
    return {
        "seconds": seconds,
        "shd": metrics.expected_shd(graphs, truth, weights),
        "f1": metrics.expected_f1(graphs, truth, weights),
        "brier_skill": metrics.brier_skill(edge, truth),
        "auroc": metrics.auroc(edge, truth),
        "log_score": metrics.log_score(edge, truth),
        "num_edges": float(edge.sum()),
        "unsure": [
            [float(edge[i, j]), int(truth[i, j])]
            for i, j in zip(*np.nonzero((edge > 0.05) & (edge < 0.95)), strict=True)
        ],
    }


def run(method: Any, source: Any, seed: int) -> dict[str, Any]:
    """One method on one data set."""
    started = time.perf_counter()
    posterior = bayesdag.fit(source.train, method, seed=seed)
    cell = judged(posterior, source.graph, time.perf_counter() - started)
    if isinstance(method, Collapsed):
        known = Constraints.free(source.train.names)
        truth = method.log_score_of(source.train, known, source.graph)
        found = posterior.provenance["search"]
        cell["above_truth"] = max(stage["best"] for stage in found["stages"]) - truth
        cell["stages"] = {stage["stage"]: stage["best"] - truth for stage in found["stages"]}
        cell["num_scores"] = found["num_scores"]
        cell["tables"] = {
            key: posterior.provenance["tables"][key]
            for key in ("not_representable", "core", "crowded", "missing_edges")
        }
        edge = posterior.edge_matrix()
        cell["errors"] = [
            [int(i), int(j), float(edge[i, j]), int(source.graph[i, j])]
            for i, j in zip(*np.nonzero(abs(edge - source.graph) > 0.2), strict=True)
        ]
    return cell


def sources(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], int, Any]]:
    """Setting, seed and data set, one after the other."""
    for name in options.measured:
        numbers = range(1, 6) if name == "syntren" else range(1)
        for number in numbers:
            given = {"index": number} if name == "syntren" else {}
            source = plugins.load("datasets", name)(**given)()
            n, d = source.train.values.shape
            place = dict(zip(SETTING, (name, d, "measured", "–", n, "raw"), strict=True))
            yield place, number, source
    for d in [] if options.measured else options.sizes:
        for seed in range(options.first_seed, options.first_seed + options.num_datasets):
            source = Synthetic(
                num_variables=d, graph=options.graph, mechanism=options.mechanism,
                noise=options.noise, num_train=options.rows, num_test=0, scaling=options.scaling,
            )(seed)  # fmt: skip
            place = (options.graph, d, options.mechanism, options.noise, options.rows)
            yield dict(zip(SETTING, (*place, options.scaling), strict=True)), seed, source


def compare(options: argparse.Namespace, cells: list[dict[str, Any]]) -> Iterator[list]:
    """Cells of every method on every data set, those of earlier runs included."""
    methods: dict[str, Any] = {"collapsed, neural": neural(**json.loads(options.settings))}
    methods |= {"collapsed, BGe": Collapsed(), **{name: name for name in TRIVIAL}}
    done = {tuple(cell[k] for k in (*SETTING, "seed", "method")) for cell in cells}
    for place, seed, source in sources(options):
        for name, method in methods.items():
            skipped = options.only and name not in options.only
            if skipped or (*place.values(), seed, name) in done:
                continue
            cell = {**place, "seed": seed, "method": name, **run(method, source, seed)}
            cells.append(cell)
            told = {k: round(cell[k], 3) for k in ("shd", "f1", "num_edges", "seconds")}
            stages = {k: round(v, 1) for k, v in cell.get("stages", {}).items()}
            print(f"{place}, seed {seed}, {name}: {told} {stages}", flush=True)
            yield cells


def provenance(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "commit": os.popen("git rev-parse HEAD").read().strip(),
        "device": f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {platform.machine()}",
        "method": plugins.configuration(neural(**json.loads(options.settings))),
    }


def calibration(cells: list[dict[str, Any]]) -> str:
    """Error over the pairs that are neither sure nor excluded, put together."""
    pairs = [pair for cell in cells for pair in cell["unsure"]]
    if len(pairs) < 10:
        return f"– ({len(pairs)} pairs)"
    said, true = np.array(pairs).T
    which = np.minimum(((said - 0.05) / 0.18).astype(int), 4)
    error = sum(
        (which == k).mean() * abs(said[which == k].mean() - true[which == k].mean())
        for k in np.unique(which)
    )
    return f"{error:.2f} ({len(pairs)} pairs)"


def markdown(document: dict[str, Any]) -> str:
    """The tables, generated."""
    lines = ["# Nonlinear data", "", "Generated by `experiments/nonlinear.py`; do not edit.", ""]
    cells = document.get("cells", [])
    titles = [
        *SETTING,
        "method",
        "data sets",
        *(t for t, _ in COLUMNS.values()),
        "calibration error",
    ]
    lines += ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for group in dict.fromkeys(tuple(c[k] for k in (*SETTING, "method")) for c in cells):
        some = [c for c in cells if tuple(c[k] for k in (*SETTING, "method")) == group]
        numbers = [interval([c.get(k) for c in some], n) for k, (_, n) in COLUMNS.items()]
        words = [str(word) for word in group]
        lines.append(
            "| " + " | ".join([*words, str(len(some)), *numbers, calibration(some)]) + " |"
        )
    stamp = [f"- {key}: {json.dumps(value)}" for key, value in document["provenance"].items()]
    return "\n".join([*lines, "", *stamp])


def interval(values: list[float | None], digits: int) -> str:
    """Mean ± standard error over data sets."""
    if not values or None in values:
        return "–"
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--num-datasets", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1000, help="smaller: development")
    parser.add_argument("--graph", default="er")
    parser.add_argument("--mechanism", default="mlp")
    parser.add_argument("--noise", default="gaussian")
    parser.add_argument("--scaling", default="raw")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--measured", nargs="*", default=[], help="sachs, syntren")
    parser.add_argument("--only", nargs="*", help="methods to run")
    parser.add_argument("--settings", default="{}", help="of the neural score, as JSON")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--table-only", action="store_true", help="no runs")
    options = parser.parse_args()
    store = options.out / "nonlinear.json"
    document = json.loads(store.read_text()) if store.is_file() else {}
    if not options.table_only:
        warnings.simplefilter("ignore", bayesdag.BayesdagWarning)  # said of every benchmark
        options.out.mkdir(parents=True, exist_ok=True)
        for cells in compare(options, document.get("cells", [])):
            document["cells"] = cells
            document["provenance"] = provenance(options)
            store.write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "nonlinear.md").write_text(markdown(document) + "\n")


if __name__ == "__main__":
    main()
