"""Random networks of measurements and levels, in which levels act as levels.

A column of levels is what its causes make of it through a latent score, and its children see the
level alone: nothing is hidden, so that the graph is the truth about the columns themselves.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.data.kinds import Kind
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._levels import half_levels
from bayesdag.datasets._streams import stream
from bayesdag.errors import InputError

FUNCTIONS = ("lines", "curves", "networks")
WEIGHTS = (0.7, 1.6)
HIDDEN_UNITS = 8  # of a random network
NETWORK_SCALE = 1.5  # deviation of what a network adds to a score


@dataclass(frozen=True)
class MixedNetwork:
    """Half of the columns of a random graph have levels; the others are measurements.

    Attributes:
        num_variables: columns.
        edges_per_node: expected number of parents, on average.
        functions: "lines"; "curves": each measurement acts through a bent function; "networks":
            parents act together, measurements and indicators of levels, through a random network.
        num_train: rows to learn from.
        num_test: fresh rows.
    """

    description: ClassVar[str] = "a random graph, half of its columns binary, ordinal, categorical"

    num_variables: int = 8
    edges_per_node: float = 1.0
    functions: str = "lines"
    num_train: int = 1000
    num_test: int = 500

    def __post_init__(self) -> None:
        if self.num_variables < 2 or self.num_train < 20:
            raise InputError("a mixed network has 2 or more variables and 20 or more rows")
        if self.functions not in FUNCTIONS:
            raise InputError(f"functions is {self.functions!r}; it is {', '.join(FUNCTIONS)}")

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return self.num_variables, self.num_train

    def __call__(self, seed: int = 0) -> Benchmark:
        """Graph, functions and rows of this seed."""
        rng = stream(seed, "mixed_network")
        d = self.num_variables
        density = min(1.0, 2 * self.edges_per_node / (d - 1))
        order = rng.permutation(d)
        graph = np.zeros((d, d), dtype=np.int8)
        graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < density, 1)
        kinds = half_levels(rng, d)
        rows = np.zeros((self.num_train + self.num_test, d))
        for j in order:
            rows[:, j] = self._column(rng, rows, np.flatnonzero(graph[:, j]), kinds, kinds[j])
        names = tuple(f"v{j}" for j in range(d))
        train = Dataset(rows[: self.num_train], names, kinds=kinds)
        test = None
        if self.num_test:
            test = Dataset(rows[self.num_train :], names, None, train.scaling, kinds=kinds)
        return Benchmark(
            train=train,
            graph=graph,
            test=test,
            description=self.description,
            provenance={"dataset": plugins.configuration(self), "seed": seed},
        )

    def _column(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        parents: np.ndarray,
        kinds: tuple[Kind, ...],
        own: Kind,
    ) -> np.ndarray:
        """A measurement, ordered levels by thresholds, or others by the largest of scores."""
        outputs = len(own.levels) if own.name == "categorical" else 1
        score = np.zeros((len(rows), outputs))
        if self.functions == "networks" and len(parents):
            score += _network(rng, rows[:, parents], [kinds[i] for i in parents], outputs)
        else:
            for i in parents:
                score += self._influence(rng, rows[:, i], kinds[i], outputs)
        if own.name == "categorical":
            return (score + rng.gumbel(size=score.shape)).argmax(axis=1).astype(float)
        if own.is_discrete:
            latent = score[:, 0] + rng.logistic(size=len(rows))
            inner = np.quantile(latent, np.arange(1, len(own.levels)) / len(own.levels))
            return np.searchsorted(inner, latent).astype(float)
        value = score[:, 0] + 0.7 * rng.standard_normal(len(rows))
        return (value - value.mean()) / value.std()

    def _influence(
        self, rng: np.random.Generator, cause: np.ndarray, kind: Kind, outputs: int
    ) -> np.ndarray:
        """Of one parent on every score: an effect of each level, a line or a bent function."""
        size = rng.uniform(*WEIGHTS, outputs) * rng.choice([-1, 1], outputs)
        if not kind.is_discrete:
            curved = self.functions == "curves"
            bent = np.tanh(2 * cause) + 0.5 * cause**2 - 0.5 if curved else cause
            return bent[:, None] * size
        effects = rng.standard_normal((len(kind.levels), outputs))
        effects = (effects - effects.mean(axis=0)) / effects.std(axis=0)
        return effects[cause.astype(int)] * np.abs(size)


def _network(
    rng: np.random.Generator, causes: np.ndarray, kinds: list[Kind], outputs: int
) -> np.ndarray:
    """Scores by one hidden layer that reads measurements and indicators of levels together."""
    inputs = [
        2.0 * (causes[:, [j]] == np.arange(len(kind.levels)))
        if kind.is_discrete
        else causes[:, [j]]
        for j, kind in enumerate(kinds)
    ]
    read = np.concatenate(inputs, axis=1)
    first = 1.5 * rng.standard_normal((read.shape[1], HIDDEN_UNITS))
    hidden = np.tanh(read @ first + rng.standard_normal(HIDDEN_UNITS))
    score = hidden @ rng.standard_normal((HIDDEN_UNITS, outputs))
    deviation = np.maximum(score.std(axis=0), 1e-3)
    return NETWORK_SCALE * (score - score.mean(axis=0)) / deviation


build = MixedNetwork
