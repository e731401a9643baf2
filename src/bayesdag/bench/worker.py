"""A process of its own for the cells: it can be stopped, and may break without loss."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from bayesdag.bench.cells import Status
from bayesdag.bench.suite import Measures, Runner, Trial
from bayesdag.runs import compilation_cache, processes

_SINGLE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MEMORY = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_STARTING = 300.0  # seconds to import everything
_LOOK = 0.2  # seconds between two looks at the memory
_CHILD = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from bayesdag.bench.worker import serve; serve(int(sys.argv[1]))"
)


@dataclass(frozen=True)
class Place:
    """What a process may use of this machine.

    Attributes:
        cpu_only: no accelerator.
        one_thread: compute in one CPU thread.
        one_blas_thread: leave BLAS and LAPACK one thread, as fits do where threadpoolctl is
            installed: idle ones spin, and take the cores from the processes beside.
        accelerator_share: of an accelerator's memory that the process reserves; None: all.
        processes: that a fit on the CPU may share its work among; None: one per core.
        cold: programs that other processes have compiled are not used either.
    """

    cpu_only: bool = False
    one_thread: bool = False
    one_blas_thread: bool = False
    accelerator_share: float | None = None
    processes: int | None = None
    cold: bool = False

    def environment(self) -> dict[str, str]:
        """Variables that JAX, XLA and BLAS read when a process starts."""
        found: dict[str, str] = {}
        if self.cpu_only:
            found["JAX_PLATFORMS"] = "cpu"
        if self.one_thread:
            found["XLA_FLAGS"] = f"{_SINGLE} {os.environ.get('XLA_FLAGS', '')}".strip()
        if self.one_thread or self.one_blas_thread:
            found |= dict.fromkeys(_BLAS, "1")
        if self.accelerator_share is not None and _MEMORY not in os.environ:
            found[_MEMORY] = f"{self.accelerator_share:.3f}"
        if self.processes is not None or self.one_thread:
            found[processes.VARIABLE] = str(self.processes or 1)
        if self.cold:
            found[compilation_cache.VARIABLE] = compilation_cache.OFF[0]
        return found


class Outcome(NamedTuple):
    """Outcome of some trials: measures of each, or the reason why there are none."""

    status: Status
    measures: list[Measures]
    error: str
    seconds: float
    stamp: Measures


class Worker:
    """Measures trials in a child process, which is started again after it was lost."""

    def __init__(self, place: Place = Place()) -> None:  # noqa: B008 - frozen
        self.place = place
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Any = None
        self._stamp: Measures = {}

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def measure(
        self, runner: Runner, trials: list[Trial], limit: float, gigabytes: float | None = None
    ) -> Outcome:
        """The measures, or what went wrong, within `limit` seconds and so much memory."""
        try:
            process = self._start()
        except (EOFError, OSError) as error:
            return self._lost("failed", f"the worker did not start ({error})", 0.0)
        started = time.monotonic()
        try:
            self._pipe.send((runner, trials))
            ended = self._wait(process, started + limit, gigabytes)
            measures, error = self._pipe.recv() if not ended else ([], "")
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = process.wait()
            seconds = time.monotonic() - started
            return self._lost("failed", f"the process ended with code {code}", seconds)
        seconds = time.monotonic() - started
        if ended == "out of time":
            return self._lost(ended, f"stopped after {limit:g} s", seconds)
        if ended == "out of memory":
            return self._lost(ended, f"stopped at more than {gigabytes:g} GB", seconds)
        return Outcome("failed" if error else "done", measures, error, seconds, self._stamp)

    def stop(self) -> None:
        """End the process and those it has started; the next trial starts another."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._pipe.close()
            self._process = None

    def _wait(
        self, process: subprocess.Popen[bytes], end: float, gigabytes: float | None
    ) -> Status | None:
        """None once there is an answer, or the process is gone; else the limit it met."""
        while not self._pipe.poll(max(min(_LOOK, end - time.monotonic()), 0.0)):
            if time.monotonic() >= end:
                return "out of time"
            if gigabytes is not None and _resident_bytes(process.pid) > gigabytes * 1e9:
                return "out of memory"
        return None

    def _lost(self, status: Status, error: str, seconds: float) -> Outcome:
        self.stop()
        return Outcome(status, [], error, seconds, self._stamp)

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        self._pipe, theirs = Pipe()
        # Not by `multiprocessing`, which grants daemons, as workers of a cluster are, no children.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(theirs.fileno()), *sys.path],
            pass_fds=(theirs.fileno(),),
            env=os.environ | self.place.environment(),
            start_new_session=True,
        )
        theirs.close()  # so that the end of the process is the end of the pipe
        if not self._pipe.poll(_STARTING):
            raise OSError(f"no answer within {_STARTING:g} s")
        self._stamp = self._pipe.recv()
        return self._process


def serve(handle: int) -> None:
    """Measure what comes through the pipe until it is closed; the child's side."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    from bayesdag.bench.stamps import provenance
    from bayesdag.errors import BayesdagWarning

    warnings.simplefilter("ignore", BayesdagWarning)  # said of every benchmark
    pipe = Connection(handle)
    pipe.send(provenance())
    while True:
        try:
            runner, trials = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((runner.measure(trials), ""))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the cell's result
            words = "".join(traceback.format_exception_only(error)).strip()
            pipe.send(([], words))


def _end_with(parent: int) -> None:
    """A parent that was killed cannot stop its children: they end themselves."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


def _resident_bytes(group: int) -> float:
    """Memory of a process and of those it has started; 0 where the system does not say."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name in brackets: state, parent, group, ... and resident pages.
            facts = (folder / "stat").read_text().rpartition(")")[2].split()
            total += int(facts[21]) if int(facts[2]) == group else 0
    return float(total * page)
