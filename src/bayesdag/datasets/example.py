"""The greenhouse: a small example that ships with the package.

Four hundred weeks, each in another tomato greenhouse. Light and the air outside warm the air
inside; light makes the controller water more and the plants grow; heat dries the air and
water moistens it; moist air brings mildew; growth and mildew decide the harvest. The rows are
made up by the linear model below, so the truth is known. The units are those a grower would
use, and the largest numbers belong to a first cause (light): sorting by variance goes astray.

Data alone cannot direct every edge: light, irrigation and growth can be arranged in several
ways that explain the rows equally well. A sentence of prior knowledge (the weather comes
first) settles most of it.
"""

import csv
import io
from dataclasses import dataclass
from importlib import resources
from typing import ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.datasets import _mechanisms, _noises
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._streams import stream
from bayesdag.datasets._truth import Truth

NUM_ROWS = 400
SEED = 0
TABLE, EDGES = "greenhouse.csv", "greenhouse_truth.csv"


@dataclass(frozen=True)
class Variable:
    """One column of the greenhouse.

    Attributes:
        unit: of the column.
        level: its mean.
        noise: standard deviation of what its causes leave open.
        causes: change for one unit more of each cause.
        decimals: of the readings.
    """

    unit: str
    level: float
    noise: float
    causes: dict[str, float]
    decimals: int = 1


GREENHOUSE = {
    "growth": Variable("g a plant and day", 32.0, 3.0, {"light": 0.04, "irrigation": 1.5}),
    "harvest": Variable("kg/m2", 1.6, 0.12, {"growth": 0.03, "mildew": -0.06}, decimals=2),
    "humidity": Variable("%", 68.0, 3.0, {"indoor_temperature": -1.8, "irrigation": 4.5}),
    "indoor_temperature": Variable(
        "degrees C", 24.0, 1.0, {"light": 0.012, "outdoor_temperature": 0.35}
    ),
    "irrigation": Variable("l/m2 a day", 4.5, 0.5, {"light": 0.007}, decimals=2),
    "light": Variable("W/m2", 300.0, 70.0, {}, decimals=0),
    "mildew": Variable("% of the leaf area", 9.0, 1.6, {"humidity": 0.3}),
    "outdoor_temperature": Variable("degrees C", 19.0, 3.0, {}),
}
NAMES = tuple(GREENHOUSE)  # in alphabetical order, which is not the causal one


@dataclass(frozen=True)
class Example:
    """400 greenhouse weeks, 8 variables, 10 edges; the same rows whatever the seed."""

    description: ClassVar[str] = "a tomato greenhouse, from light to harvest (made up; ships here)"
    size: ClassVar[tuple[int, int]] = (len(NAMES), NUM_ROWS)

    def __call__(self, seed: int = 0) -> Benchmark:
        """The shipped rows and edges, with the model that made them."""
        del seed  # the rows are fixed; `Benchmark.sample` draws others
        names, *rows = csv.reader(io.StringIO(shipped(TABLE)))
        edges = csv.DictReader(io.StringIO(shipped(EDGES)))
        graph = np.zeros((len(names), len(names)), dtype=np.int8)
        for edge in edges:
            graph[names.index(edge["cause"]), names.index(edge["effect"])] = 1
        units = {name: variable.unit for name, variable in GREENHOUSE.items()}
        return Benchmark(
            train=Dataset(np.array(rows, dtype=float), tuple(names)),
            graph=graph,
            truth=greenhouse(),
            description=self.description,
            provenance={"dataset": plugins.configuration(self), "units": units},
        )


def load_example() -> Benchmark:
    """The greenhouse: rows, true graph, and the true model to sample from."""
    return Example()()


def greenhouse() -> Truth:
    """The linear Gaussian model behind the example."""
    weights = np.array([[v.causes.get(name, 0.0) for v in GREENHOUSE.values()] for name in NAMES])
    level = np.array([variable.level for variable in GREENHOUSE.values()], dtype=float)
    functions = (
        _mechanisms.LinearFunctions(column[column != 0], float(level[j] - level @ column))
        for j, column in enumerate(weights.T)
    )
    return Truth(
        graph=(weights != 0).astype(np.int8),
        functions=tuple(functions),
        noise=_noises.gaussian,
        noise_scale=np.array([variable.noise for variable in GREENHOUSE.values()], dtype=float),
    )


def regenerate() -> dict[str, str]:
    """Contents of the shipped files by name, made afresh from the model.

    Whoever changes the model writes these over the files in `datasets/files`.
    """
    rows = greenhouse().sample(stream(SEED, "greenhouse"), NUM_ROWS)
    decimals = [variable.decimals for variable in GREENHOUSE.values()]
    table = [[f"{x:.{k}f}" for x, k in zip(row, decimals, strict=True)] for row in rows]
    edges = [
        [cause, effect, change]
        for effect, variable in GREENHOUSE.items()
        for cause, change in variable.causes.items()
    ]
    return {
        TABLE: _as_csv([NAMES, *table]),
        EDGES: _as_csv([("cause", "effect", "change"), *edges]),
    }


def shipped(name: str) -> str:
    """Contents of a file that ships with the package."""
    return resources.files("bayesdag.datasets").joinpath("files", name).read_text("utf-8")


def _as_csv(rows: list) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


build = Example
