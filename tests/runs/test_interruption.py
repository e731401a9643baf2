"""Kill -9 at random moments of whole fits: the same command ends in the same bytes.

By hand, because every kill costs a start. `test_extension` goes on from what a kill would leave,
and `test_loop` kills a small process.
"""

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

LIMIT = 900  # seconds; a busy machine is slow to start Python


def start(folder: Path, kind: str) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen([sys.executable, "-m", "tests.interrupted", str(folder), kind])


def kept(folder: Path) -> int:
    """Bytes of the checkpoint so far."""
    path = folder / "partial"
    return path.stat().st_size if path.exists() else 0


def finished(folder: Path) -> str:
    return hashlib.sha256((folder / "result.nc").read_bytes()).hexdigest()


def killed(rng: np.random.Generator, folder: Path, kind: str, whole: int) -> bool:
    """Start a fit and kill it at a random moment; whether it was still alive then."""
    process = start(folder, kind)
    # A random share of what is left to be kept: a moment of the fit, however fast the machine.
    moment = kept(folder) + rng.uniform(0, max(whole - kept(folder), 0))
    while kept(folder) < moment and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.3))
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(LIMIT) in (0, -signal.SIGKILL)
    return alive


def kill_and_resume(tmp_path: Path, kind: str, num_kills: int, seed: int, most: int = 4) -> None:
    """Kill fits at random moments until that many were killed; each ends in the same bytes.

    One fit is killed `most` times at most, then left in peace.
    """
    rng = np.random.default_rng(seed)
    assert start(tmp_path / "whole", kind).wait(LIMIT) == 0
    expected, whole = finished(tmp_path / "whole"), kept(tmp_path / "whole")
    kills = attempts = 0
    while kills < num_kills:
        folder, own = tmp_path / f"killed{attempts}", 0
        attempts += 1
        assert attempts < 5 * num_kills, "no fit lives long enough to be killed"
        while own < min(most, num_kills - kills) and not (folder / "result.nc").exists():
            own += killed(rng, folder, kind, whole)
        kills += own
        if not (folder / "result.nc").exists():
            assert start(folder, kind).wait(LIMIT) == 0
        assert finished(folder) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "num"), [("one noise model", 1), ("neural", 20), ("auto", 3)])
def test_a_neural_fit_that_is_killed_ends_in_the_same_bytes(tmp_path, seed, kind, num):
    kill_and_resume(tmp_path, kind, num, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        *("linear", "averaged", "imputed", "cam", "bootstrap_ges"),
        *("dibs", "marginal dibs", "bcd", "dds"),
    ],
)
def test_other_engines_that_are_killed_end_in_the_same_bytes(tmp_path, seed, kind):
    kill_and_resume(tmp_path, kind, 4, seed)
