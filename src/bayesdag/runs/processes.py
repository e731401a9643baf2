"""Processes of this machine that share the work of one fit: one per core.

Programs of many small matrices keep one core busy. Threads would not help: two such programs in
one process wait for one another's threads, and can do so for ever (seen with jaxlib 0.10). So
batches go to processes, which are started once and stay for the next batch and the next fit.

BAYESDAG_WORKERS says how many there are; 1, and where loky is not installed, computes everything in
the process of the fit. Which process computes what changes no result.
"""

import atexit
import ctypes
import multiprocessing
import os
import pickle
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bayesdag.errors import BayesdagError, InputError

Result = TypeVar("Result")

VARIABLE = "BAYESDAG_WORKERS"
_OPENBLAS = re.compile(r"openblas[^/]*\.so[^/]*$")
_MOST = 8  # a process with compiled programs takes a gigabyte
_IDLE_SECONDS = 60
_MOST_KEPT = 2  # values that were sent once
# One thread each: the processes are the parallelism, and idle threads of BLAS spin.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    VARIABLE: "1",
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e12",  # compiled programs are no leak
}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have BLAS and LAPACK compute in the thread that calls them.

    Fits solve millions of systems of ten to a hundred unknowns. Threads gain nothing there, and
    spin while they wait: twice to nine times the time where something else runs beside.
    """
    import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which the limit must find

    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # an image for accelerators need not have the package
        with _one_openblas_thread():
            yield
        return
    with threadpool_limits(1, user_api="blas"):
        yield


@contextmanager
def _one_openblas_thread() -> Iterator[None]:
    """The same for the OpenBLAS that NumPy and SciPy bring, where Linux says what is loaded."""
    before = [(change, threads()) for threads, change in _openblas()]
    for change, _ in before:
        change(1)
    try:
        yield
    finally:
        for change, threads in before:
            change(threads)


def _openblas() -> Iterator[tuple[Callable[[], int], Callable[[int], None]]]:
    """What tells and what changes the number of threads, for every OpenBLAS of this process."""
    try:
        loaded = Path("/proc/self/maps").read_text().split()
    except OSError:
        return
    for path in sorted({word for word in loaded if _OPENBLAS.search(word)}):
        library = ctypes.CDLL(path)
        for prefix, suffix in product(("scipy_openblas", "openblas"), ("64_", "")):
            names = (f"{prefix}_{verb}_num_threads{suffix}" for verb in ("get", "set"))
            found = [getattr(library, name, None) for name in names]
            if all(found):
                yield found[0], found[1]  # pyright: ignore[reportReturnType]
                break


def number() -> int:
    """Processes that batches are shared among; 1: this one."""
    if multiprocessing.parent_process() is not None:
        return 1  # a worker has no workers
    said = os.environ.get(VARIABLE, "").strip()
    if said:
        if not said.isdigit() or int(said) < 1:
            raise InputError(f"{VARIABLE} is {said!r}; it must be a number, 1 or more")
        return int(said) if _installed() else 1
    return min(_cores(), _MOST) if _installed() else 1


class Kept(NamedTuple):
    """Where processes find a value that was sent once for many tasks."""

    path: str


class _Sending:
    """Values in files of their own, for as long as tasks need them or may need them again."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, Kept]] = {}  # a value that is held keeps its id
        self._in_use: Counter[int] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self, value: object) -> Iterator[object]:
        if number() == 1:
            yield value
            return
        key = id(value)
        with self._lock:
            self._in_use[key] += 1
        try:
            yield self._written(key, value)
        finally:
            with self._lock:
                self._in_use[key] -= 1
                self._forget(_MOST_KEPT)

    def _written(self, key: int, value: object) -> object:
        with self._lock:
            if key in self._kept:
                return self._kept[key][1]
            try:
                handle, path = tempfile.mkstemp(prefix="bayesdag-", suffix=".rows")
                with os.fdopen(handle, "wb") as file:
                    pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
            except OSError:  # a full disk: every task carries the value itself
                return value
            self._kept[key] = value, Kept(path)
            return self._kept[key][1]

    def forget_all(self) -> None:
        """Remove the files; nothing is in use when Python ends."""
        self._in_use.clear()
        self._forget(0)

    def _forget(self, most: int) -> None:
        """Remove the oldest files that no task needs, beyond the most that are kept."""
        for key in [key for key in self._kept if not self._in_use[key]]:
            if len(self._kept) <= most:
                break
            _, kept = self._kept.pop(key)
            with suppress(OSError):
                os.unlink(kept.path)


sent_once = _Sending()
"""A context in which tasks carry a small name instead of a large value: see `received`."""
atexit.register(sent_once.forget_all)


def received(value: Any) -> Any:
    """The value that a task was given, or that its name stands for."""
    return _read(value.path) if isinstance(value, Kept) else value


@lru_cache(maxsize=_MOST_KEPT)
def _read(path: str) -> object:
    with open(path, "rb") as file:
        return pickle.load(file)  # written by the process that has started this one


def compute(function: Callable[..., Result], tasks: Sequence[tuple[object, ...]]) -> list[Result]:
    """What `function` returns for the arguments of each task, in their order."""
    num = number()
    if num == 1:
        return [function(*arguments) for arguments in tasks]
    from loky.process_executor import TerminatedWorkerError

    try:
        started = [_executor(num).submit(function, *arguments) for arguments in tasks]
        return [future.result() for future in started]
    except TerminatedWorkerError as error:
        raise BayesdagError(
            "a process that computed a part of this fit was ended, most often because memory ran "
            f"out; fewer processes take less (set {VARIABLE}=1). Started again, a fit with a "
            "checkpoint goes on from there"
        ) from error


def _executor(num: int) -> Executor:
    from loky import get_reusable_executor

    return get_reusable_executor(max_workers=num, timeout=_IDLE_SECONDS, env=_ENVIRONMENT)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _installed() -> bool:
    """Whether processes can be started: an image for accelerators need not have the package."""
    try:
        import loky  # noqa: F401
    except ImportError:
        return False
    return True
