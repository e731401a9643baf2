"""A runner that is killed again and again ends in the cells and the table of one that never was."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

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
BENCH = [sys.executable, "-m", "bayesdag", "bench"]
COMMANDS = {
    "toy": [sys.executable, "-c", TOY],
    "trivial": [*BENCH, "trivial", "--jobs", "2", "--out"],
    "effects": [*BENCH, "effects", "--out"],
}
# Of two runs of one command these differ, and nothing else may.
TIMED = re.compile(r'"(seconds|cpu|memory_gb)": [0-9.e+-]+')


class Finished(NamedTuple):
    """What a run has left.

    Attributes:
        tables: the page, without the part that says for how long the cells ran.
        cells: their files, without times and memory.
    """

    tables: str
    cells: dict[str, str]


def result(out: Path, name: str) -> Finished:
    tables = (out / f"{name}.md").read_text().partition("## Where the cells ran")[0]
    if name == "effects":  # its tables have a column of seconds, the last but the commit
        tables = re.sub(r"\| [0-9.]+ (\| [0-9a-f]{7}\*? \|)$", r"\1", tables, flags=re.MULTILINE)
    files = [path for path in sorted((out / name).rglob("*.json")) if path.name[0] != "."]
    cells = {str(path.relative_to(out)): TIMED.sub(r'"\1"', path.read_text()) for path in files}
    assert len(cells) == len(Store(out / name).read())  # each is whole
    return Finished(tables, cells)


def started(command: list[str], out: Path) -> subprocess.Popen:
    out.mkdir(exist_ok=True)
    return subprocess.Popen(
        [*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def killed(command: list[str], out: Path, seconds: float) -> bool:
    """Kill the runner -9 after so many seconds; whether it was still running then."""
    process = started(command, out)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("name", "num_kills"),
    [
        pytest.param("toy", 1, id="once"),
        pytest.param("trivial", 10, id="ten times", marks=pytest.mark.slow),
        pytest.param("effects", 10, id="ten times, fits", marks=pytest.mark.slow),
    ],
)
def test_cells_and_tables_are_identical_however_often_the_runner_is_killed(
    tmp_path, name, num_kills
):
    command, rng, kills, attempts = COMMANDS[name], random.Random(num_kills), 0, 0
    begun = time.monotonic()
    assert started(command, tmp_path / "whole").wait() == 0
    seconds, expected = time.monotonic() - begun, result(tmp_path / "whole", name)
    assert len(expected.cells) > 5
    while kills < num_kills:
        out, own, whole = tmp_path / f"killed{attempts}", 0, False
        attempts += 1
        assert attempts < 5 * num_kills, "no run lasts long enough to be killed"
        while kills + own < num_kills and not whole:
            whole = not killed(command, out, rng.uniform(0, seconds))
            own += not whole
        if not whole:
            assert started(command, out).wait() == 0
        kills += own
        assert result(out, name) == expected
