"""A runner that is killed again and again ends in the table of one that never was."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayesdag.bench import Store

# Cells without a process of their own: what is tested is what the runner leaves behind.
TOY = """
import sys, time
from pathlib import Path
from bayesdag.bench import Store, running, run_suite, write_page
from bayesdag.bench.suite import Table
from dataclasses import replace
from tests.bench.test_running import Instant, suite

class Brief(Instant):
    def measure(self, runner, trials, limit, gigabytes=None):
        time.sleep(0.02)
        done = super().measure(runner, [t._replace(seed=0) for t in trials], limit)
        return done._replace(measures=[{"shd": float(t.seed % 7)} for t in trials])

running.Worker = Brief
out = Path(sys.argv[1])
wanted = replace(suite("a", "b", seeds=range(20)), tables=(Table("", ("does",), {"S": "shd"}),))
run_suite(wanted, Store(out / "toy"))
write_page(out / "toy.md", "toy", wanted, Store(out / "toy"))
"""
REAL = ("trivial", "--methods", "empty", "--seeds", "1000", "--jobs", "2", "--out")
CASES = {
    "toy": ([sys.executable, "-c", TOY], "toy", 40),
    "trivial": ([sys.executable, "-m", "bayesdag", "bench", *REAL], "trivial", 8),
}


def whole_run(command: list[str], out: Path, name: str) -> str:
    out.mkdir(exist_ok=True)
    done = subprocess.run([*command, str(out)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return (out / f"{name}.md").read_text().partition("## Where the cells ran")[0]


def killed_run(command: list[str], out: Path, seconds: float) -> None:
    """A run that is killed -9 at some moment after it has stored a cell, or before."""
    out.mkdir(exist_ok=True)
    before = len(list(out.rglob("*.json")))
    process = subprocess.Popen(
        [*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and len(list(out.rglob("*.json"))) == before:
        time.sleep(0.01)
    time.sleep(seconds)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize(
    ("case", "num_kills"),
    [
        pytest.param("toy", 1, id="once"),
        pytest.param("trivial", 10, id="ten times", marks=pytest.mark.slow),
    ],
)
def test_the_final_table_is_identical_however_often_the_runner_is_killed(tmp_path, case, num_kills):
    command, name, num_cells = CASES[case]
    expected = whole_run(command, tmp_path / "whole", name)
    rng, killed = random.Random(num_kills), tmp_path / "killed"
    for _ in range(num_kills):
        killed_run(command, killed, rng.uniform(0.0, 0.4))
        found = [path for path in killed.rglob("*.json") if path.name[0] != "."]
        for path in found:
            json.loads(path.read_text())  # a cell is whole or not there
        assert len(found) < num_cells or case == "trivial"
    assert whole_run(command, killed, name) == expected
    assert len(Store(killed / name).read()) == num_cells
