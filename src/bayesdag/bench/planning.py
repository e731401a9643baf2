"""What a run of suites has to measure, in which order, and what it leaves out."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import NamedTuple

from bayesdag import plugins
from bayesdag.bench.cells import Cell
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.stamps import source
from bayesdag.bench.store import Store
from bayesdag.bench.suite import BASE_RATE, BASELINES, RELEASE, Part, Runner, Suite, Trial
from bayesdag.errors import InputError

Suites = Sequence[tuple[Suite, Store]]


@dataclass(frozen=True)
class Selection:
    """Which cells of the suites are wanted.

    Attributes:
        methods: only these, and the baselines: names in the tables, or of any method.
        parts: only these.
        seeds: only these; none: all.
        retry: cells too that were lost: failed, or stopped at a limit.
        renew: cells too that another commit has measured.
    """

    methods: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    seeds: range | None = None
    retry: bool = False
    renew: bool = False

    def check(self, suites: Suites) -> None:
        """Refuse names that no suite knows."""
        _refuse_unknown(
            "part", self.parts, [part.name for suite, _ in suites for part in suite.parts]
        )
        check_methods(self.methods, suites)

    def counts(self, stored: Cell) -> bool:
        """Whether a stored cell is good enough not to be measured again."""
        if self.renew and stored.seed >= RELEASE:
            raise InputError(
                f"seed {stored.seed} is kept for a release and has been scored: such data sets are "
                "scored once, so --renew is refused; remove the cells to score them for another one"
            )
        lost = self.retry and stored.status != "done"
        return not lost and not (self.renew and stored.stamp.get("commit") != _commit())


class Task(NamedTuple):
    """Data sets that one method is measured on in one call."""

    store: Store
    part: Part
    method: str
    runner: Runner
    batch: list[Trial]


def plan(
    suites: Suites,
    wanted: Selection = Selection(),  # noqa: B008 - frozen
    together: int | None = None,
) -> tuple[list[Task], list[str]]:
    """What is to be measured, in its order, and what this machine cannot run, in words.

    Args:
        together: most data sets of a setting that are measured in one call; None: all.
    """
    left_out: list[str] = []
    queues = [
        (part, list(_groups(part, store, suite, wanted, together, left_out)))
        for suite, store in suites
        for part in suite.parts
        if not wanted.parts or part.name in wanted.parts
    ]
    return list(_ordered(queues)), list(dict.fromkeys(left_out))


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


def check_methods(asked: Sequence[str], suites: Suites) -> None:
    """Refuse names that are neither in a table nor those of a method."""
    _refuse_unknown("method", asked, _known_methods(suites))


def empty_cell(part: Part, method: str, trial: Trial) -> Cell:
    """The cell of a method on a data set, before anything is known."""
    return Cell(part.name, dict(trial.setting), method, trial.seed)


def _ordered(queues: Sequence[tuple[Part, list[list[Task]]]]) -> Iterator[Task]:
    """Part by part; those that are interleaved take turns."""
    for interleaved, some in groupby(queues, key=lambda queue: queue[0].interleaved):
        of_parts = [groups for _, groups in some]
        rounds = zip_longest(*of_parts, fillvalue=[]) if interleaved else of_parts
        yield from (task for groups in rounds for group in groups for task in group)


def _groups(
    part: Part,
    store: Store,
    suite: Suite,
    wanted: Selection,
    together: int | None,
    left_out: list[str],
) -> Iterator[list[Task]]:
    """Missing cells: all data sets of a method, or all methods on a data set (interleaved)."""
    by_method: dict[str, list[Task]] = {}
    for name, runner in select(part, wanted.methods, suite).items():
        if lacking := runner.lacking():
            left_out.append(f"{name}: {lacking}")
            continue
        batches = _batches(runner, _missing(part, name, store, wanted), together)
        by_method[name] = [Task(store, part, name, runner, batch) for batch in batches]
    if not part.interleaved:
        yield from by_method.values()
        return
    by_trial: dict[int, list[Task]] = {id(trial): [] for trial in part.trials}
    for task in (task for tasks in by_method.values() for task in tasks):
        by_trial[id(task.batch[0])].append(task)
    yield from by_trial.values()


def _missing(part: Part, name: str, store: Store, wanted: Selection) -> list[Trial]:
    """Data sets on which this method has no cell, or none that counts."""

    def lacks(trial: Trial) -> bool:
        if wanted.seeds is not None and trial.seed not in wanted.seeds:
            return False
        stored = store.find(empty_cell(part, name, trial))
        return stored is None or not wanted.counts(stored)

    return [trial for trial in part.trials if lacks(trial)]


def _batches(runner: Runner, trials: list[Trial], most: int | None) -> Iterator[list[Trial]]:
    """Trials of one setting together where the runner takes several, else one by one."""
    if not runner.together:
        yield from ([trial] for trial in trials)
        return
    for _, some in groupby(trials, key=lambda trial: sorted(trial.setting.items(), key=str)):
        alike = list(some)
        size = most or len(alike)
        yield from (alike[start : start + size] for start in range(0, len(alike), size))


def _commit() -> object:
    return source()["commit"]


def _known_methods(suites: Suites) -> list[str]:
    in_tables = {name for suite, _ in suites for part in suite.parts for name in part.runners}
    return [*in_tables, *plugins.names("methods")]


def _refuse_unknown(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            listed = "; ".join(sorted(set(known)))
            raise InputError(f"no {kind} is called {name!r}{hint} There are: {listed}")
