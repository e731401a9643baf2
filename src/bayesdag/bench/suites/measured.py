"""Measured data with a known graph: what is found, and how sure, by what the method is told."""

from collections.abc import Iterator

from bayesdag.bench.columns import PATIENCE, others
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import BASELINES, Part, Runner, Size, Suite, Table, Trial
from bayesdag.bench.suites.broken_worlds import METHODS, WORTH, runners
from bayesdag.datasets._conditions import MARKINGS, NOTHING, TARGETS
from bayesdag.datasets.light_tunnel import LightTunnel
from bayesdag.datasets.sachs_full import SachsFull
from bayesdag.types import PlainData

SETTING = ("data", "marking", "rows", "d")
SUBSAMPLE = {"quick": 300, "paper": 1000}
NUM_SETS = {"quick": 1, "paper": 3}  # of each subsample
SETS: dict[str, tuple[type, PlainData]] = {
    "light tunnel": (LightTunnel, {}),
    "Sachs, log, 17 edges": (SachsFull, {"logarithm": True}),
    "Sachs, log, 20 edges": (SachsFull, {"logarithm": True, "num_edges": 20}),
    "Sachs, raw, 17 edges": (SachsFull, {}),
}
CAPTION = (
    "Marking: whether the method is told which cells an experimenter set (targets), the "
    "condition that each row was measured in (environment), or nothing. The wiring of the light "
    "tunnel is known, but for pairs of sensors that share a fluctuation, which are not scored; "
    "NLL is per row of its held-out conditions, whose actuators have stronger settings. The graph "
    "of the Sachs data is what experts agreed on, and disputed."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    methods, sets = runners(METHODS[size], with_environment=True), tuple(_trials(size))
    columns = {**WORTH, "NLL": "nll .2f"}
    return Suite(
        title="Measured data",
        caption=CAPTION,
        parts=(
            Part("measured", sets, methods, 900.0, interleaved=True),
            *(_of_others(size, marking, sets) for marking in MARKINGS),
        ),
        tables=(Table("", (*SETTING, "method"), columns),),
    )


def _of_others(size: Size, marking: str, sets: tuple[Trial, ...]) -> Part:
    """All other columns that understand a marking: other packages have none for it."""
    marked = tuple(trial for trial in sets if trial.setting["marking"] == marking)
    methods = others(size, (*METHODS[size], *BASELINES), with_environment=True)
    able = {name: runner for name, runner in methods.items() if _understands(runner, marking)}
    return Part(f"others, {marking}", marked, able, PATIENCE, interleaved=True)


def _understands(runner: Runner, marking: str) -> bool:
    if marking == NOTHING or not isinstance(runner, FitRunner):
        return marking == NOTHING
    method = runner.built()
    if marking == TARGETS:
        return method.supports_interventions
    return "environments" in method.supported_constraints


def _trials(size: Size) -> Iterator[Trial]:
    """Data sets and markings take turns, small samples first."""
    numbers = range(NUM_SETS[size])
    samples: list[tuple[int, int | None]] = [(number, SUBSAMPLE[size]) for number in numbers]
    if size == "paper":
        samples.append((0, None))  # all rows: one data set, whatever the seed
    for seed, num_rows in samples:
        for marking in MARKINGS:
            for name, (kind, options) in SETS.items():
                dataset = kind(marking=marking, num_rows=num_rows, **options)
                d, rows = dataset.size
                values = (name, marking, rows, d)
                setting: PlainData = dict(zip(SETTING, values, strict=True))
                yield Trial(setting, seed, dataset)
