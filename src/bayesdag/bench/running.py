"""Runs a suite: every missing cell, one after the other, each stored as soon as it is there."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from bayesdag import plugins
from bayesdag.bench.cells import Cell, Store
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import BASELINES, Part, Runner, Suite, Trial
from bayesdag.bench.worker import Outcome, Worker
from bayesdag.errors import InputError

Report = Callable[[Cell], None]


def run_suite(
    suite: Suite,
    store: Store,
    *,
    methods: Sequence[str] = (),
    parts: Sequence[str] = (),
    limit: float | None = None,
    retry: bool = False,
    report: Report = lambda cell: None,
) -> list[str]:
    """Run what the store lacks; returns what this machine could not run, in words.

    Args:
        methods: only these, and the baselines: names in the tables, or of any method.
        parts: only these.
        limit: seconds per cell, instead of the part's own.
        retry: run cells again that failed or ran out of time.
        report: called with every new cell.
    """
    chosen = [part for part in suite.parts if not parts or part.name in parts]
    _refuse_unknown("part", parts, [part.name for part in suite.parts])
    left_out = []
    for part in chosen:
        with Worker(part.one_thread) as worker:
            for name, runner in select(part, methods, suite).items():
                if lacking := runner.lacking():
                    left_out.append(f"{name}: {lacking}")
                    continue
                missing = _missing(part, name, store, retry)
                for batch in _batches(runner, missing):
                    outcome = worker.measure(runner, batch, (limit or part.limit) * len(batch))
                    for cell in _stored(part, name, runner, batch, outcome, store):
                        report(cell)
                    if part.fresh:
                        worker.stop()
    return left_out


def select(part: Part, methods: Sequence[str], suite: Suite) -> dict[str, Runner]:
    """Runners of these names; a baseline of the part is never left out.

    A name that no part has is that of a method; it is fitted with its defaults.
    """
    if not methods:
        return dict(part.runners)
    in_tables = {name for one in suite.parts for name in one.runners}
    _refuse_unknown("method", methods, [*in_tables, *plugins.names("methods")])
    kept = {n: r for n, r in part.runners.items() if n in methods or n in BASELINES}
    judged = any(isinstance(runner, FitRunner) for runner in part.runners.values())
    others = [name for name in methods if name not in in_tables] if judged else []
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


def _stored(
    part: Part, name: str, runner: Runner, batch: list[Trial], outcome: Outcome, store: Store
) -> Iterator[Cell]:
    """The cells of a batch, each in its file: measures, or why there are none."""
    stamp = {**outcome.stamp, "seconds": round(outcome.seconds / len(batch), 3)}
    stamp |= {"together": len(batch)} if len(batch) > 1 else {}
    stamp["settings"] = _settings(runner)
    measures = outcome.measures or [{} for _ in batch]
    for trial, own in zip(batch, measures, strict=True):
        told = {"status": outcome.status, "error": outcome.error}
        cell = replace(_empty(part, name, trial), measures=own, stamp=stamp, **told)
        store.write(cell)
        yield cell


def _settings(runner: Runner) -> dict[str, Any]:
    """All settings, with those of a method that is given by its name."""
    if not isinstance(runner, FitRunner):
        return asdict(runner)  # pyright: ignore[reportArgumentType]
    options = {"from_truth": runner.from_truth, "by_epoch": runner.by_epoch}
    chosen = {name: value for name, value in options.items() if value}
    return {"method": plugins.configuration(runner.built()), **chosen}
