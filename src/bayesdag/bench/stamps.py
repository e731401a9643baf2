"""Origin of a number: commit, versions and device, stamped on every cell."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from bayesdag._version import __version__
from bayesdag.types import PlainData

COMMIT = "BAYESDAG_COMMIT"


@cache
def provenance() -> PlainData:
    """Facts about the code and the machine of this process."""
    import jax
    import numpy
    import scipy

    kind = jax.devices()[0].device_kind
    cpu = f"{os.cpu_count()} cores, {platform.machine()}"
    return {
        **source(),
        "version": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "device": cpu if kind == "cpu" else kind,
        "threads": 1 if "intra_op_parallelism_threads=1" in os.environ.get("XLA_FLAGS", "") else 0,
    }


@cache
def source() -> PlainData:
    """The commit, and whether files of the package differ from it; None where unknown.

    A copy without history names its commit in BAYESDAG_COMMIT. A package that is installed
    below a checkout of something else is not of that commit, so git is asked for this file.
    """
    here = Path(__file__)
    if os.environ.get(COMMIT):
        return {"commit": os.environ[COMMIT], "changed": None}
    if _git("ls-files", "--error-unmatch", here.name) is None:
        return {"commit": None, "changed": None}
    package = str(here.parents[1])
    changed = bool(_git("status", "--porcelain", "--", package))
    return {"commit": _git("rev-parse", "HEAD"), "changed": changed}


def place_in_history(commit: str | None) -> int:
    """Place of a commit among those of all branches, later ones higher; -1 where it is unknown."""
    return _history().get(commit or "", -1)


@cache
def _history() -> dict[str, int]:
    """Commits by their place in time; none where the package comes without history."""
    here = Path(__file__)
    if _git("ls-files", "--error-unmatch", here.name) is None:
        return {}
    commits = (_git("rev-list", "--all", "--date-order", "--reverse") or "").split()
    return {commit: place for place, commit in enumerate(commits)}


def _git(*words: str) -> str | None:
    command = ["git", *words]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
