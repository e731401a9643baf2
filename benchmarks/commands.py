"""Seconds of the commands as a user types them, start-up and compilation included.

    python benchmarks/commands.py                          # linear data
    python benchmarks/commands.py --only 5000x10 --out benchmarks/results/commands.json
    python benchmarks/commands.py --before CHECKOUT        # beside an earlier commit

Every command is a process of its own: first with an empty folder for compiled programs (cold),
then again (warm; not where the first took minutes). With `--before`, a checkout of an earlier
commit runs the same commands in turn, and ratios of its seconds to these are shown: they compare
what a busy machine blurs. Data: signed linear functions with one edge per node, or random
networks with two, development seed; `show` of what the fit has written. Edges in the wrong place
or missing are counted against the truth. With `--out`, rows are kept with commit and device, and
a page beside them shows all that are kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesdag.bench import stamps
from bayesdag.datasets.synthetic import Synthetic

HERE = Path(__file__).parents[1]
SEED = 0
_LONG = 120.0  # seconds after which a command is not run again: compilation is the smallest part


class Size(NamedTuple):
    """A table: columns, rows, functions, edges per node, and options that its fit needs."""

    d: int
    num_rows: int
    mechanism: str = "signed_linear"
    edges_per_node: int = 1
    options: tuple[str, ...] = ()


SIZES = {
    "16 rows, 7 columns": Size(7, 16),
    "d = 20": Size(20, 1000),
    "d = 100": Size(100, 1000),
    "178x14": Size(14, 178, "mlp", 2),
    "442x11": Size(11, 442, "mlp", 2),
    "1000x10": Size(10, 1000, "mlp", 2),
    "5000x10": Size(10, 5000, "mlp", 2),
    "5000x20": Size(20, 5000, "mlp", 2),
    "5000x50": Size(50, 5000, "mlp", 2, ("--minutes", "60")),
}
LINEAR = [name for name, size in SIZES.items() if size.mechanism == "signed_linear"]


class Spent(NamedTuple):
    """Wall and CPU seconds of a command."""

    wall: float
    cpu: float


def environment_of(tree: Path, cache: Path) -> dict[str, str]:
    """What the commands of a checkout run in: with bytecode, as after an installation."""
    made = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "BAYESDAG_CACHE": str(cache),
    }
    made.pop("PYTHONDONTWRITEBYTECODE", None)
    return made


def run(environment: dict[str, str], *arguments: str) -> tuple[Spent, str]:
    """Seconds of one command of a checkout, child processes included, and what it printed."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bayesdag", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user - before.children_user
    cpu += after.children_system - before.children_system
    return Spent(wall, cpu), done.stdout


def write_table(path: Path, size: Size) -> np.ndarray:
    """A table as a file, and its true graph."""
    made = Synthetic(
        num_variables=size.d,
        edges_per_node=size.edges_per_node,
        mechanism=size.mechanism,
        num_train=size.num_rows,
        num_test=0,
    )(SEED)
    lines = [",".join(made.train.names)]
    lines += [",".join(f"{value:.9g}" for value in row) for row in made.train.values]
    path.write_text("\n".join(lines) + "\n")
    return np.asarray(made.graph) != 0


def expected_differences(shown: str, names: list[str], truth: np.ndarray) -> float:
    """Expected number of differences between drawn graphs and the truth (E-SHD, by edge)."""
    probability = np.zeros(truth.shape)
    for edge in json.loads(shown)["edges"]:
        at = names.index(edge["source"]), names.index(edge["target"])
        probability[at] = edge["probability"]
    pairs = np.triu(np.ones(truth.shape, dtype=bool), 1)
    right = np.where(truth, probability, 0) + np.where(truth.T, probability.T, 0)
    none = 1 - probability - probability.T
    right = np.where(truth | truth.T, right, none)
    return float((1 - right)[pairs].sum())


def measure(tree: Path, folder: Path, name: str) -> dict[str, tuple[Spent, float]]:
    """Seconds of fit, cold and warm, and of show; and how far the fit is from the truth."""
    size = SIZES[name]
    table, result = folder / "table.csv", folder / "result.nc"
    truth, d, own = write_table(table, size), size.d, environment_of(tree, folder / "cache")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(tree / "src")], env=own)
    names = table.read_text().partition("\n")[0].split(",")
    fit = ("fit", str(table), "--out", str(result), "--force", "--quiet", *size.options)
    cold = run(own, *fit)[0]
    warm = {f"fit, {name}, warm": run(own, *fit)[0]} if cold.wall < _LONG else {}
    shown = run(own, "show", str(result))[0]
    every = run(own, "show", str(result), "--json", "--top", str(d * d))[1]
    off = expected_differences(every, names, truth)
    return {
        f"fit, {name}, cold": (cold, off),
        **{command: (spent, off) for command, spent in warm.items()},
        f"show, {name}": (shown, off),
    }


def as_lines(command: str, spent: Spent, off: float) -> str:
    """A row of the table on the screen."""
    return f"{command:34s} {spent.wall:7.1f} {spent.cpu:7.1f} {off:7.1f}"


def keep(path: Path, found: dict[str, tuple[Spent, float]]) -> None:
    """Put rows among those that are kept, and write the page that shows them all."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    for command, (spent, off) in found.items():
        kept[command] = {**spent._asdict(), "e_shd": off, **stamps.provenance()}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    lines = [
        "# Seconds of commands",
        "",
        "Generated by `python benchmarks/commands.py`; do not edit. One data set each, development "
        "seed; cold: with an empty folder for compiled programs. E-SHD against the truth.",
        "",
        "| command | s | CPU s | E-SHD | commit | device |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for command, row in kept.items():
        commit = str(row["commit"])[:7] + " and changes" * bool(row["changed"])
        numbers = f"{row['wall']:.1f} | {row['cpu']:.1f} | {row['e_shd']:.1f}"
        lines.append(f"| {command} | {numbers} | {commit} | {row['device']} |")
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", type=Path, help="a checkout of an earlier commit")
    parser.add_argument("--only", choices=SIZES, action="append", help="only this size; repeatable")
    parser.add_argument("--out", type=Path, help="a JSON file of rows that are kept")
    given = parser.parse_args()
    print(f"{'command':34s} {'wall s':>7s} {'CPU s':>7s} {'E-SHD':>7s}", end="")
    print(f" {'before: wall':>13s} {'CPU':>6s} {'E-SHD':>7s} {'ratio wall':>11s} {'CPU':>5s}")
    for name in given.only or LINEAR:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            found = measure(HERE, Path(one), name)
            before = measure(given.before.resolve(), Path(other), name) if given.before else {}
        for command, (spent, off) in found.items():
            line = as_lines(command, spent, off)
            if command in before:
                old, old_off = before[command]
                line += f" {old.wall:13.1f} {old.cpu:6.1f} {old_off:7.1f}"
                line += f" {old.wall / spent.wall:11.1f} {old.cpu / spent.cpu:5.1f}"
            print(line, flush=True)
        if given.out:
            keep(given.out, found)


if __name__ == "__main__":
    main()
