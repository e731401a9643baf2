"""Kill -9 at random moments of whole fits: the same command ends in the same bytes."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

LIMIT = 900  # seconds; a busy machine is slow to start Python


def start(folder: Path, kind: str, cache: Path) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    (folder / "began").unlink(missing_ok=True)
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-m", "tests.interrupted", str(folder), kind]
    return subprocess.Popen(command, env=os.environ | settings)


def wait_until(condition, process: subprocess.Popen) -> None:
    while not condition() and process.poll() is None:
        time.sleep(0.02)


def finished(folder: Path) -> str:
    return hashlib.sha256((folder / "result.nc").read_bytes()).hexdigest()


def undisturbed(folder: Path, kind: str, cache: Path) -> tuple[str, float]:
    """Bytes of a fit that nobody kills, and how long it takes once it has begun."""
    for number in ("cold", "warm"):  # the second finds compiled code, as the killed ones will
        process = start(folder / number, kind, cache)
        wait_until(lambda number=number: (folder / number / "began").exists(), process)
        began = time.monotonic()
        assert process.wait(LIMIT) == 0
    assert finished(folder / "cold") == finished(folder / "warm")
    return finished(folder / "warm"), time.monotonic() - began


def kill_and_resume(tmp_path: Path, kind: str, num_kills: int, seed: int) -> None:
    """Kill fits at random moments until that many were killed; each ends in the same bytes."""
    rng, cache = np.random.default_rng(seed), tmp_path / "cache"
    (tmp_path / "whole").mkdir()
    expected, seconds = undisturbed(tmp_path / "whole", kind, cache)
    kills = attempts = 0
    while kills < num_kills:
        folder = tmp_path / f"killed{attempts}"
        attempts += 1
        assert attempts < 5 * num_kills, "no fit lives long enough to be killed"
        while not (folder / "result.nc").exists():
            process = start(folder, kind, cache)
            wait_until((folder / "began").exists, process)
            if kills < num_kills:
                time.sleep(rng.uniform(0, 0.9 * seconds))
            else:
                process.wait(LIMIT)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            assert process.wait(LIMIT) in (0, -signal.SIGKILL)
        assert finished(folder) == expected


def test_a_neural_fit_that_is_killed_twice_ends_in_the_same_bytes(tmp_path, seed):
    kill_and_resume(tmp_path, "neural", 2, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["neural", "auto"])
def test_a_neural_fit_that_is_killed_twenty_times_ends_in_the_same_bytes(tmp_path, seed, kind):
    kill_and_resume(tmp_path, kind, 20 if kind == "neural" else 3, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "averaged"])
def test_other_engines_that_are_killed_end_in_the_same_bytes(tmp_path, seed, kind):
    kill_and_resume(tmp_path, kind, 4, seed)
