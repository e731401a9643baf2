"""Benchmark suites: data sets, methods, sizes and tables, as plain data.

One file in `suites/` is one suite: its first line says what is measured, and `build(size)`
returns it. The command, the runner and the tests find it by its file name.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from bayesdag.errors import InputError
from bayesdag.types import Facts

Size = Literal["quick", "paper"]
Setting = Facts
Measures = dict[str, Any]  # plain data by name
BASELINES = ("empty", "random_order", "sort_variance", "sort_r2")
BASE_RATE = "base rate"  # in tables: the share of true edges as the probability of each
HOUR = 3600.0
FIGURES = 1000  # first seed of figures; smaller ones are for development
RELEASE = 2000  # first seed of data sets that only a release scores, once
_FOLDER = Path(__file__).parent / "suites"


class Trial(NamedTuple):
    """One data set of a setting: `dataset(seed)` makes it, and the fit has the same seed."""

    setting: Setting
    seed: int
    dataset: Any


@runtime_checkable
class Runner(Protocol):
    """Measures one method on some data sets; a frozen dataclass of its settings."""

    @property
    def together(self) -> bool:
        """Whether data sets of one setting are measured in one call."""
        ...

    @property
    def accelerated(self) -> bool:
        """Whether it gains by an accelerator."""
        ...

    def lacking(self) -> str | None:
        """Requirement that this machine lacks, in words, or None."""
        ...

    def measure(self, trials: list[Trial]) -> list[Measures]:
        """Measures of each trial."""
        ...


@dataclass(frozen=True)
class Part:
    """Cells of one kind: every method on every data set.

    Attributes:
        name: of the folder of its cells.
        trials: the data sets.
        runners: what is measured on each, by the name it has in the tables.
        limit: seconds after which a cell is given up.
        fresh: every cell in a process of its own that keeps no compiled code, so that it meets none
            and the memory that it held is that of one fit.
        one_thread: compute in one CPU thread.
        interleaved: all methods on one data set before the next one, in turn with other such
            parts, so that a run that is stopped has something of everything.
    """

    name: str
    trials: tuple[Trial, ...]
    runners: Mapping[str, Runner]
    limit: float = HOUR
    fresh: bool = False
    one_thread: bool = False
    interleaved: bool = False


@dataclass(frozen=True)
class Table:
    """One table of a page.

    Attributes:
        title: its heading; empty: it follows the one before.
        rows: what a row stands for: names of the setting, "method", "seed", "device" (a shared one
            is another), or "misfit", the bin of the measured misfit.
        columns: heading: "measure [how] [format]", for example "expected_shd .1f" or
            "seconds max .0f"; without `how` the mean over data sets with its 95 % interval.
            "seconds exponent:d" is the power of d with which the seconds grow.
        caption: what is measured.
        parts: whose cells; none: all.
        methods: whose rows; none: all.
        without: methods left out.
        less: differences to this method, data set by data set.
        common: only data sets that all of these methods have.
        datasets_of: only data sets of this part, whatever part the cells are of.
        ratio: heading, measure and method: that method's mean, divided by the row's.
    """

    title: str
    rows: tuple[str, ...]
    columns: Mapping[str, str]
    caption: str = ""
    parts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    less: str | None = None
    common: tuple[str, ...] = ()
    datasets_of: str = ""
    ratio: tuple[str, str, str] | None = None


@dataclass(frozen=True)
class Suite:
    """Parts to run and the tables that show them.

    Attributes:
        title: heading of the page.
        caption: what is measured; never what was found.
        parts: what is run.
        tables: what is shown.
        collects: other suites whose cells its tables show; they are run with it.
    """

    title: str
    caption: str
    parts: tuple[Part, ...]
    tables: tuple[Table, ...] = field(default=())
    collects: tuple[str, ...] = ()


def trials(setting: Setting, dataset: Any, seeds: Iterable[int]) -> list[Trial]:
    """One data set for each seed."""
    return [Trial(setting, seed, dataset) for seed in seeds]


def released(suite: Suite) -> Suite:
    """The same suite on the data sets of a release, which nobody has seen."""

    def later(trial: Trial) -> Trial:
        shift = RELEASE - FIGURES if FIGURES <= trial.seed < RELEASE else 0
        return trial._replace(seed=trial.seed + shift)

    parts = (replace(part, trials=tuple(map(later, part.trials))) for part in suite.parts)
    return replace(suite, parts=tuple(parts))


def suite_names() -> list[str]:
    """Names of all suites, sorted: the files of the folder `suites`."""
    found = (module.name for module in pkgutil.iter_modules([str(_FOLDER)]))
    return sorted(name for name in found if not name.startswith("_"))


def describe_suites() -> dict[str, str]:
    """Every suite with its first line; nothing is imported."""
    return {name: _first_line(_FOLDER / f"{name}.py") for name in suite_names()}


def load_suite(name: str, size: str = "paper") -> Suite:
    """The suite of this name and size."""
    if name not in suite_names():
        raise InputError(f"no suite is called {name!r}; there are: {', '.join(suite_names())}")
    if size not in get_args(Size):
        raise InputError(f"no size is called {size!r}; there are: {', '.join(get_args(Size))}")
    return importlib.import_module(f"bayesdag.bench.suites.{name}").build(size)


def _first_line(path: Path) -> str:
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return words.partition("\n")[0]
