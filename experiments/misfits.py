"""Data whose noise is not what a model with additive noise expects: how wrong does it go?

Graphs, functions and noise scales are those of `Synthetic`, but for kinetics; what differs is
how noise enters. Used to choose what the learned score takes for granted.
"""

from collections.abc import Callable

import numpy as np

from bayesdag.data import Dataset
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.graphs import topological_order

Rule = Callable[[np.random.Generator, np.ndarray, np.ndarray, float, int], np.ndarray]


def _growing(rng: np.random.Generator, mean: np.ndarray, _: np.ndarray, scale: float, __: int):
    """Scatter that grows with the mean."""
    standard = (mean - mean.mean()) / (mean.std() + 1e-9)
    return mean + scale * np.exp(0.6 * standard) * rng.standard_normal(len(mean))


def _lognormal(rng: np.random.Generator, mean: np.ndarray, _: np.ndarray, scale: float, __: int):
    """Additive, but skewed."""
    return mean + scale * (np.exp(0.7 * rng.standard_normal(len(mean))) - np.exp(0.245))


def _bent(rng: np.random.Generator, mean: np.ndarray, _: np.ndarray, scale: float, node: int):
    """Measured through a bent scale, every other variable expanding and compressing."""
    standard = _standard_value(rng, mean, scale)
    return np.sinh(0.8 * standard) if node % 2 else np.arcsinh(2 * standard)


def _saturated(rng: np.random.Generator, mean: np.ndarray, _: np.ndarray, scale: float, node: int):
    """Measured through a scale that saturates, or is steepest at its middle."""
    standard = _standard_value(rng, mean, scale)
    return np.sign(standard) * np.abs(standard) ** 0.5 if node % 2 else np.tanh(1.2 * standard)


def _kinetics(rng: np.random.Generator, _: np.ndarray, parents: np.ndarray, __: float, ___: int):
    """Products of Hill functions with noise that multiplies: concentrations, all positive."""
    num_rows, num_parents = parents.shape
    if num_parents == 0:
        return np.exp(0.5 * rng.standard_normal(num_rows))
    value = np.ones(num_rows)
    for column in parents.T:
        half, power = np.exp(0.3 * rng.standard_normal()), rng.uniform(1, 4)
        bound = column**power / (half**power + column**power)
        value *= bound + 0.05 if rng.random() < 0.6 else 1.05 - bound
    return value / value.mean() * np.exp(0.3 * rng.standard_normal(num_rows))


def _standard_value(rng: np.random.Generator, mean: np.ndarray, scale: float) -> np.ndarray:
    value = mean + scale * rng.standard_normal(len(mean))
    return (value - value.mean()) / value.std()


KINDS: dict[str, Rule] = {
    "growing scatter": _growing,
    "lognormal noise": _lognormal,
    "bent scales": _bent,
    "saturated scales": _saturated,
    "kinetics": _kinetics,
}


def misfit(kind: str, generator: Synthetic, seed: int) -> tuple[Dataset, np.ndarray]:
    """Rows of one kind, and their graph."""
    source = generator(seed)
    truth, rng = source.truth, np.random.default_rng([seed, 777])
    x = np.zeros(source.train.values.shape)
    for j in topological_order(source.graph).tolist():
        parents = x[:, source.graph[:, j] != 0]
        mean, scale = truth.functions[j](parents), float(truth.noise_scale[j])
        x[:, j] = KINDS[kind](rng, mean, parents, scale, j)
    return Dataset(x, source.train.names), source.graph
