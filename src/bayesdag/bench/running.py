"""Runs suites: every missing cell, each stored as soon as it is there.

Cells are measured in processes of their own: one after the other, several at once, those that want
an accelerator beside those that do not, or as joblib tasks on the workers of a cluster.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from bayesdag import plugins
from bayesdag.bench.cells import Cell
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.planning import (
    Selection,
    Suites,
    Task,
    check_methods,
    empty_cell,
    plan,
)
from bayesdag.bench.stamps import source
from bayesdag.bench.store import Store
from bayesdag.bench.suite import Part, Runner, Suite, Trial
from bayesdag.bench.worker import Outcome, Place, Worker
from bayesdag.errors import InputError
from bayesdag.runs import parallel
from bayesdag.runs.parallel import Workers
from bayesdag.types import PlainData

Report = Callable[[Cell], None]
SHARED = "several cells at once"  # said of cells whose times are not their own
Lane = Literal["any", "gpu", "cpu"]  # which cells a process takes
_MEMORY = 0.9  # share of an accelerator's memory that all processes together reserve


@dataclass(frozen=True)
class RunLimits:
    """What may be used.

    Attributes:
        seconds: per cell, instead of its part's own.
        gigabytes: per cell; None: no limit.
        minutes: of the whole run; the cell that it cuts short is not stored.
        together: data sets that engines fit in one compiled run; None: all of a setting, which
            are stored when the last of them is done.
    """

    seconds: float | None = None
    gigabytes: float | None = None
    minutes: float | None = None
    together: int | None = None

    def __post_init__(self) -> None:
        if self.together is not None and self.together < 1:
            raise InputError(f"together is {self.together}; it must be 1 or more")


@dataclass(frozen=True)
class Processes:
    """How many cells are measured at once on this machine.

    They slow each other down, so their times are then those of a shared machine.

    Attributes:
        jobs: cells of any kind.
        gpu: instead, so many of the cells that want an accelerator; when there are none left,
            these processes help the others.
        cpu: and so many of all others, with one thread each and no accelerator.
        on_cores: methods, by their names in the tables, that gain by an accelerator and are counted
            among the others nevertheless.
        note: stamped on every cell, as that other programs have slowed it.
    """

    jobs: int = 1
    gpu: int = 0
    cpu: int = 0
    on_cores: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("gpu", 0), ("cpu", 0)):
            if getattr(self, name) < least:
                words = name if name == "jobs" else f"{name}_jobs"
                raise InputError(f"{words} is {getattr(self, name)}; it must be {least} or more")
        if self.on_cores and not self.divided:
            raise InputError("on_cores needs processes of one core each: say how many (cpu_jobs)")

    @property
    def divided(self) -> bool:
        """Whether cells are told apart by whether they want an accelerator."""
        return bool(self.gpu or self.cpu)

    def lanes(self) -> list[Lane]:
        """One for each process."""
        if not self.divided:
            return ["any"] * self.jobs
        gpu: list[Lane] = ["gpu"] * self.gpu
        cpu: list[Lane] = ["cpu"] * self.cpu
        return gpu + cpu

    def accelerates(self, task: Task) -> bool:
        """Whether a task queues for an accelerator."""
        return task.runner.accelerated and task.method not in self.on_cores

    def position(self, lane: Lane, tasks: Sequence[Task]) -> int | None:
        """Where a lane's next task is, or None; those of the accelerator help when theirs end."""
        if lane == "any":
            return 0 if tasks else None
        wanted = (k for k, task in enumerate(tasks) if self.accelerates(task) == (lane == "gpu"))
        found = next(wanted, None)
        return self.position("cpu", tasks) if found is None and lane == "gpu" else found

    def place(self, task: Task) -> Place:
        """What the process of a task may use."""
        asked = Place(one_thread=task.part.one_thread, cold=task.part.fresh)
        if not self.divided and self.jobs == 1:
            return asked
        if self.divided and not self.accelerates(task):
            return replace(asked, cpu_only=True, one_thread=True)
        num = max(self.gpu, 1) if self.divided else self.jobs
        cores = max(((os.cpu_count() or 1) - self.cpu) // num, 1)
        shared = replace(asked, accelerator_share=_MEMORY / num, processes=cores)
        return replace(shared, one_blas_thread=True)


def run_suite(suite: Suite, store: Store, *given: Any, **options: Any) -> list[str]:
    """Run what the store of one suite lacks; all else is as in `run_suites`."""
    return run_suites([(suite, store)], *given, **options)


def run_suites(
    suites: Suites,
    wanted: Selection = Selection(),  # noqa: B008 - frozen
    limits: RunLimits = RunLimits(),  # noqa: B008
    processes: Processes = Processes(),  # noqa: B008
    report: Report = lambda cell: None,
) -> list[str]:
    """Run what the stores lack; returns what was not run, in words.

    Inside `parallel.using(ADDRESS)` cells are measured by the workers of that cluster instead of
    processes of this machine.

    Args:
        report: called with every new cell.
    """
    wanted.check(suites)
    check_methods(processes.on_cores, suites)
    tasks, left_out = plan(suites, wanted, limits.together)
    queue = _Queue(tasks, limits, processes, report)
    workers = parallel.current()
    if workers.elsewhere:
        _run([partial(queue.serve_elsewhere, workers)] * workers.num, queue)
    else:
        _run([partial(queue.serve, lane) for lane in processes.lanes()], queue)
    left = sum(len(task.batch) for task in queue.waiting)
    if not left:
        return left_out
    if queue.over:
        words = f"{left} cells: the time limit of {limits.minutes:g} minutes was reached"
        return [*left_out, words, *queue.cut_short]
    return [
        *left_out,
        f"{left} cells want an accelerator: no process takes them (--gpu-jobs, or --on-cores NAME)",
    ]


class _Queue:
    """Tasks that wait, for one or several workers, until the time is over."""

    def __init__(
        self, tasks: Sequence[Task], limits: RunLimits, processes: Processes, report: Report
    ) -> None:
        self.waiting = deque(tasks)
        self.cut_short: list[str] = []  # in words: a run this short never stores such a cell
        self._limits, self._processes, self._report = limits, processes, report
        minutes = limits.minutes
        self._end = float("inf") if minutes is None else time.monotonic() + 60 * minutes
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Whether the time of the whole run is."""
        return time.monotonic() >= self._end

    def serve(self, lane: Lane) -> None:
        """Measure tasks in a process of its own until there is none, or no time."""
        worker, before = Worker(), None
        shared = len(self._processes.lanes()) > 1
        try:
            while (task := self._next(lane)) is not None:
                place = self._processes.place(task)
                if worker.place != place or not _shares_process(before, task.part):
                    worker.stop()
                    worker = Worker(place)
                before = task.part
                seconds, most = self._allowed(task), self._limits.gigabytes
                outcome = worker.measure(task.runner, task.batch, seconds, most)
                if not self._keep(task, outcome, SHARED if shared else ""):
                    return
                if task.part.fresh:
                    worker.stop()
        finally:
            worker.stop()

    def serve_elsewhere(self, workers: Workers) -> None:
        """Have tasks measured by a cluster until there is none, or no time."""
        while (task := self._next("any")) is not None:
            given = (task.runner, task.batch, self._allowed(task), self._limits.gigabytes)
            part = task.part
            place = Place(one_thread=part.one_thread, processes=1, cold=part.fresh)
            options = (place, part.fresh)
            outcome = _measured_by(workers, given, options)
            if not self._keep(task, outcome, f"{SHARED}, by {workers.engine}"):
                return

    def give_up(self) -> None:
        """Nothing more is begun, and what is under way is not stored."""
        with self._lock:
            self.waiting.clear()
            self._end = float("-inf")

    def _next(self, lane: Lane) -> Task | None:
        with self._lock:
            position = None if self.over else self._processes.position(lane, self.waiting)
            if position is None:
                return None
            task = self.waiting[position]
            del self.waiting[position]
            return task

    def _allowed(self, task: Task) -> float:
        """Seconds that a task may take: its own limit, and what is left of the run."""
        longest = (self._limits.seconds or task.part.limit) * len(task.batch)
        return max(min(longest, self._end - time.monotonic()), 0.0)

    def _keep(self, task: Task, outcome: Outcome, note: str) -> bool:
        """Store the cells; False where the time of the whole run cut them short."""
        note = ", ".join(filter(None, (note, self._processes.note)))
        if note:
            outcome = outcome._replace(stamp={**outcome.stamp, "note": note})
        with self._lock:
            if self.over and outcome.status != "done":
                self.waiting.appendleft(task)
                self.cut_short.append(_cut_short(task, outcome.seconds))
                return False
            for cell in _stored(task, outcome):
                self._report(cell)
        return True


def _run(serve: Sequence[Callable[[], None]], queue: _Queue) -> None:
    """Serve a queue by all of these at once."""
    if len(serve) == 1:
        serve[0]()
        return
    with ThreadPoolExecutor(len(serve)) as pool:
        served = [pool.submit(one) for one in serve]
        try:
            for one in served:
                one.result()
        except BaseException:
            queue.give_up()
            raise


def _cut_short(task: Task, seconds: float) -> str:
    setting = ", ".join(map(str, task.batch[0].setting.values()))
    seeds = " ".join(str(trial.seed) for trial in task.batch)
    return (
        f"cut short after {seconds:.0f} s: {setting}, {task.method}, seed {seeds}; it begins anew "
        "the next time, so give the run more minutes, or cells a limit (--limit) that records it"
    )


_own = threading.local()  # the process that a thread of a cluster's worker keeps for its cells


def _measured_by(workers: Workers, given: tuple[Any, ...], options: tuple[Any, ...]) -> Outcome:
    """What a cluster makes of a task; a task that no worker survives is a lost cell."""
    started = time.monotonic()
    try:
        return workers.call(measure_apart, *given, *options)
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        words = f"every worker that took it was lost: {error}"
        return Outcome("failed", [], words, time.monotonic() - started, {})


def measure_apart(
    runner: Runner,
    batch: list[Trial],
    seconds: float,
    gigabytes: float | None,
    place: Place,
    fresh: bool,
) -> Outcome:
    """A task as a cluster's worker does it: in a child that can be stopped, kept for the next."""
    worker: Worker | None = getattr(_own, "worker", None)
    if worker is None or worker.place != place:
        if worker is not None:
            worker.stop()
        worker = _own.worker = Worker(place)
    outcome = worker.measure(runner, batch, seconds, gigabytes)
    if fresh:
        worker.stop()
    return outcome


def _shares_process(before: Part | None, part: Part) -> bool:
    """A process lasts as long as its part; parts that take turns share one."""
    return before is part or bool(before and before.interleaved and part.interleaved)


def _stored(task: Task, outcome: Outcome) -> Iterator[Cell]:
    """The cells of a batch, each in its file: measures, or why there are none."""
    batch = task.batch
    stamp = {**source(), **outcome.stamp, "seconds": round(outcome.seconds / len(batch), 3)}
    stamp |= {"together": len(batch)} if len(batch) > 1 else {}
    stamp["settings"] = _settings(task.runner)
    measures = outcome.measures or [{} for _ in batch]
    for trial, own in zip(batch, measures, strict=True):
        result = {"status": outcome.status, "error": outcome.error}
        empty = empty_cell(task.part, task.method, trial)
        cell = replace(empty, measures=own, stamp=stamp, **result)
        task.store.write(cell)
        yield cell


def _settings(runner: Runner) -> PlainData:
    """All settings, with those of a method that is given by its name."""
    if not isinstance(runner, FitRunner):
        return asdict(runner)  # pyright: ignore[reportArgumentType]
    options = {"from_truth": runner.from_truth, "by_epoch": runner.by_epoch}
    chosen = {name: value for name, value in options.items() if value}
    return {"method": plugins.configuration(runner.built()), **chosen}
