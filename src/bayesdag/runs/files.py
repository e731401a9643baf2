"""Files that appear as a whole or not at all, and that one run at a time writes.

What can go wrong with a disk (full, read-only, a limit on file sizes) ends in a `WriteError`
of one sentence. A temporary file is named after its process: what a killed one left behind is
removed by the next that writes the same file.
"""

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from bayesdag.errors import BayesdagWarning, WriteError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota of disk space is used up",
    errno.EFBIG: "a file may not grow that large here (see `ulimit -f`)",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "you may not write there",
    errno.EPERM: "you may not write there",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "its name is too long",
}
# Room beyond this is asked of the file system, not tried out: some write every block of it.
_MAX_TRIED = 2**28
_LOCK_WORDS = "held by bayesdag, "


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a temporary file beside `path`, then rename it to `path`."""
    _refuse_folders(path)
    remove_leftovers(path)
    with _refusals(path), _temporary(path) as temporary:
        write(temporary)
        _flush(temporary)
        os.replace(temporary, path)


def check_room(path: Path, num_bytes: int) -> None:
    """Refuse, before hours of work, a path that cannot be written or has too little room."""
    _refuse_folders(path)
    remove_leftovers(path)
    with _refusals(path, f"; about {in_words(num_bytes)} are needed"), _temporary(path) as probe:
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _allocate(handle, min(num_bytes, _MAX_TRIED))
        finally:
            os.close(handle)
        if shutil.disk_usage(path.parent).free < num_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path`, or of its checkpoint, whose process is dead."""
    pattern = re.compile(
        rf"\.{re.escape(path.name)}(\.partial)?\.{_host()}-(\d+)-[0-9a-f]{{8}}\.tmp"
    )
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):
            found = pattern.fullmatch(name)
            if found and not _is_alive(int(found[2])):
                (path.parent / name).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other run from writing `path` meanwhile.

    The lock is the operating system's and dies with the process, however it ends; the file
    `<path>.lock` only says who holds it.
    """
    lock = path.with_name(f"{path.name}.lock")
    _refuse_folders(path)
    with _refusals(path):
        handle = _acquired(lock, path)
    try:
        yield
    finally:
        # While it is still held: nobody else can have locked what is removed here.
        with contextlib.suppress(OSError):
            lock.unlink(missing_ok=True)
        os.close(handle)


def in_words(num_bytes: int) -> str:
    """A size as people say it.

    >>> in_words(3_400_000)
    '3.4 MB'
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if num_bytes >= size:
            return f"{num_bytes / size:.1f} {unit}"
    return f"{max(1, round(num_bytes / 1000))} kB"


def _acquired(lock: Path, path: Path) -> int:
    """The handle of a lock file that is locked and still there under its name."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            said = os.pread(handle, 500, 0).decode("utf-8", "replace")
            if said and not said.startswith(_LOCK_WORDS):
                raise WriteError(f"{lock} is in the way: it is no lock of this program; rename it")
            if not _lock(handle):
                raise WriteError(
                    f"{path} is being written by another run ({said.strip() or 'just started'}); "
                    "wait for its end, or choose another file"
                )
            if _is_same_file(handle, lock):
                _sign(handle)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder removed it between the two calls


def _lock(handle: int) -> bool:
    """Whether the lock is ours; a file system without locks is warned of."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        warnings.warn(
            f"this file system knows no locks ({error.strerror}); make sure that no other run "
            "writes the same file",
            BayesdagWarning,
            stacklevel=2,
        )
    return True


def _sign(handle: int) -> None:
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    words = f"{_LOCK_WORDS}process {os.getpid()} on {platform.node()}, since {started}\n"
    os.ftruncate(handle, 0)
    os.pwrite(handle, words.encode(), 0)


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A name beside `path`; whatever is under it at the end is removed."""
    name = f".{path.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    temporary = path.with_name(name)
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _refusals(path: Path, more: str = "") -> Iterator[None]:
    """Refusals of the operating system, in words."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        raise WriteError(f"cannot write {path}: {reason}{more}") from error


def _refuse_folders(path: Path) -> None:
    if path.is_dir():
        raise WriteError(f"cannot write {path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise WriteError(f"cannot write {path}: the folder {path.parent} does not exist")


def _allocate(handle: int, num_bytes: int) -> None:
    try:
        os.posix_fallocate(handle, 0, max(num_bytes, 1))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        os.write(handle, b"\0")  # this file system reserves nothing in advance


def _flush(path: Path) -> None:
    """Bytes on the disk before the name points to them: a power cut leaves the old file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _host() -> str:
    """Process numbers mean something on one machine only; folders may be shared."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]
