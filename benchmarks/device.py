"""Time of a whole run of the paper's engine on this machine's device, compile included.

    PYTHONPATH=src python benchmarks/device.py --sizes 30 50 70 100 --out device.json

700 epochs of N=5000 rows in batches of 512, ten chains: as published. Needs no installation,
only the packages of the compute core. One JSON line a size, with compile time, median
Sinkhorn iterations and peak memory; quality beside it, on data of the paper's generator.
"""

import argparse
import dataclasses
import json
import subprocess
import time
from pathlib import Path

import jax
import numpy as np

import bayesdag
from bayesdag import metrics
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.methods.bayesdag import BayesDAG

EPOCHS = 700
SEED = 900


@dataclasses.dataclass
class Watch:
    """Notes when the first step was done, and the Sinkhorn iterations after every chunk."""

    started: float
    first_step: float = 0.0
    iterations: list[np.ndarray] = dataclasses.field(default_factory=list)

    def resume(self, template):
        """Nothing to resume."""

    def chunk(self, step, total, state, stats):
        """Called after every chunk."""
        self.first_step = self.first_step or time.perf_counter() - self.started
        self.iterations.append(np.ravel(state.stats["iterations"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 50, 70, 100])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", help="where the copy that runs has no history")
    options = parser.parse_args()
    rows, facts = [], about(options.commit)
    for d in options.sizes:
        rows.append(measure(d))
        print(json.dumps(rows[-1]), flush=True)
        if options.out:
            options.out.write_text(json.dumps({"about": facts, "rows": rows}, indent=2) + "\n")


def measure(d: int) -> dict:
    benchmark = Synthetic(num_variables=d)(seed=SEED)
    method = BayesDAG()
    steps = EPOCHS * -(-benchmark.train.num_rows // method.batch_size)
    num_warmup = steps - method.num_samples * method.thinning
    method = dataclasses.replace(method, num_warmup=num_warmup)
    watch = Watch(time.perf_counter())
    knowledge = Constraints.free(benchmark.train.names)
    posterior = method(jax.random.key(0), benchmark.train, knowledge, watch)
    seconds = time.perf_counter() - watch.started
    memory = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    graphs = posterior.graphs.reshape(-1, d, d)
    return {
        "variables": d,
        "steps": steps,
        "seconds": round(seconds, 1),
        "compile_seconds": round(watch.first_step, 1),
        "median_sinkhorn_iterations": float(np.median(np.concatenate(watch.iterations))),
        "peak_memory_gb": round(memory / 1e9, 2),
        "expected_shd": round(float(metrics.expected_shd(graphs, benchmark.graph)), 1),
        "edge_f1": round(float(metrics.expected_f1(graphs, benchmark.graph)), 3),
        "true_edges": int(benchmark.graph.sum()),
    }


def about(commit: str | None) -> dict:
    told = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    return {
        "device": str(jax.devices()[0].device_kind),
        "jax": jax.__version__,
        "version": bayesdag.__version__,
        "commit": commit or told.strip() or None,
        "data_seed": SEED,
    }


if __name__ == "__main__":
    main()
