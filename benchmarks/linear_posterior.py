"""Distance of the paper's engine from exact posteriors: linear data with five variables.

    python benchmarks/linear_posterior.py --anchors DIR --out FILE

Under its own model (θ ~ N(0, 1), σ² ~ IG(1.5, 1), unknown edge density, orders uniform) at
temperature 1, and, in a second column that is no accuracy target, to BGe with a uniform prior
over graphs; the published preset has a temperature near 0 and no exact posterior of its own, so
for it both are comparisons only. MMD with the Hamming kernel, which sees edge marginals.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import time
from pathlib import Path

import jax
import numpy as np

from bayesdag import metrics
from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.uniform import Uniform
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian

METHODS = {
    "temperature 1": dataclasses.replace(
        BayesDAG.PRESETS["quick"], num_warmup=1000, num_samples=20, thinning=25
    ),
    "published preset": BayesDAG.PRESETS["paper-linear-er5"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anchors", type=Path, default=os.environ.get("BAYESDAG_ANCHORS"))
    parser.add_argument("--data-seeds", type=int, nargs="+", default=[5, 6, 7])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for data_seed in options.data_seeds:
        for row in judge(options.anchors / f"linear_er5_seed{data_seed}.npz", options.seeds):
            rows.append({"data_seed": data_seed, **row})
            print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({"about": about(), "rows": rows}, indent=2) + "\n")


def judge(path: Path, num_seeds: int):
    """One row a method: means over seeds, and their range."""
    with np.load(path) as file:
        rows, truth = np.asarray(file["X_train"], np.float64), np.asarray(file["adj"], np.int8)
    data = Dataset(rows, tuple(f"x{i}" for i in range(rows.shape[1])))
    free = Constraints.free(data.names)
    exact = {
        "own_model": Exact(LinearGaussian(), DensityGrid(), order_modular=True),
        "bge": Exact(BGe(), Uniform(), order_modular=False),
    }
    edges = {n: m(jax.random.key(0), data, free, None).edge_matrix() for n, m in exact.items()}
    for name, method in METHODS.items():
        started = time.process_time()
        keys = jax.random.split(jax.random.key(1), num_seeds)
        found = method.fit_many(keys, [data] * num_seeds, free)
        row = {"method": name, "cpu_seconds": round(time.process_time() - started, 1)}
        for reference, edge in edges.items():
            values = [metrics.mmd_of_marginals(p.edge_matrix(), edge) for p in found]
            row[f"mmd_{reference}"] = round(float(np.mean(values)), 3)
            row[f"mmd_{reference}_range"] = [round(v, 3) for v in (min(values), max(values))]
        shd = [metrics.expected_shd(p.graphs.reshape(-1, *truth.shape), truth) for p in found]
        row["expected_shd"] = round(float(np.mean(shd)), 2)
        row["expected_edges"] = round(float(np.mean([p.edge_matrix().sum() for p in found])), 2)
        yield row


def about() -> dict:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    return {
        "command": "python benchmarks/linear_posterior.py --anchors DIR",
        "commit": commit.strip() or None,
        "device": str(jax.devices()[0].device_kind),
        "seeds": "key 1, split",
    }


if __name__ == "__main__":
    main()
