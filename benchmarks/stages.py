"""Where the time of a fit with learned functions goes, stage by stage.

    python benchmarks/stages.py 178x14 --out benchmarks/results/stages.json
    python benchmarks/stages.py 442x11 --out benchmarks/results/stages.json
    python benchmarks/stages.py 5000x10 --out benchmarks/results/stages.json
    python benchmarks/stages.py 5000x20 --out benchmarks/results/stages.json
    python benchmarks/stages.py 2000x50 --out benchmarks/results/stages.json

With `--out` the profile is kept with commit and device, and a page beside it shows all that are
kept, by columns and rows. A table is a CSV file, or ROWSxCOLUMNS of the synthetic generator
(mechanism mlp, two edges per node, or 5000x50x4: four; development seed 5). Seconds of a stage do
not include those of stages inside it. Only this process is seen: unless BAYESDAG_WORKERS says
otherwise, it trains all families itself (else the page says how many did). Programs that are
kept (BAYESDAG_CACHE) are not compiled again: point it to an empty folder to include compilation.
"""

import argparse
import json
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import jax
import numpy as np

import bayesdag
from bayesdag.bench import stamps
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.collapsed import Collapsed
from bayesdag.orders import pipeline, strategies
from bayesdag.posterior import Posterior
from bayesdag.runs import loop, processes
from bayesdag.scores._neural import crossfit, network_cache
from bayesdag.scores.neural import NeuralScore

SEED = 5
STAGES: tuple[tuple[Any, str, str], ...] = (
    (NeuralScore, "prepare", "normal scores and folds"),
    (strategies.ExpensiveSearch, "_starts", "search with the surrogate"),
    (strategies, "batched_search", "search on the host"),
    (network_cache.NetworkCache, "train", "cache on the host"),
    (crossfit, "without_networks", "lines, sums of curves and their noise"),
    (pipeline, "_tables", "tables on the host"),
    (pipeline, "outside", "what tables leave out"),
    (loop, "run", "chains"),
    (NeuralScore, "draw", "draws of functions"),
    (Posterior, "check", "check of the model"),
    (Posterior, "with_evidence", "ranks of edges in every draw"),
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
        """Seconds of compilation, told by JAX; they are part of the stage that waits.

        None waits for what other threads compile ahead.
        """
        here = threading.current_thread() is threading.main_thread()
        if here and self._open and "compile" in event:
            self.compiling[self._open[-1][0]] += duration_secs

    def training(self, folds: Any, batches: Any, *_: Any) -> str:
        """The stage that trains batches; families are counted by their size."""
        for group, _starts in batches:
            size = group.members.shape[1]
            self.families[f"asked for, up to {size} parents"] += len(group.node)
        return "networks"

    def keeping(self, keep: Callable[..., None]) -> Callable[..., None]:
        """The cache's choice between old and new networks, counted where there are old ones."""

        def counted(cache: Any, family: Any, networks: Any) -> None:
            before = cache.trained[family]
            keep(cache, family, networks)
            if before.has_networks:
                self.again["better" if cache.trained[family] is not before else "kept"] += 1

        return counted

    def rows(self) -> list[dict[str, Any]]:
        """Seconds by stage, those that cost most first."""
        return [
            {
                "stage": label,
                "s": self.wall[label],
                "cpu_s": self.cpu[label],
                "compiling_s": self.compiling[label],
            }
            for label in sorted(self.cpu, key=lambda name: -self.cpu[name])
        ]


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


def profile(name: str) -> dict[str, Any]:
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
    return {
        "stages": stages.rows(),
        "workers": processes.number(),
        "edges": num_edges or round(float(found.edge_matrix().sum()), 1),
        "batches": dict(stages.families),
        "families": len(trained),
        "with_networks": int(sum(family.has_networks for family in trained)),
        "in_one_fold": int(sum(family.num_folds == 1 for family in trained)),
        "trained_again": sum(stages.again.values()),
        "better": stages.again["better"],
    }


def lines_of(name: str, found: dict[str, Any]) -> list[str]:
    """A profile as a section of a page."""
    wall, cpu = (sum(row[unit] for row in found["stages"]) for unit in ("s", "cpu_s"))
    asked = ", ".join(f"{count} {words}" for words, count in found["batches"].items())
    each = found["families"] / max(found["edges"], 1)
    return [
        f"## {name}: {cpu:.0f} CPU s, {wall:.0f} s",
        "",
        "| stage | s | CPU s | of it compiling, s |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row['stage']} | {row['s']:.1f} | {row['cpu_s']:.1f} | {row['compiling_s']:.1f} |"
            for row in found["stages"]
        ),
        "",
        f"Families: {found['families']} different ones, {each:.0f} for each of {found['edges']} "
        f"edges; {found['with_networks']} with networks, {found['in_one_fold']} of them in one "
        f"fold alone. Networks were {asked}. Trained again: {found['trained_again']}, better: "
        f"{found['better']}.",
        "",
    ]


def keep(path: Path, name: str, found: dict[str, Any]) -> None:
    """Put a profile among those that are kept, and write the page that shows them all."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept[name] = found | stamps.provenance()
    path.write_text(json.dumps(kept, indent=1) + "\n")
    write_page(path, kept)


def place_of(name: str) -> tuple[int, int, str]:
    """Where a table stands on the page: by columns and rows, files last."""
    size = re.match(r"(\d+)x(\d+)", name)
    rows, columns = map(int, size.groups()) if size else (0, 10**9)
    return columns, rows, name


def write_page(path: Path, kept: dict[str, Any]) -> None:
    """The page that shows the profiles of a file."""
    lines = [
        "# Where the time of a fit with learned functions goes",
        "",
        "Generated by `python benchmarks/stages.py`; do not edit. One process on one core unless "
        "it says otherwise, tables of rows × columns by random networks with two edges per "
        "node (× edges per node where there are more), development seed. Seconds of a stage do "
        "not include those of stages inside it; other work may have run on the second core, so "
        "that CPU seconds say more.",
        "",
    ]
    for table_name, one in sorted(kept.items(), key=lambda item: place_of(item[0])):
        lines += lines_of(table_name, one)
        changed = " and changes" * bool(one["changed"])
        num = one.get("workers", 1)
        beside = f", {num} processes, of which one is seen here" * (num > 1)
        lines += [f"Commit {str(one['commit'])[:7]}{changed}, {one['device']}{beside}.", ""]
    path.with_suffix(".md").write_text("\n".join(lines[:-1]) + "\n")


def main() -> None:
    """Print the profile of a table; one process each, because the fit is watched from inside."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", help="a CSV file, or ROWSxCOLUMNS[xEDGES_PER_NODE]")
    parser.add_argument("--out", type=Path, help="a JSON file of profiles that are kept")
    given = parser.parse_args()
    os.environ.setdefault(processes.VARIABLE, "1")
    found = profile(given.table)
    if given.out:
        keep(given.out, given.table, found)
    print("\n".join(lines_of(given.table, found)))


if __name__ == "__main__":
    main()
