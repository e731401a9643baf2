"""How far do methods get that learn nothing about causes? The rows no table may lack.

Runs the empty graph, random orders, sorting by variance and sorting by R² on the benchmark
suites, raw and standardised, and writes `results/trivial.json` (every cell) and
`results/trivial.md` (means with 95 % intervals). From the root of the repository:

    python experiments/trivial.py                # all of it
    python experiments/trivial.py --table-only   # the table again, from the stored cells
"""

import argparse
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy
from scipy import stats

import bayesdag
from bayesdag import metrics
from bayesdag.data import Dataset, Scaling, sortability
from bayesdag.datasets.sachs import Sachs
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.datasets.syntren import Syntren
from bayesdag.posterior import Posterior

HERE = Path(__file__).parent
METHODS = ("empty", "random_order", "sort_variance", "sort_r2")
FIRST_SEED = 1000  # smaller seeds are for development
NUM_REAL = 5
SIZES = (10, 20, 50)
COLUMNS = {
    "expected_shd": ("E-SHD", 1),
    "expected_cpdag_shd": ("E-CPDAG-SHD", 1),
    "edge_f1": ("F1", 2),
    "expected_num_edges": ("edges", 1),
    "auroc": ("AUROC", 2),
    "auprc": ("AUPRC", 2),
    "brier_skill": ("Brier skill", 2),
    "log_score": ("log score", 3),
    "calibration_error": ("calibration error", 2),
    "calibration_count": ("pairs in it", 0),
    "ancestor_auroc": ("ancestor AUROC", 2),
    "nll": ("NLL", 2),
}
FACTS = {
    "num_true_edges": ("true edges", 1),
    "varsortability": ("varsortability", 2),
    "r2_sortability": ("R²-sortability", 2),
}


@dataclass(frozen=True)
class Case:
    """One data set of a suite: where its rows come from, in which units, by which seed."""

    suite: str
    units: str
    seed: int
    make: Callable[[int], Any]


def cases(num_datasets: int) -> Iterator[Case]:
    for units in ("raw", "standardised"):
        for mechanism, d, graph in (
            (m, d, g) for m in ("mlp", "linear") for d in SIZES for g in ("er", "sf")
        ):
            suite = f"{'nonlinear' if mechanism == 'mlp' else 'linear'} {graph.upper()} d={d}"
            make = Synthetic(num_variables=d, graph=graph, mechanism=mechanism)
            for seed in range(FIRST_SEED, FIRST_SEED + num_datasets):
                yield Case(suite, units, seed, make)
        for index, seed in enumerate(range(FIRST_SEED, FIRST_SEED + NUM_REAL), start=1):
            yield Case("Sachs, bootstraps of 800", units, seed, Sachs(num_bootstrap=800))
            yield Case("Sachs, all 853 cells, restarts", units, seed, Sachs())
            yield Case("SynTReN, sets 1–5", units, seed, Syntren(index=index, num_test=100))


def run(case: Case) -> list[dict[str, Any]]:
    """A cell for each method on one data set."""
    source = case.make(case.seed)
    train, test = source.train, source.test
    if case.units == "standardised":
        scaling = Scaling.of(train.values)
        train = Dataset(scaling.apply(train.values), train.names)
        test = test and Dataset(scaling.apply(test.values), test.names)
    facts = {
        "varsortability": sortability.varsortability(train.values, source.graph),
        "r2_sortability": sortability.r2_sortability(train.values, source.graph),
    }
    return [cell(case, name, train, test, source.graph) | facts for name in METHODS]


def cell(
    case: Case, method: str, train: Dataset, test: Dataset | None, truth: np.ndarray
) -> dict[str, Any]:
    """Every measure of one method on one data set."""
    start = time.perf_counter()
    posterior = bayesdag.fit(train, method, seed=case.seed)
    seconds = time.perf_counter() - start
    d = posterior.num_variables
    weights = posterior.weights.reshape(-1)
    return {
        "suite": case.suite,
        "units": case.units,
        "seed": case.seed,
        "method": method,
        "seconds": seconds,
        "nll": held_out(posterior, test) if test else None,
        **metrics.summary(posterior.graphs.reshape(-1, d, d), truth, weights),
    }


def held_out(posterior: Posterior, test: Dataset) -> float:
    """Negative log likelihood of rows that the method has not seen."""
    untouched = np.zeros(test.values.shape, dtype=bool)

    def one_draw(params: Any, graph: Any) -> Any:
        return posterior.model.log_prob(params, graph, test.values, untouched)

    flat = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (posterior.params, posterior.graphs)
    )
    with jax.enable_x64(True):
        log_likelihoods = np.asarray(jax.vmap(one_draw)(*flat))
    return metrics.negative_log_likelihood(log_likelihoods, posterior.weights.reshape(-1))


def provenance(num_datasets: int, seconds: float) -> dict[str, Any]:
    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=HERE, text=True).strip()

    return {
        "commit": git("rev-parse", "HEAD"),
        "uncommitted changes in src": bool(git("status", "--porcelain", "--", ":/src")),
        "seeds of data sets and methods": (
            f"{FIRST_SEED} to {FIRST_SEED + num_datasets - 1}; Sachs and SynTReN "
            f"{FIRST_SEED} to {FIRST_SEED + NUM_REAL - 1}"
        ),
        "device": f"{jax.devices()[0].platform}, {os.cpu_count()} cores, {platform.machine()}",
        "versions": {
            "python": platform.python_version(),
            "bayesdag": bayesdag.__version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "wall time": f"{seconds:.0f} s",
    }


def interval(values: list[float | None], digits: int) -> str:
    """Mean ± half of Student's 95 % interval over data sets."""
    if None in values:
        return "–"
    mean = float(np.mean(values))
    error = stats.sem(values) if len(values) > 1 else 0.0
    half = error * stats.t.ppf(0.975, max(len(values) - 1, 1))
    constant = half < 1e-9 * max(abs(mean), 1.0)  # up to rounding
    return f"{mean:.{digits}f}" if constant else f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(cells: list[dict[str, Any]], keys: tuple[str, ...], columns: dict) -> str:
    """Markdown with one row for each combination of `keys`, in the order they came."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for entry in cells:
        groups.setdefault(tuple(entry[key] for key in keys), []).append(entry)
    rows = [[*keys, "data sets", *(title for title, _ in columns.values())]]
    rows.append(["---"] * len(rows[0]))
    for group, members in groups.items():
        numbers = [
            interval([entry[name] for entry in members], digits)
            for name, (_, digits) in columns.items()
        ]
        rows.append([*group, str(len(members)), *numbers])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def markdown(document: dict[str, Any]) -> str:
    cells = document["cells"]
    # Suites in the order in which they ran, methods within them.
    place = list(dict.fromkeys((c["suite"], c["units"]) for c in cells))
    cells = sorted(
        cells, key=lambda c: (place.index((c["suite"], c["units"])), METHODS.index(c["method"]))
    )
    first = [c for c in cells if c["method"] == METHODS[0]]
    stamp = "\n".join(
        f"- {key}: {json.dumps(value) if isinstance(value, dict) else value}"
        for key, value in document["provenance"].items()
    )
    return "\n\n".join(
        [
            "# Trivial methods",
            "Generated by `experiments/trivial.py`; do not edit. Mean over data sets ± half of "
            "the 95 % interval (Student's t). A reversal counts 1 in SHD; the log score has its "
            "floor at probability .001; calibration error is over pairs with .05 < p < .95; NLL "
            "is of held-out rows, in the units of the row. Restarts share their data, so their "
            "interval is that of the method's own chance.",
            stamp,
            "## The data",
            table(first, ("suite", "units"), FACTS),
            "## The methods",
            table(cells, ("suite", "units", "method"), COLUMNS),
        ]
    )


def measure(num_datasets: int) -> dict[str, Any]:
    warnings.simplefilter("ignore", bayesdag.BayesdagWarning)  # said of every benchmark
    start = time.perf_counter()
    cells = []
    for case in cases(num_datasets):
        cells += run(case)
        print(f"{case.suite}, {case.units}, seed {case.seed}", flush=True)
    return {"provenance": provenance(num_datasets, time.perf_counter() - start), "cells": cells}


def save(document: dict[str, Any], path: Path) -> None:
    """JSON with the names of the fields once and a line for each cell."""
    cells = document["cells"]
    rows = ",\n".join(json.dumps([_short(value) for value in c.values()]) for c in cells)
    head = json.dumps({"provenance": document["provenance"], "fields": list(cells[0])})
    path.write_text(f'{head[:-1]}, "cells": [\n{rows}\n]}}\n')


def load(path: Path) -> dict[str, Any]:
    """What `save` wrote."""
    stored = json.loads(path.read_text())
    cells = [dict(zip(stored["fields"], row, strict=True)) for row in stored["cells"]]
    return {"provenance": stored["provenance"], "cells": cells}


def _short(value: Any) -> Any:
    return float(f"{value:.7g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--num-datasets", type=int, default=30, help="of each synthetic suite")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--table-only", action="store_true", help="no runs")
    options = parser.parse_args()
    store = options.out / "trivial.json"
    if options.table_only:
        document = load(store)
    else:
        document = measure(options.num_datasets)
        options.out.mkdir(parents=True, exist_ok=True)
        save(document, store)
    (options.out / "trivial.md").write_text(markdown(document) + "\n")


if __name__ == "__main__":
    main()
