r"""Nonlinear data: who finds the graph, how sure is he, and in what time?

Runs `collapsed` with the learned score beside the linear one and the trivial methods, and
writes `nonlinear.json` (every cell) and `nonlinear.md`. From the root of the repository:

    python experiments/nonlinear.py --sizes 10 20 --num-datasets 10
    python experiments/nonlinear.py --sizes 10 --mechanism mlp gp sigmoid additive \
        --noise gaussian laplace student_t --rows 5000 500 100 --scaling raw standardised \
        --one-at-a-time --num-datasets 3 --also bayesdag joint exact
    BAYESDAG_DATA=DIR python experiments/nonlinear.py --measured sachs syntren
    python experiments/nonlinear.py --merge OTHER/nonlinear.json

Every cell of `collapsed` holds the score of the true graph beside the best of each stage, so
that a shortfall can be put down to the search or to the score. Cells that exist are not run
again; every cell says which commit ran it and where.
"""

import argparse
import dataclasses
import itertools
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import bayesdag
from bayesdag import metrics, plugins
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.methods.averaged import Averaged
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.joint import Joint
from bayesdag.scores.neural import NeuralScore

HERE = Path(__file__).parent
SAMPLED = {
    "averaged, neural": Averaged(),
    "bagged, neural": Bagged.PRESETS["neural"],
    "bayesdag": BayesDAG(),
    "joint": Joint(),
}
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
}
SETTING = ("graph", "d", "mechanism", "noise", "rows", "scaling")
CELL = (*SETTING, "seed", "method")
ROW = (*SETTING, "method")


SAID = """Mean ± standard error over data sets. Calibration error: over the pairs with a probability
between .05 and .95. Trivial methods and BGe say what the data give away."""

TIMES = """Seconds a data set, trivial methods left out. The longest includes compilation, because a
process that meets a size for the first time compiles; engines that take several data sets were
given all of a shape at once."""

WHY = """Best graph found against the true one, under the learned score. Where another graph scores
higher, the score is at fault (too few rows to pay for a weak parent, or networks that do not come
close enough); where the search ends lower, the search is. Nodes whose tables did not hold the
parents of a draw count as not representable. Mean nats of the sets in question."""
NO_MATTER = 0.5  # nats
NUM_PARTS = 5  # of the probabilities from .05 to .95


class Task(NamedTuple):
    """A data set, the setting it is an example of, and the seed of data and fit."""

    place: dict[str, Any]
    seed: int
    source: Any


def neural(**settings: Any) -> Collapsed:
    """The collapsed engine with the learned score."""
    return dataclasses.replace(Collapsed.PRESETS["neural"], score=NeuralScore(**settings))


def judged(posterior: Any, truth: np.ndarray, seconds: float) -> dict[str, Any]:
    """What a posterior is worth, and how its unsure edge probabilities turned out."""
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
        "unsure": outcomes(edge, truth),
    }


def outcomes(edge: np.ndarray, truth: np.ndarray) -> list[list[float]]:
    """Of the pairs in each part of (.05, .95): how many, what was said, how many edges."""
    unsure = (edge > 0.05) & (edge < 0.95)
    said, true = edge[unsure], truth[unsure]
    which = np.minimum(((said - 0.05) / 0.18).astype(int), NUM_PARTS - 1)
    sums = (np.bincount(which, weights, NUM_PARTS) for weights in (None, said, true))
    return np.transpose([*sums]).tolist()


def run(method: Any, batch: list[Task]) -> list[dict[str, Any]]:
    """One method on some data sets: all in one compiled run where there are several."""
    started = time.perf_counter()
    if len(batch) == 1:
        posteriors = [bayesdag.fit(batch[0].source.train, method, seed=batch[0].seed)]
    else:
        datasets = [task.source.train for task in batch]
        keys = jnp.stack([jax.random.key(task.seed) for task in batch])
        posteriors = method.fit_many(keys, datasets, Constraints.free(datasets[0].names))
    seconds = (time.perf_counter() - started) / len(batch)
    pairs = zip(posteriors, batch, strict=True)
    return [_cell(method, posterior, task.source, seconds) for posterior, task in pairs]


def _cell(method: Any, posterior: Any, source: Any, seconds: float) -> dict[str, Any]:
    cell = judged(posterior, source.graph, seconds)
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


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """The data sets, one after the other."""
    for name in options.measured:
        numbers = range(1, 6) if name == "syntren" else range(1)
        for number in numbers:
            given = {"index": number} if name == "syntren" else {}
            source = plugins.load("datasets", name)(**given)()
            n, d = source.train.values.shape
            place = dict(zip(SETTING, (name, d, "measured", "–", n, "raw"), strict=True))
            yield Task(place, number, source)
    seeds = range(options.first_seed, options.first_seed + options.num_datasets)
    for place, seed in itertools.product([] if options.measured else settings(options), seeds):
        graph, d, mechanism, noise, rows, scaling = place
        source = Synthetic(
            num_variables=d, graph=graph, mechanism=mechanism, noise=noise, num_train=rows,
            num_test=0, scaling=scaling,
        )(seed)  # fmt: skip
        yield Task(dict(zip(SETTING, place, strict=True)), seed, source)


def settings(options: argparse.Namespace) -> list[tuple]:
    """All combinations, or the first of each list with one change at a time."""
    lists = (
        options.graph, options.sizes, options.mechanism, options.noise, options.rows,
        options.scaling,
    )  # fmt: skip
    first = tuple(some[0] for some in lists)
    wanted = itertools.product(*lists)
    if not options.one_at_a_time:
        return list(wanted)
    return [p for p in wanted if sum(a != b for a, b in zip(p, first, strict=True)) < 2]


def compare(options: argparse.Namespace, cells: list[dict[str, Any]]) -> Iterator[dict]:
    """Add the cell of every method on every data set that is not there yet, one by one."""
    done = {tuple(cell[k] for k in CELL) for cell in cells}
    wanted = list(tasks(options))
    stamp = stamped(options.commit, options.processes)
    for name, method in methods(options).items():
        missing = [t for t in wanted if (*t.place.values(), t.seed, name) not in done]
        for batch in batches(method, missing):
            for task, measures in zip(batch, run(method, batch), strict=True):
                cell = {**task.place, "seed": task.seed, "method": name, **stamp, **measures}
                cells.append(cell)
                tell(task, cell)
                yield cell


def methods(options: argparse.Namespace) -> dict[str, Any]:
    """What is compared, by the name it has in the tables."""
    found: dict[str, Any] = {"collapsed, neural": neural(**json.loads(options.settings))}
    found |= {"collapsed, BGe": Collapsed(), **{name: name for name in TRIVIAL}}
    found |= {name: SAMPLED.get(name, name) for name in options.also}
    return {name: found[name] for name in options.only or found}


def batches(method: Any, missing: list[Task]) -> Iterator[list[Task]]:
    """Data sets of one shape together where the method takes several, else one by one."""
    if not hasattr(method, "fit_many"):
        yield from ([task] for task in missing)
        return
    for shape in sorted({task.source.train.values.shape for task in missing}):
        yield [task for task in missing if task.source.train.values.shape == shape]


def tell(task: Task, cell: dict[str, Any]) -> None:
    """A line on the terminal."""
    told = {k: round(cell[k], 3) for k in ("shd", "f1", "num_edges", "seconds")}
    stages = {k: round(v, 1) for k, v in cell.get("stages", {}).items()}
    print(f"{task.place}, seed {task.seed}, {cell['method']}: {told} {stages}", flush=True)


def stamped(commit: str | None, processes: int = 1) -> dict[str, str]:
    """Which code runs, and where."""
    asked = ["git", "rev-parse", "HEAD"]
    commit = commit or subprocess.check_output(asked, cwd=HERE, text=True).strip()
    kind = jax.devices()[0].device_kind
    device = f"{os.cpu_count()} cores, {platform.machine()}" if kind == "cpu" else kind
    shared = f", one of {processes} processes" if processes > 1 else ""
    return {"commit": commit[:7], "device": device + shared}


def merged(cells: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All cells; of two runs of the same thing on the same kind of machine the later one."""
    key = (*CELL, "device")
    return list({tuple(c[k] for k in key): c for c in [*cells, *others]}.values())


def calibration(cells: list[dict[str, Any]]) -> str:
    """Error over the pairs that are neither sure nor excluded, put together."""
    count, said, true = np.sum([cell["unsure"] for cell in cells], axis=0).T
    num = int(count.sum())
    if num < 10:
        return f"– ({num} pairs)"
    return f"{abs(said - true).sum() / num:.2f} ({num} pairs)"


def markdown(cells: list[dict[str, Any]]) -> str:
    """The tables, generated."""
    lines = ["# Nonlinear data", "", "Generated by `experiments/nonlinear.py`; do not edit.", ""]
    latest = list({tuple(c[k] for k in CELL): c for c in cells}.values())
    lines += [SAID, "", *accuracy(latest), "", "## Time", "", TIMES, "", *times(cells), ""]
    return "\n".join([*lines, *shortfalls(latest)])


def accuracy(cells: list[dict[str, Any]]) -> list[str]:
    """Of each setting and method: how close, how sure."""
    titles = [*ROW, "data sets", *(title for title, _ in COLUMNS.values())]
    rows = []
    for group, some in groups(cells, ROW):
        words = [*group, len(some)]
        words += [interval([c.get(k) for c in some], n) for k, (_, n) in COLUMNS.items()]
        rows.append([*words, calibration(some), listed(some, "commit")])
    return table([*titles, "calibration error", "commit"], rows)


def times(cells: list[dict[str, Any]]) -> list[str]:
    """Of each setting, method and kind of machine: how long."""
    titles = ["d", "rows", "graph", "method", "device"]
    rows = []
    for group, some in groups([c for c in cells if c["method"] not in TRIVIAL], titles):
        seconds = [c["seconds"] for c in some]
        spent = [interval(seconds, 1), f"{max(seconds):.0f}"]
        rows.append([*group, len(some), *spent, listed(some, "commit")])
    return table([*titles, "data sets", "s", "longest s", "commit"], rows)


def groups(cells: list[dict[str, Any]], keys: Any) -> Iterator[tuple[tuple, list[dict[str, Any]]]]:
    """Cells that agree in `keys`; trivial methods follow the others of their setting."""

    def place(group: tuple) -> tuple:
        said = dict(zip(keys, group, strict=True))
        setting = tuple(said[k] for k in SETTING if k in said)
        return (*setting, said.get("method") in TRIVIAL, group)

    for group in sorted({tuple(c[k] for k in keys) for c in cells}, key=place):
        yield group, [c for c in cells if tuple(c[k] for k in keys) == group]


def table(titles: Any, rows: list[list[Any]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return [*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]


def listed(cells: list[dict[str, Any]], key: str) -> str:
    """All that occurs."""
    return ", ".join(sorted({c[key] for c in cells}))


def shortfalls(cells: list[dict[str, Any]]) -> list[str]:
    """Of each setting: what kept the learned score from the true graph."""
    lines = ["## Where learned functions fall short", "", WHY, ""]
    titles = [*SETTING, "data sets", "true graph is best", "score prefers another", "nats"]
    titles += ["search ends below the truth", "nats", "not representable"]
    rows = []
    for group, some in groups([c for c in cells if c["method"] == "collapsed, neural"], SETTING):
        above = np.array([c["above_truth"] for c in some])
        lost = sum(len(c["tables"]["not_representable"]) for c in some)
        better, worse = above[above > NO_MATTER], -above[above < -NO_MATTER]
        words = [*group, len(some), len(some) - len(better) - len(worse)]
        rows.append([*words, len(better), _mean(better), len(worse), _mean(worse), lost])
    return [*lines, *table(titles, rows)]


def _mean(values: np.ndarray) -> str:
    return f"{values.mean():.1f}" if len(values) else "–"


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
    parser.add_argument("--graph", nargs="+", default=["er"])
    parser.add_argument("--mechanism", nargs="+", default=["mlp"])
    parser.add_argument("--noise", nargs="+", default=["gaussian"])
    parser.add_argument("--scaling", nargs="+", default=["raw"])
    parser.add_argument("--rows", type=int, nargs="+", default=[5000])
    parser.add_argument(
        "--one-at-a-time", action="store_true", help="the first of each list, with one change"
    )
    parser.add_argument("--measured", nargs="*", default=[], help="sachs, syntren")
    parser.add_argument("--only", nargs="*", help="methods to run")
    parser.add_argument(
        "--also", nargs="*", default=[], help='further: "bagged, neural", bayesdag …'
    )
    parser.add_argument("--settings", default="{}", help="of the neural score, as JSON")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--processes", type=int, default=1, help="sharing the device; noted")
    parser.add_argument("--commit", help="where there is no repository to ask")
    parser.add_argument("--merge", nargs="*", type=Path, help="add these stores; no runs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "nonlinear.json"
    cells = json.loads(store.read_text())["cells"] if store.is_file() else []
    for other in options.merge or []:
        cells = merged(cells, json.loads(other.read_text())["cells"])
    _write(store, cells)
    if options.merge is None:
        warnings.simplefilter("ignore", bayesdag.BayesdagWarning)  # said of every benchmark
        for _ in compare(options, cells):
            _write(store, cells)


def _write(store: Path, cells: list[dict[str, Any]]) -> None:
    method = plugins.configuration(neural())
    lines = ",\n".join(
        json.dumps(cell) for cell in cells
    )  # a line each: small, and easy to compare
    store.write_text(f'{{"method": {json.dumps(method)}, "cells": [\n{lines}\n]}}\n')
    store.with_suffix(".md").write_text(markdown(cells) + "\n")


if __name__ == "__main__":
    main()
