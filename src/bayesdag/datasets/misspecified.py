"""Data whose noise is not what a model with additive noise expects.

Graphs, functions and noise scales are those of `Synthetic` with the same settings and seed, but
for kinetics; what differs is how noise enters. They show how wrong a model goes that is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._truth import Truth
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError
from bayesdag.graphs import topological_order

_STREAM = 777  # beside the seed: not the numbers that made the graph
_Rows = Float[np.ndarray, " n"]


class _Node(NamedTuple):
    """Parents and mechanism of a variable.

    Attributes:
        number: of the variable.
        mean: its function of the parents.
        parents: their columns.
        scale: standard deviation of its noise.
    """

    number: int
    mean: _Rows
    parents: Float[np.ndarray, "n k"]
    scale: float


def _growing(rng: np.random.Generator, node: _Node) -> _Rows:
    """Noise whose scale grows with the mean."""
    standard = (node.mean - node.mean.mean()) / (node.mean.std() + 1e-9)
    noise = rng.standard_normal(len(node.mean))
    return node.mean + node.scale * np.exp(0.6 * standard) * noise


def _lognormal(rng: np.random.Generator, node: _Node) -> _Rows:
    """Additive, but skewed."""
    noise = np.exp(0.7 * rng.standard_normal(len(node.mean))) - np.exp(0.245)
    return node.mean + node.scale * noise


def _bent(rng: np.random.Generator, node: _Node) -> _Rows:
    """Measured through a nonlinear scale, every other variable expanding and compressing."""
    standard = _standardised(rng, node)
    return np.sinh(0.8 * standard) if node.number % 2 else np.arcsinh(2 * standard)


def _saturated(rng: np.random.Generator, node: _Node) -> _Rows:
    """Measured through a scale that saturates, or is steepest at its middle."""
    standard = _standardised(rng, node)
    if node.number % 2:
        return np.sign(standard) * np.abs(standard) ** 0.5
    return np.tanh(1.2 * standard)


def _kinetics(rng: np.random.Generator, node: _Node) -> _Rows:
    """Products of Hill functions with noise that multiplies: concentrations, all positive."""
    num_rows, num_parents = node.parents.shape
    if num_parents == 0:
        return np.exp(0.5 * rng.standard_normal(num_rows))
    value = np.ones(num_rows)
    for column in node.parents.T:
        half, power = np.exp(0.3 * rng.standard_normal()), rng.uniform(1, 4)
        bound = column**power / (half**power + column**power)
        value *= bound + 0.05 if rng.random() < 0.6 else 1.05 - bound
    return value / value.mean() * np.exp(0.3 * rng.standard_normal(num_rows))


def _standardised(rng: np.random.Generator, node: _Node) -> _Rows:
    value = node.mean + node.scale * rng.standard_normal(len(node.mean))
    return (value - value.mean()) / value.std()


KINDS: dict[str, Callable[[np.random.Generator, _Node], _Rows]] = {
    "growing scatter": _growing,
    "lognormal noise": _lognormal,
    "bent scales": _bent,
    "saturated scales": _saturated,
    "kinetics": _kinetics,
}


@dataclass(frozen=True)
class Misspecified:
    """Rows of a random model whose noise is not additive, Gaussian or of one scale.

    Attributes:
        kind: "growing scatter" (noise scale grows with the mean), "lognormal noise", "bent
            scales" and "saturated scales" (measured through a nonlinear scale), or "kinetics".
        num_variables: number of columns.
        edges_per_node: of an Erdős–Rényi graph.
        num_train: rows to learn from.
    """

    description: ClassVar[str] = "random graph, noise that additive models do not expect"

    kind: str = "growing scatter"
    num_variables: int = 6
    edges_per_node: int = 1
    num_train: int = 500

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"no kind is called {self.kind!r}; there are: {', '.join(KINDS)}")

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return self.num_variables, self.num_train

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed; other seeds give independent ones."""
        source = Synthetic(
            num_variables=self.num_variables,
            edges_per_node=self.edges_per_node,
            num_train=self.num_train,
            num_test=0,
        )(seed)
        assert source.truth is not None
        values = self._rows(source.truth, np.random.default_rng([seed, _STREAM]))
        return Benchmark(
            train=Dataset(values, source.train.names),
            graph=source.graph,
            description=self.description,
            provenance={"dataset": plugins.configuration(self), "seed": seed},
        )

    def _rows(self, truth: Truth, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        x = np.zeros((self.num_train, self.num_variables))
        for j in topological_order(truth.graph).tolist():
            parents = x[:, truth.graph[:, j] != 0]
            mean = truth.functions[j](parents)
            node = _Node(j, mean, parents, float(truth.noise_scale[j]))
            x[:, j] = KINDS[self.kind](rng, node)
        return x


build = Misspecified
