"""A process of its own for the cells: it can be stopped, and may break without loss."""

import multiprocessing
import os
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from bayesdag.bench.cells import Status
from bayesdag.bench.suite import Measures, Runner, Trial

_SINGLE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
_STARTING = 300.0  # seconds to import everything
_MEMORY = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_STARTS = threading.Lock()


class Outcome(NamedTuple):
    """Outcome of some trials: measures of each, or the reason why there are none."""

    status: Status
    measures: list[Measures]
    error: str
    seconds: float
    stamp: Measures


class Worker:
    """Measures trials in a child process, which is started again after it was lost."""

    def __init__(self, one_thread: bool = False, memory: float | None = None) -> None:
        self.one_thread = one_thread
        self.memory = memory
        self._process: Any = None
        self._pipe: Any = None
        self._stamp: Measures = {}

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def measure(self, runner: Runner, trials: list[Trial], limit: float) -> Outcome:
        """The measures, or what went wrong, within `limit` seconds."""
        try:
            self._start()
        except (EOFError, OSError) as error:
            return self._lost(f"the worker did not start ({error})", 0.0)
        started = time.monotonic()
        self._pipe.send((runner, trials))
        if not self._pipe.poll(limit):
            self.stop()
            seconds = time.monotonic() - started
            return Outcome("out of time", [], f"stopped after {limit:g} s", seconds, self._stamp)
        try:
            measures, error = self._pipe.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            return self._lost(f"the process ended with code {code}", time.monotonic() - started)
        seconds = time.monotonic() - started
        return Outcome("failed" if error else "done", measures, error, seconds, self._stamp)

    def stop(self) -> None:
        """End the process; the next trial starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _lost(self, error: str, seconds: float) -> Outcome:
        self.stop()
        return Outcome("failed", [], error, seconds, self._stamp)

    def _start(self) -> None:
        if self._process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _flags(self.one_thread, self.memory):
            self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe
        if not self._pipe.poll(_STARTING):
            raise OSError(f"no answer within {_STARTING:g} s")
        self._stamp = self._pipe.recv()


@contextmanager
def _flags(one_thread: bool, memory: float | None) -> Iterator[None]:
    """XLA reads its flags when a process starts; processes start one at a time."""
    with _STARTS:  # what another thread sets for its own process is not to be seen here
        wanted: dict[str, str] = {}
        if one_thread:
            wanted["XLA_FLAGS"] = f"{_SINGLE} {os.environ.get('XLA_FLAGS', '')}".strip()
        if memory is not None and _MEMORY not in os.environ:
            wanted[_MEMORY] = f"{memory:.3f}"
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})


def _serve(pipe: Connection) -> None:
    """Measure what comes through the pipe until it is closed."""
    from bayesdag.bench.stamps import provenance
    from bayesdag.errors import BayesdagWarning

    warnings.simplefilter("ignore", BayesdagWarning)  # said of every benchmark
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
