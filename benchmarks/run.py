"""Speed of what users wait for: start-up, exact sums, metrics, the default fit.

    make bench            # or: python benchmarks/run.py --out bench.json

One line a task with wall and CPU seconds; the file also records commit, versions and device.
The other files of this folder time the paper's engine and say in their first lines how.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import bayesdag
from bayesdag import metrics
from bayesdag.datasets.synthetic import Synthetic

SEED = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    rows = []
    for name, task in TASKS.items():
        wall, cpu = time.perf_counter(), time.process_time()
        task()
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        rows.append({"task": name} | {k: round(v, 2) for k, v in seconds.items()})
        print(f"{name:45s} {seconds['wall']:8.2f} s wall {seconds['cpu']:8.2f} s CPU", flush=True)
    if out:
        out.write_text(json.dumps({"about": about(), "rows": rows}, indent=2) + "\n")


def about() -> dict:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    return {
        "commit": commit.strip(),
        "version": bayesdag.__version__,
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        "data_seed": SEED,
    }


def run_python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def linear(num_variables: int, num_rows: int):
    settings = {"mechanism": "signed_linear", "num_train": num_rows, "num_test": 0}
    return Synthetic(num_variables=num_variables, edges_per_node=1, **settings)(SEED).train


def summarise_many_draws() -> None:
    rng = np.random.default_rng(SEED)
    draws = np.triu(rng.random((1000, 100, 100)) < 0.04, 1).astype(np.int8)
    metrics.summary(draws, draws[0])


TASKS: dict[str, Callable[[], object]] = {
    "import bayesdag and everything fit needs": lambda: run_python("-c", "import bayesdag.fitting"),
    "bayesdag --help": lambda: run_python("-m", "bayesdag", "--help"),
    "exact, 5 variables, 500 rows": lambda: bayesdag.fit(linear(5, 500), "exact"),
    "exact, 12 variables, 500 rows": lambda: bayesdag.fit(linear(12, 500), "exact"),
    "collapsed, 20 variables, 1000 rows": lambda: bayesdag.fit(linear(20, 1000), "collapsed"),
    "all metrics, 1000 draws of 100 variables": summarise_many_draws,
}


if __name__ == "__main__":
    main()
