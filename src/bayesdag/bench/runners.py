"""Runners other than a fit: other packages, commands, and functions that are timed."""

import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from bayesdag import metrics
from bayesdag.bench import usage
from bayesdag.bench.judging import of_probabilities
from bayesdag.bench.suite import Measures, Trial
from bayesdag.data import Dataset
from bayesdag.datasets import Benchmark
from bayesdag.errors import InputError
from bayesdag.graphs import cpdag
from bayesdag.types import Facts

EXTERNAL = Path(__file__).parent / "external"
OPPONENTS = "BAYESDAG_OPPONENTS"


@dataclass(frozen=True)
class OneByOne(ABC):
    """A runner that measures its trials one after the other."""

    @property
    def together(self) -> bool:
        """One trial at a time."""
        return False

    @property
    def accelerated(self) -> bool:
        """No networks are trained."""
        return False

    def lacking(self) -> str | None:
        """Nothing."""
        return None

    def measure(self, trials: list[Trial]) -> list[Measures]:
        """Measures of each trial."""
        return [self.measure_one(trial) for trial in trials]

    @abstractmethod
    def measure_one(self, trial: Trial) -> Measures:
        """Measures of one trial."""


@dataclass(frozen=True)
class Opponent(OneByOne):
    """A method of another package, in the interpreter that BAYESDAG_OPPONENTS names.

    That interpreter has what the suite's programs import (`external/README.md`).

    Attributes:
        name: of a program in `external/opponents.py`.
        settings: handed to the program; a penalty "matched" is that of BIC plus the log prior
            odds of an edge at the true density, per half logarithm of the number of rows.
    """

    name: str = "boss"
    settings: Facts = field(default_factory=dict)

    def lacking(self) -> str | None:
        """The interpreter, unless it is named, or the packages that it lacks."""
        interpreter = os.environ.get(OPPONENTS)
        if not interpreter:
            what = "an interpreter with the packages that bench/external/README.md lists"
            return f"set {OPPONENTS} to {what}"
        try:
            missing = _lacking_packages(interpreter)[self.name]
        except (OSError, InputError, ValueError) as error:
            return f"{OPPONENTS} names {interpreter!r}, which cannot be used: {error}"
        if not missing:
            return None
        named = f"the interpreter that {OPPONENTS} names lacks {' and '.join(missing)}"
        return f"{named}; {interpreter} -m pip install {' '.join(missing)}"

    def measure_one(self, trial: Trial) -> Measures:
        """Quality and time of the other package's method."""
        source = trial.dataset(trial.seed)
        told = replace(self, settings=self._matched(source))
        return opponent_measures(told.found(source.train), source)

    def found(self, data: Dataset) -> dict[str, np.ndarray]:
        """Arrays that the other package's method returns on these rows."""
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
            np.savez(given, x=data.scaled, kinds=[kind.name for kind in data.kinds])
            words = [f"{key}={value}" for key, value in self.settings.items()]
            program = [os.environ[OPPONENTS], str(EXTERNAL / "opponents.py"), self.name]
            _call([*program, str(given), str(found), *words])
            with np.load(found) as file:
                return dict(file)

    def _matched(self, source: Benchmark) -> Measures:
        if self.settings.get("penalty") != "matched":
            return dict(self.settings)
        num_rows, d = source.train.values.shape
        density = float(source.graph.sum()) / (d * (d - 1) / 2)
        return {**self.settings, "penalty": 0.5 + np.log(1 / density - 1) / np.log(num_rows)}


def opponent_measures(found: dict[str, np.ndarray], source: Benchmark) -> Measures:
    """What edge probabilities, and draws or one graph if there are any, are worth."""
    truth, unknown = source.graph, source.unknown
    edge, true = (metrics.without_unknown(m, unknown) for m in (found["edge"], truth))
    measures: Measures = {
        "seconds": float(found["seconds"]),
        "cpu": float(found["cpu"]),
        **of_probabilities(found["edge"], source),
        "expected_num_edges": float(edge.sum()),
    }
    if "package_version" in found:  # those written here have none but ours
        measures["package_version"] = str(found["package_version"])
    if "graphs" in found:
        graphs = metrics.without_unknown(found["graphs"], unknown)
        measures["expected_shd"] = metrics.expected_shd(graphs, true)
        measures["edge_f1"] = metrics.expected_f1(graphs, true)
        measures["expected_cpdag_shd"] = metrics.expected_cpdag_shd(
            found["graphs"], truth, unknown=unknown
        )
    if "cpdag" in found:
        pairs = None if unknown is None else unknown | unknown.T
        classes = (metrics.without_unknown(one, pairs) for one in (found["cpdag"], cpdag(truth)))
        distance = float(metrics.shd(*classes))
        measures |= {"expected_cpdag_shd": distance, "best_cpdag_shd": distance}
        measures["expected_shd"] = metrics.shd_of_marginals(edge, true)
    return measures


@dataclass(frozen=True)
class BaseRate(OneByOne):
    """The best constant: every edge has the fraction of true edges as its probability.

    It knows the truth's density and nothing else; a method whose log score is lower would have
    done better to say that of every pair.
    """

    def measure_one(self, trial: Trial) -> Measures:
        """Measures of the constant."""
        source = trial.dataset(trial.seed)
        rate = metrics.base_rate(source.graph, source.unknown)
        constant = np.full(source.graph.shape, rate)
        seen, true = (metrics.without_unknown(m, source.unknown) for m in (constant, source.graph))
        return {
            **of_probabilities(constant, source),
            "expected_shd": metrics.shd_of_marginals(seen, true),
        }


@dataclass(frozen=True)
class Command(OneByOne):
    """A command of this package, timed as its user sees it, start-up included."""

    arguments: tuple[str, ...] = ()

    def measure_one(self, trial: Trial) -> Measures:
        """Wall and CPU seconds."""
        del trial
        return timed(lambda: _call([sys.executable, *self.arguments]))


@dataclass(frozen=True)
class Call(OneByOne):
    """A function of the seed that returns its own measures.

    Attributes:
        function: "module:name" below `bayesdag.bench`; plain data, so that a stamp can hold it.
        arguments: besides the seed.
    """

    function: str = ""
    arguments: Facts = field(default_factory=dict)

    def measure_one(self, trial: Trial) -> Measures:
        """Measures that the function returns."""
        function = pkgutil.resolve_name(f"bayesdag.bench.{self.function}")
        return function(trial.seed, **self.arguments)


def timed(task: Callable[[], object]) -> dict[str, float]:
    """Wall and CPU seconds, those of child processes included."""
    wall, cpu = time.perf_counter(), usage.cpu_seconds()
    task()
    return {"seconds": time.perf_counter() - wall, "cpu": usage.cpu_seconds() - cpu}


@cache
def _lacking_packages(interpreter: str) -> dict[str, list[str]]:
    """By program, what an interpreter lacks; asked once, and nothing is imported."""
    return json.loads(_call([interpreter, str(EXTERNAL / "opponents.py"), "--lacking"]))


def _call(command: list[str]) -> str:
    """Output of a program; its last line of errors is the message where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"{Path(command[1]).name} ended with code {done.returncode}: {last}")
    return done.stdout
