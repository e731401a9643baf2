"""Files that appear as a whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayesdag.errors import FileFormatError


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Call `write` on a temporary file beside `path`, then rename it to `path`."""
    if not path.parent.is_dir():
        raise FileFormatError(f"cannot write {path}: the folder {path.parent} does not exist")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    try:
        write(Path(name))
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
