r"""Can the joint engine (the paper's Algorithm 2) be made to win? Slopes, remedies, comparison.

Parts, each stored in `results/joint.json` engine by engine, with tables in `results/joint.md`:

    slopes     bias and spread of three estimates of ∇ log E[p(D|W)] in the logits, d=5
    linear     what each remedy for "W̃ cannot follow" is worth: d=10, development seeds
    nonlinear  the same with networks, 5000 rows and 500 epochs; the paper's engines on the
               seeds of the paper's figure too (ER and SF)
    chosen     the remedy with the least E-SHD on development seeds, on the figure's seeds
    truth      nonlinear chains that start at the true graph: can they hold it?
    exact      linear d=5 against the exact posterior of the engine's own model
    time       CPU seconds of a step beside those of SG-MCMC+VI, equal settings, one run

The rows of the figure that need no learning are those of `results/trivial.json`, on the same data.
From the root of the repository: `python experiments/joint.py --parts slopes time`, all parts
without an option, or `--table-only` for the tables again. JAX_PLATFORMS=cuda,cpu runs them on a
GPU, where `nonlinear` takes minutes instead of hours; `--store` and `--merge` bring the results
of several machines together.
"""

import os

os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
    + os.environ.get("XLA_FLAGS", "")
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import json
import platform
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import joint_engines
import joint_slopes
import joint_tables
import numpy as np
import trivial

import bayesdag
from bayesdag import metrics
from bayesdag.data import Dataset, Scaling
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.methods.exact import Exact
from bayesdag.runs import loop
from bayesdag.scores.linear_gaussian import LinearGaussian
from bayesdag.sgmcmc import chains, dagspace

HERE = Path(__file__).parent
Cells = list[dict[str, Any]]
Work = Iterator[tuple[str, Callable[[], Cells]]]


@dataclass(frozen=True)
class Options:
    """What to run: data sets of each kind of graph, a trial or not, chains; what is stored."""

    num_datasets: int
    num_development: int
    trial: bool
    num_chains: int | None
    found: Callable[[], dict[str, Any]]

    @property
    def development(self) -> range:
        """Seeds on which settings may be chosen."""
        return range(1, 1 + self.num_development)

    @property
    def judged(self) -> range:
        """Seeds of the figures."""
        return range(trivial.FIRST_SEED, trivial.FIRST_SEED + self.num_datasets)

    def shortened(self, method: Any) -> Any:
        """The method, with fewer chains if so wanted, or in a trial one of a few steps."""
        few = {"num_warmup": 4, "num_samples": 2, "thinning": 2, "num_chains": 2}
        changes = few if self.trial else {"num_chains": self.num_chains or method.num_chains}
        return replace(method, **changes)


def slopes(options: Options) -> Work:
    """Bias and spread of each estimate; the true slope by enumeration."""
    del options
    yield "all", lambda: list(joint_slopes.cells())


def linear(options: Options) -> Work:
    """Every engine on development seeds, linear functions."""
    for name, method in joint_engines.linear().items():
        yield name, _task(options, name, method, "linear", options.development)


def nonlinear(options: Options) -> Work:
    """Every engine on development seeds; those of the figure on its seeds as well."""
    for name, method in joint_engines.nonlinear().items():
        seeds = [*options.development]
        if name in joint_engines.FIGURE:
            seeds += options.judged
        yield name, _task(options, name, method, "mlp", seeds)


def chosen(options: Options) -> Work:
    """The best of the remedies, by development seeds alone, on the seeds of the figure."""
    if name := joint_tables.best(options.found()):
        method = joint_engines.nonlinear()[name]
        yield name, _task(options, name, method, "mlp", [*options.judged])


def truth(options: Options) -> Work:
    """Engines that start at the true order and, where they hold masks, at the true graph."""
    engines = joint_engines.nonlinear()
    for name in joint_engines.FROM_TRUTH:
        yield name, _task(options, name, engines[name], "mlp", options.development, at_truth=True)


def _task(
    options: Options, name: str, method: Any, kind: str, seeds: Any, at_truth: bool = False
) -> Callable[[], Cells]:
    """All data sets of all seeds in one compiled run."""

    def run() -> Cells:
        sources = _sources(kind, seeds, options.trial)
        datasets = [_raw(source.train) for source in sources]
        keys = jax.random.split(jax.random.key(seeds[0]), len(datasets))
        free = Constraints.free(datasets[0].names)
        monitor = StartAt([source.graph for source in sources]) if at_truth else None
        started = _clock()
        posteriors = options.shortened(method).fit_many(keys, datasets, free, monitor)
        seconds = (_clock() - started) / len(datasets)
        print(f"{name}: {seconds:.1f} s a data set", flush=True)
        pairs = zip(sources, posteriors, strict=True)
        own = {"seconds": seconds, "chains": options.shortened(method).num_chains}
        return [_measures(source, found) | own for source, found in pairs]

    return run


def _sources(kind: str, seeds: Any, trial: bool) -> list[Any]:
    num_train, num_test = joint_engines.ROWS["trial" if trial else kind]
    return [
        Synthetic(graph=graph, mechanism=kind, num_train=num_train, num_test=num_test)(seed)
        for graph in ("er", "sf")
        for seed in seeds
    ]


def _raw(data: Dataset) -> Dataset:
    """In the units of the data, as the paper's runs."""
    return replace(data, scaling=Scaling.of(data.values, "none"))


def _measures(source: Any, posterior: Any) -> dict[str, Any]:
    flat = posterior.graphs.reshape(-1, *source.graph.shape)
    summary = metrics.summary(flat, source.graph, posterior.weights.reshape(-1))
    effective = posterior.stats.get("effective_masks")
    wanted = ("expected_shd", "edge_f1", "expected_num_edges", "auroc")
    return {
        "graph": source.provenance["dataset"]["graph"].upper(),
        "seed": source.provenance["seed"],
        **{key: summary[key] for key in wanted},
        "nll": trivial.held_out(posterior, source.test),
        "log_joint": float(posterior.stats["log_joint"].mean()),
        "best_log_joint": float(posterior.stats["log_joint"].max()),
        "effective_masks": None if effective is None else float(effective.mean()),
    }


class StartAt:
    """A monitor that moves the chains to these graphs before their first step."""

    def __init__(self, graphs: list[np.ndarray]) -> None:
        pairs = [dagspace.coordinates(graph) for graph in graphs]
        self.masks = np.stack([mask for mask, _ in pairs]).astype(np.float32)
        ranks = np.stack([potentials for _, potentials in pairs])
        self.potentials = 0.05 * (ranks - ranks.mean(axis=1, keepdims=True))

    def resume(self, progress: loop.RunState) -> loop.RunState:
        """The beginning, elsewhere."""
        state: Any = progress.state
        position = np.broadcast_to(self.potentials[:, None], state.potentials.position.shape)
        state = state._replace(potentials=state.potentials._replace(position=position))
        if hasattr(state, "masks"):
            state = state._replace(masks=np.broadcast_to(self.masks[:, None], state.masks.shape))
        return progress._replace(state=state)

    def chunk(self, step: int, total: int, progress: Any, stats: Any) -> None:
        """Nothing to tell."""


def exact(options: Options) -> Work:
    """Linear data of five columns: distance to the exact posterior of the same model."""
    sources = [
        Synthetic(num_variables=5, mechanism="linear", num_train=100, graph=graph)(seed)
        for graph in ("er", "sf")
        for seed in options.judged
    ]
    datasets = [source.train for source in sources]
    free = Constraints.free(datasets[0].names)

    def run(method: Any) -> Cells:
        started = _clock()
        keys = jax.random.split(jax.random.key(0), len(datasets))
        posteriors = options.shortened(method).fit_many(keys, datasets, free)
        seconds = (_clock() - started) / len(datasets)
        pairs = zip(datasets, posteriors, strict=True)
        return [_distance(data, found) | {"seconds": seconds} for data, found in pairs]

    for name, method in joint_engines.small_linear().items():
        yield name, lambda method=method: run(method)


def _distance(data: Dataset, posterior: Any) -> dict[str, float]:
    dags, log_prob = Exact(LinearGaussian()).log_posterior_of_all_dags(
        data, Constraints.free(data.names)
    )
    place = {dag.tobytes(): index for index, dag in enumerate(dags)}
    drawn = posterior.graphs.reshape(-1, *dags[0].shape)
    weights = posterior.weights.reshape(-1)
    share = np.bincount([place[g.tobytes()] for g in drawn], weights, minlength=len(dags))
    edge = np.tensordot(share - np.exp(log_prob), dags, 1)
    return {
        "edge": float(np.abs(edge).max()),
        "mmd": float(np.sqrt(2) * np.linalg.norm(edge) / len(edge)),
        "total_variation": float(np.abs(share - np.exp(log_prob)).sum() / 2),
        "edges": float(np.tensordot(share, dags, 1).sum()),
        "exact_edges": float(np.tensordot(np.exp(log_prob), dags, 1).sum()),
    }


def step_time(options: Options) -> Work:
    """CPU seconds of a step: 10 chains, a batch of 512, the paper's networks, d=10."""
    del options
    for name, method in joint_engines.timed().items():
        yield name, lambda method=method: [{"seconds": _seconds(method)}]


def _seconds(method: Any, d: int = 10, repeats: int = 5) -> float:
    data = Dataset(np.random.default_rng(0).normal(size=(5000, d)), tuple(map(str, range(d))))
    context = chains.context([data], Constraints.free(data.names))
    keys = jax.random.key(0)[None]
    state = jax.jit(jax.vmap(lambda key: method.start(key, 5000, d)))(keys)
    schedule, kernel = loop.Schedule(10**6, 1, 1), chains.StackedDatasets(method)
    progress = loop._begin(keys, kernel, state, context, schedule)
    best = float("inf")
    for stop in range(2, 2 + 3 * (repeats + 1), 3):
        started, first = time.process_time(), int(progress.step)
        progress = loop.advance(keys, kernel, progress, context, schedule, stop)
        jax.block_until_ready(progress)
        best = min(best, (time.process_time() - started) / (stop - first))
    return best


def _clock() -> float:
    """CPU seconds; elapsed ones where a GPU does the work."""
    return time.process_time() if chains.on_cpu() else time.perf_counter()


PARTS = {
    "slopes": slopes,
    "linear": linear,
    "nonlinear": nonlinear,
    "chosen": chosen,
    "truth": truth,
    "exact": exact,
    "time": step_time,
}


class Store:
    """The file of results: what every engine did in every part, and how it was run."""

    def __init__(self, path: Path, commit: str | None) -> None:
        self.path, self.lock = path, threading.Lock()
        self.commit = (
            commit
            or subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=HERE, text=True).strip()
        )

    def load(self) -> dict[str, Any]:
        """Parts, then engines."""
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def add(self, part: str, engine: str, cells: Cells, seconds: float) -> None:
        """Keep what one engine did in one part, in place of what it did before."""
        kind = jax.devices()[0].device_kind
        device = f"{platform.machine()}, one CPU thread" if chains.on_cpu() else kind
        stamp = {"commit": self.commit, "device": device, "seconds": round(seconds, 1)}
        stamp |= {"jax": jax.__version__}
        self.merge({part: {engine: {"stamp": stamp, "cells": cells}}})

    def merge(self, found: dict[str, Any]) -> None:
        """Keep what another store holds."""
        with self.lock:
            stored = self.load()
            for part, engines in found.items():
                stored[part] = stored.get(part, {}) | engines
            self.path.write_text(json.dumps(stored, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--engines", nargs="*", help="only these rows")
    parser.add_argument("--num-datasets", type=int, default=10, help="of each kind of graph")
    parser.add_argument("--num-development", type=int, default=6, help="likewise, seeds from 1")
    parser.add_argument("--chains", type=int, help="of each fit, where time is short")
    parser.add_argument("--workers", type=int, default=1, help="engines compiled side by side")
    parser.add_argument("--limit", type=float, default=1e9, help="no new run after these seconds")
    parser.add_argument("--trial", action="store_true", help="few rows and steps")
    parser.add_argument("--store", type=Path, default=HERE / "results" / "joint.json")
    parser.add_argument("--commit", help="where there is no repository to ask")
    parser.add_argument("--merge", nargs="*", type=Path, default=[], help="stores to add, no runs")
    parser.add_argument("--table-only", action="store_true", help="no runs")
    given = parser.parse_args()
    warnings.simplefilter("ignore", bayesdag.BayesdagWarning)
    store = Store(given.store, given.commit)
    for other in given.merge:
        store.merge(json.loads(other.read_text()))
    if not (given.table_only or given.merge):
        _run(given, store)
    if store.path.parent == HERE / "results":
        store.path.with_suffix(".md").write_text(
            joint_tables.markdown(store.load(), given.num_datasets)
        )


def _run(given: argparse.Namespace, store: Store) -> None:
    options = Options(
        given.num_datasets, given.num_development, given.trial, given.chains, store.load
    )
    begun = time.perf_counter()

    def one(part: str, engine: str, work: Callable[[], Cells]) -> None:
        if time.perf_counter() - begun > given.limit:
            print(f"{part}, {engine}: no time left", flush=True)
            return
        started = _clock()
        cells = work()
        store.add(part, engine, cells, _clock() - started)

    for part in given.parts:
        with ThreadPoolExecutor(given.workers) as pool:
            waiting = [
                pool.submit(one, part, engine, work)
                for engine, work in PARTS[part](options)
                if not given.engines or engine in given.engines
            ]
        for done in waiting:
            done.result()


if __name__ == "__main__":
    main()
