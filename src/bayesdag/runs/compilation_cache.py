"""Compiled programs are kept in the user's cache folder: the next fit need not wait for them.

A program depends on the shape of the table and on the settings, not on the numbers in it. The
folder is `bayesdag` in the user's cache folder, or what BAYESDAG_CACHE names; `BAYESDAG_CACHE=off`
keeps nothing, and whoever has told JAX where to keep programs is not contradicted.
"""

import os
import platform
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

from bayesdag.types.late_imports import jax, once_imported

VARIABLE = "BAYESDAG_CACHE"
OFF = ("off", "0", "no", "none")
MOST_BYTES = 1 << 30  # of all programs; the oldest make room
_LEAST_SECONDS = 0.2  # of compilation; what takes less is not worth a file


def enable() -> None:
    """Keep programs from now on, if nothing speaks against it; where it fails, in silence."""
    once_imported("jax", _enable)


def _enable() -> None:
    if jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return
    place = folder()
    if place is None or not _writable(place):
        return
    _make_room(place)
    # A folder that fills up or disappears costs time, not answers.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def folder() -> Path | None:
    """Where programs are kept; None: nowhere."""
    said = os.environ.get(VARIABLE, "").strip()
    if said.lower() in OFF:
        return None
    try:
        place = Path(said).expanduser() if said else _user_cache() / "bayesdag"
    except RuntimeError:  # nobody's home
        return None
    return place / "programs" / _machine()


def _user_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".cache"


def _machine() -> str:
    """A name for the kind of processor: homes are shared by machines that are not alike."""
    kind = f"{platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    kind += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{zlib.crc32(kind.encode()):08x}"


def _writable(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False


def _make_room(place: Path) -> None:
    """Remove the oldest programs where all of them together are large."""
    try:
        files = sorted((f.stat().st_mtime, f.stat().st_size, f) for f in place.iterdir())
    except OSError:
        return
    excess = sum(size for _, size, _ in files) - MOST_BYTES
    for _, size, file in files:
        if excess <= 0:
            break
        file.unlink(missing_ok=True)
        excess -= size
