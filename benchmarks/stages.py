"""Where the time of a fit with learned functions goes, stage by stage.

    python benchmarks/stages.py 5000x10

A table is a CSV file, or ROWSxCOLUMNS of the synthetic generator (mechanism mlp, two edges per
node, or 5000x50x4: four; development seed 5). Seconds of a stage do not include those of stages
inside it; CPU seconds are of all threads of this process, and on a CPU other processes train
families beside it (BAYESDAG_WORKERS=1: none does). Programs that are kept (BAYESDAG_CACHE) are not
compiled again: point it to an empty folder to include compilation.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import numpy as np

import bayesdag
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.collapsed import Collapsed
from bayesdag.orders import pipeline, strategies
from bayesdag.posterior import Posterior
from bayesdag.runs import loop
from bayesdag.scores._neural import crossfit, network_cache
from bayesdag.scores.neural import NeuralScore

SEED = 5
STAGES: tuple[tuple[Any, str, str], ...] = (
    (NeuralScore, "prepare", "normal scores and folds"),
    (strategies.ExpensiveSearch, "_starts", "search with the surrogate"),
    (strategies, "batched_search", "search on the host"),
    (network_cache.NetworkCache, "train", "cache on the host"),
    (crossfit, "regressions", "lines, sums of curves and their noise"),
    (pipeline, "_tables", "tables on the host"),
    (pipeline, "outside", "what tables leave out"),
    (loop, "run", "chains"),
    (NeuralScore, "draw", "draws of functions"),
    (Posterior, "check", "check of the model"),
)


class Stages:
    """Seconds by stage; what a stage calls is not its own."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)
        self.compiling: dict[str, float] = defaultdict(float)
        self.families: dict[str, int] = defaultdict(int)
        self.again: dict[str, int] = defaultdict(int)
        self._open: list[tuple[str, np.ndarray]] = []

    def watch(self, home: Any, name: str, label: str | Callable[..., str]) -> None:
        """Time a function wherever it is called from."""
        function = getattr(home, name)

        @wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            own = label if isinstance(label, str) else label(*given)
            return self.time(own, lambda: function(*given, **named))

        setattr(home, name, timed)

    def time(self, label: str, work: Callable[[], Any]) -> Any:
        """The result of some work, whose seconds count for a stage."""
        inside = np.zeros(2)
        self._open.append((label, inside))
        start = np.array([time.perf_counter(), time.process_time()])
        try:
            return work()
        finally:
            spent = np.array([time.perf_counter(), time.process_time()]) - start
            self._open.pop()
            wall, cpu = spent - inside
            self.wall[label] += wall
            self.cpu[label] += cpu
            if self._open:
                self._open[-1][1][:] += spent

    def compiled(self, event: str, duration_secs: float, **_: Any) -> None:
        """Seconds of compilation, told by JAX; they are part of the stage that waits."""
        if self._open and "compile" in event:
            self.compiling[self._open[-1][0]] += duration_secs

    def training(self, folds: Any, group: Any, *_: Any) -> str:
        """The stage that trains a batch, by the size of its families."""
        size = group.members.shape[1]
        self.families[f"asked for, up to {size} parents"] += len(group.node)
        return f"networks of up to {size} parents"

    def keeping(self, keep: Callable[..., None]) -> Callable[..., None]:
        """The cache's choice between old and new networks, counted where there are old ones."""

        def counted(cache: Any, family: Any, networks: Any) -> None:
            before = cache.trained[family]
            keep(cache, family, networks)
            if before.has_networks:
                self.again["better" if cache.trained[family] is not before else "kept"] += 1

        return counted

    def lines(self) -> list[str]:
        """The table."""
        rows = [f"{'stage':40s} {'wall s':>8s} {'CPU s':>8s} {'of it compiling (wall)':>24s}"]
        for label in sorted(self.cpu, key=lambda name: -self.cpu[name]):
            times = (self.wall[label], self.cpu[label], self.compiling[label])
            rows.append(f"{label:40s} {times[0]:8.1f} {times[1]:8.1f} {times[2]:24.1f}")
        return rows


def table(name: str) -> tuple[Any, int | None]:
    """The data of a name, and the number of true edges where it is known."""
    if name.endswith(".csv"):
        return name, None
    rows, columns, density = map(int, f"{name}x2".split("x")[:3])
    made = Synthetic(
        num_variables=columns,
        edges_per_node=density,
        num_train=rows,
        num_test=0,
        scaling="standardised",
    )
    benchmark = made(SEED)
    return benchmark.train, int(np.asarray(benchmark.graph).sum())


def profile(name: str) -> list[str]:
    """Seconds by stage of one fit, and how many families it trained."""
    stages = Stages()
    for home, function, label in STAGES:
        stages.watch(home, function, label)
    stages.watch(crossfit, "networks", stages.training)
    caches: list[network_cache.NetworkCache] = []
    create = network_cache.NetworkCache.__init__

    def remember(self: Any, *given: Any, **named: Any) -> None:
        create(self, *given, **named)
        caches.append(self)

    network_cache.NetworkCache.__init__ = remember
    kept = network_cache.NetworkCache._keep_better
    network_cache.NetworkCache._keep_better = stages.keeping(kept)
    jax.monitoring.register_event_duration_secs_listener(stages.compiled)
    data, num_edges = table(name)
    method = Collapsed.PRESETS["neural"]
    found = stages.time("the rest", lambda: bayesdag.fit(data, method, seed=0, progress=False))
    trained = [family for cache in caches for family in cache.trained.values()]
    with_networks = sum(family.has_networks for family in trained)
    asked = ", ".join(f"{count} {words}" for words, count in stages.families.items())
    edges = num_edges or round(float(found.edge_matrix().sum()), 1)
    return [
        f"{name}: {sum(stages.cpu.values()):.0f} CPU s, {sum(stages.wall.values()):.0f} s",
        *stages.lines(),
        f"families: {asked}; {len(trained)} different ones, {with_networks} of them with networks; "
        f"{len(trained) / max(edges, 1):.0f} for each of {edges} edges",
        f"trained again: {sum(stages.again.values())}, better: {stages.again['better']}",
    ]


def main() -> None:
    """Print the profile of each table that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", help="a CSV file, or ROWSxCOLUMNS[xEDGES_PER_NODE]")
    print("\n".join(profile(parser.parse_args().table)))


if __name__ == "__main__":
    main()
