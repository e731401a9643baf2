"""Runs suites: every missing cell, one after the other, each stored as soon as it is there."""

import difflib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

from bayesdag import plugins
from bayesdag.bench.cells import Cell, Store
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import BASE_RATE, BASELINES, Part, Runner, Suite, Trial
from bayesdag.bench.worker import Outcome, Worker
from bayesdag.errors import InputError
from bayesdag.types import PlainData

Report = Callable[[Cell], None]
MEMORY = 0.9  # share of an accelerator's memory that all processes together reserve


class _Task(NamedTuple):
    """Data sets that one method is measured on in one call."""

    store: Store
    part: Part
    method: str
    runner: Runner
    batch: list[Trial]


def run_suite(suite: Suite, store: Store, **options: Any) -> list[str]:
    """Run what the store of one suite lacks; `options` are those of `run_suites`."""
    return run_suites([(suite, store)], **options)


def run_suites(
    suites: Sequence[tuple[Suite, Store]],
    *,
    methods: Sequence[str] = (),
    parts: Sequence[str] = (),
    limit: float | None = None,
    minutes: float | None = None,
    jobs: int = 1,
    retry: bool = False,
    report: Report = lambda cell: None,
) -> list[str]:
    """Run what the stores lack; returns what was not run on this machine, in words.

    Args:
        methods: only these, and the baselines: names in the tables, or of any method.
        parts: only these.
        limit: seconds per cell, instead of the part's own.
        minutes: of the whole run; the cell that it cuts short is not stored.
        jobs: cells measured at once, each in a process of its own; they slow each other down,
            so times are then those of a shared machine.
        retry: run cells again that failed or ran out of time.
        report: called with every new cell.
    """
    if jobs < 1:
        raise InputError(f"jobs is {jobs}; it must be 1 or more")
    _refuse_unknown("part", parts, [part.name for suite, _ in suites for part in suite.parts])
    _refuse_unknown("method", methods, _known_methods(suites))
    tasks, left_out = plan(suites, methods, parts, retry)
    queue = _Queue(tasks, limit, minutes, report)
    _run(queue, jobs)
    left = sum(len(task.batch) for task in queue.waiting)
    cut = [f"{left} cells: the time limit of {minutes:g} minutes was reached"] if left else []
    return [*left_out, *cut]


def plan(
    suites: Sequence[tuple[Suite, Store]],
    methods: Sequence[str] = (),
    parts: Sequence[str] = (),
    retry: bool = False,
) -> tuple[list[_Task], list[str]]:
    """What is to be measured, in its order, and what this machine cannot run, in words."""
    left_out: list[str] = []
    queues = [
        (part, list(_groups(part, store, select(part, methods, suite), retry, left_out)))
        for suite, store in suites
        for part in suite.parts
        if not parts or part.name in parts
    ]
    return list(_ordered(queues)), list(dict.fromkeys(left_out))


class _Queue:
    """Tasks that wait, for one or several workers, until the time is over."""

    def __init__(
        self, tasks: Sequence[_Task], limit: float | None, minutes: float | None, report: Report
    ) -> None:
        self.waiting = deque(tasks)
        self._limit, self._report = limit, report
        self._end = float("inf") if minutes is None else time.monotonic() + 60 * minutes
        self._lock = threading.Lock()

    def serve(self, memory: float | None = None) -> None:
        """Measure tasks in a process of its own until there is none, or no time."""
        worker, before = Worker(), None
        try:
            while (task := self._next()) is not None:
                if not _shares_process(before, task.part):
                    worker.stop()
                    worker = Worker(task.part.one_thread, memory)
                before = task.part
                if not self._measure(worker, task):
                    return
        finally:
            worker.stop()

    def give_up(self) -> None:
        """Nothing more is begun, and what is under way is not stored."""
        with self._lock:
            self.waiting.clear()
            self._end = float("-inf")

    def _next(self) -> _Task | None:
        with self._lock:
            there = self.waiting and time.monotonic() < self._end
            return self.waiting.popleft() if there else None

    def _measure(self, worker: Worker, task: _Task) -> bool:
        """Whether the task was done before the time of the whole run was over."""
        left = self._end - time.monotonic()
        longest = (self._limit or task.part.limit) * len(task.batch)
        outcome = worker.measure(task.runner, task.batch, max(min(longest, left), 0.0))
        if worker.memory is not None:  # others ran beside it, so its times are not its own
            outcome = outcome._replace(stamp={**outcome.stamp, "note": "several cells at once"})
        with self._lock:
            if time.monotonic() >= self._end and outcome.status != "done":
                self.waiting.appendleft(task)
                return False
            for cell in _stored(task, outcome):
                self._report(cell)
        if task.part.fresh:
            worker.stop()
        return True


def _run(queue: _Queue, jobs: int) -> None:
    """Serve a queue by so many processes at once."""
    if jobs == 1:
        queue.serve()
        return
    with ThreadPoolExecutor(jobs) as pool:
        served = [pool.submit(queue.serve, MEMORY / jobs) for _ in range(jobs)]
        try:
            for one in served:
                one.result()
        except BaseException:
            queue.give_up()
            raise


def _shares_process(before: Part | None, part: Part) -> bool:
    """A process lasts as long as its part; parts that take turns share one."""
    return before is part or bool(before and before.interleaved and part.interleaved)


def _ordered(queues: Sequence[tuple[Part, list[list[_Task]]]]) -> Iterator[_Task]:
    """Part by part; those that are interleaved take turns."""
    for interleaved, some in groupby(queues, key=lambda queue: queue[0].interleaved):
        of_parts = [groups for _, groups in some]
        rounds = zip_longest(*of_parts, fillvalue=[]) if interleaved else of_parts
        yield from (task for groups in rounds for group in groups for task in group)


def _groups(
    part: Part, store: Store, runners: dict[str, Runner], retry: bool, left_out: list[str]
) -> Iterator[list[_Task]]:
    """Missing cells: all data sets of a method, or all methods on a data set (interleaved)."""
    by_method: dict[str, list[_Task]] = {}
    for name, runner in runners.items():
        if lacking := runner.lacking():
            left_out.append(f"{name}: {lacking}")
            continue
        batches = _batches(runner, _missing(part, name, store, retry))
        by_method[name] = [_Task(store, part, name, runner, batch) for batch in batches]
    if not part.interleaved:
        yield from by_method.values()
        return
    by_trial: dict[int, list[_Task]] = {id(trial): [] for trial in part.trials}
    for task in (task for tasks in by_method.values() for task in tasks):
        by_trial[id(task.batch[0])].append(task)
    yield from by_trial.values()


def _known_methods(suites: Sequence[tuple[Suite, Store]]) -> list[str]:
    in_tables = {name for suite, _ in suites for part in suite.parts for name in part.runners}
    return [*in_tables, *plugins.names("methods")]


def select(part: Part, methods: Sequence[str], suite: Suite) -> dict[str, Runner]:
    """Runners of these names; a baseline of the part is never left out.

    A name that no part has is that of a method; it is fitted with its defaults.
    """
    if not methods:
        return dict(part.runners)
    in_tables = {name for one in suite.parts for name in one.runners}
    always = (*BASELINES, BASE_RATE)
    kept = {n: r for n, r in part.runners.items() if n in methods or n in always}
    judged = any(isinstance(runner, FitRunner) for runner in part.runners.values())
    plain = [name for name in methods if name in plugins.names("methods")]
    others = [name for name in plain if name not in in_tables] if judged else []
    return {**{name: FitRunner(name) for name in others}, **kept}


def _refuse_unknown(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(
                f"no {kind} is called {name!r}{hint} There are: {'; '.join(sorted(known))}"
            )


def _missing(part: Part, name: str, store: Store, retry: bool) -> list[Trial]:
    """Data sets on which this method has no cell, or none that counts."""

    def wanted(trial: Trial) -> bool:
        stored = store.find(_empty(part, name, trial))
        return stored is None or (retry and stored.status != "done")

    return [trial for trial in part.trials if wanted(trial)]


def _batches(runner: Runner, trials: list[Trial]) -> Iterator[list[Trial]]:
    """Trials of one setting together where the runner takes several, else one by one."""
    if not runner.together:
        yield from ([trial] for trial in trials)
        return
    for _, some in groupby(trials, key=lambda trial: sorted(trial.setting.items(), key=str)):
        yield list(some)


def _empty(part: Part, method: str, trial: Trial) -> Cell:
    return Cell(part.name, dict(trial.setting), method, trial.seed)


def _stored(task: _Task, outcome: Outcome) -> Iterator[Cell]:
    """The cells of a batch, each in its file: measures, or why there are none."""
    batch = task.batch
    stamp = {**outcome.stamp, "seconds": round(outcome.seconds / len(batch), 3)}
    stamp |= {"together": len(batch)} if len(batch) > 1 else {}
    stamp["settings"] = _settings(task.runner)
    measures = outcome.measures or [{} for _ in batch]
    for trial, own in zip(batch, measures, strict=True):
        result = {"status": outcome.status, "error": outcome.error}
        empty = _empty(task.part, task.method, trial)
        cell = replace(empty, measures=own, stamp=stamp, **result)
        task.store.write(cell)
        yield cell


def _settings(runner: Runner) -> PlainData:
    """All settings, with those of a method that is given by its name."""
    if not isinstance(runner, FitRunner):
        return asdict(runner)  # pyright: ignore[reportArgumentType]
    if not runner.exists:
        return {"method": {"plugin": f"methods/{runner.method}"}}
    options = {"from_truth": runner.from_truth, "by_epoch": runner.by_epoch}
    chosen = {name: value for name, value in options.items() if value}
    return {"method": plugins.configuration(runner.built()), **chosen}
