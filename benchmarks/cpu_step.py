"""CPU time of one step of the paper's engine: one thread, 10 chains, a batch of 512.

    python benchmarks/cpu_step.py --variables 10 20 --passes 3 2 1

Times are CPU seconds of the process, the least of several repetitions: other work on the
machine then matters least. Run the published code side by side for a ratio.
"""

import os

os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
    + os.environ.get("XLA_FLAGS", "")
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import dataclasses
import json
import time

import jax
import numpy as np

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.runs import loop
from bayesdag.sgmcmc import chains

PRESETS = {10: "paper-er10", 20: "paper-er20", 30: "paper-er30", 50: "paper-er50"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variables", type=int, nargs="+", default=[10, 20, 30, 50])
    parser.add_argument("--passes", type=int, nargs="+", default=[3, 2, 1])
    parser.add_argument("--tile", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for d in options.variables:
        for passes in options.passes:
            method = dataclasses.replace(
                BayesDAG.PRESETS[PRESETS[d]], passes=passes, tile_rows=options.tile
            )
            seconds, compile_seconds = time_step(method, d, options.repeats)
            row = {"d": d, "passes": passes, "step": seconds, "compile": compile_seconds}
            print(json.dumps(row), flush=True)


def time_step(method: BayesDAG, d: int, repeats: int) -> tuple[float, float]:
    """Least CPU seconds of a step, and those until the first step was done."""
    names = tuple(f"x{i}" for i in range(d))
    rows = np.random.default_rng(0).normal(size=(5000, d)) * 3
    data = Dataset(rows, names)
    context = chains.context([data], Constraints.free(names))
    keys = jax.random.key(0)[None]
    state = jax.jit(jax.vmap(lambda key: method.start(key, *rows.shape)))(keys)
    schedule, kernel = loop.Schedule(10**6, 1, 1), chains.StackedDatasets(method)
    progress = loop._begin(keys, kernel, state, context, schedule)
    started = time.process_time()
    progress = loop.advance(keys, kernel, progress, context, schedule, 2)
    jax.block_until_ready(progress)
    compiled = time.process_time() - started
    best = float("inf")
    for repeat in range(repeats):
        started = time.process_time()
        progress = loop.advance(keys, kernel, progress, context, schedule, 2 + 3 * (repeat + 1))
        jax.block_until_ready(progress)
        best = min(best, (time.process_time() - started) / 3)
    return round(best, 4), round(compiled, 1)


if __name__ == "__main__":
    main()
