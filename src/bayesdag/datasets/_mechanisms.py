"""Random functions of a node's parents, each drawn once and then fixed.

A family is a function `(rng, num_parents) -> Function`; the function takes any number of
rows, so that interventional rows come from the very same model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Float32

from bayesdag.datasets._truth import Function

HIDDEN_UNITS = 5  # the paper's networks
NUM_FEATURES = 100  # kernel error of the Fourier approximation: about 1 / sqrt(100)
CHUNK = 512  # rows whose cosines stay in the cache of one core

Parents = Float[np.ndarray, "n k"]
Means = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class LinearFunctions:
    """Weighted sum of the parents."""

    weights: Float[np.ndarray, " k"]
    intercept: float = 0.0

    def __call__(self, parents: Parents) -> Means:
        """Means of the child."""
        return parents @ self.weights + self.intercept


@dataclass(frozen=True)
class NetworkFunctions:
    """One hidden layer of ReLU units without bias."""

    first: Float[np.ndarray, "k h"]
    second: Float[np.ndarray, " h"]

    def __call__(self, parents: Parents) -> Means:
        """Means of the child."""
        return np.maximum(parents @ self.first, 0) @ self.second


@dataclass(frozen=True)
class Fourier:
    """Sum of cosines: a draw of a Gaussian process with a squared-exponential kernel."""

    frequencies: Float32[np.ndarray, "k h"]
    phases: Float32[np.ndarray, " h"]
    amplitudes: Float32[np.ndarray, " h"]

    def __call__(self, parents: Parents) -> Means:
        """Means of the child, to six digits: a cosine in float32 costs a tenth."""
        means = np.empty(len(parents))
        for start in range(0, len(parents), CHUNK):
            rows = slice(start, start + CHUNK)
            angles = parents[rows].astype(np.float32) @ self.frequencies
            angles += self.phases
            means[rows] = np.cos(angles, out=angles) @ self.amplitudes
        return means


@dataclass(frozen=True)
class Sigmoids:
    """Sum over the parents of a b (x + c) / (1 + |b (x + c)|)."""

    height: Float[np.ndarray, " k"]
    slope: Float[np.ndarray, " k"]
    shift: Float[np.ndarray, " k"]

    def __call__(self, parents: Parents) -> Means:
        """Means of the child."""
        scaled = self.slope * (parents + self.shift)
        return (scaled / (1 + np.abs(scaled))) @ self.height


@dataclass(frozen=True)
class AdditiveFunctions:
    """Sum of one function a parent."""

    parts: tuple[Function, ...]

    def __call__(self, parents: Parents) -> Means:
        """Means of the child."""
        columns = (part(parents[:, [i]]) for i, part in enumerate(self.parts))
        return sum(columns, start=np.zeros(len(parents)))


@dataclass(frozen=True)
class ProductFunctions:
    """Weighted sum of products of the parents; no parent acts but through a product."""

    groups: tuple[tuple[int, ...], ...]
    weights: Float[np.ndarray, " g"]

    def __call__(self, parents: Parents) -> Means:
        """Means of the child."""
        products = (parents[:, list(group)].prod(axis=1) for group in self.groups)
        return np.column_stack(list(products)) @ self.weights


def zero(parents: Parents) -> Means:
    """Mean of a variable without parents."""
    return np.zeros(len(parents))


def linear(rng: np.random.Generator, num_parents: int, signed: bool = False) -> LinearFunctions:
    """Weights from U(0.5, 1.5), as published; `signed` turns half of them negative."""
    weights = rng.uniform(0.5, 1.5, num_parents)
    return LinearFunctions(weights * rng.choice([-1.0, 1.0], num_parents) if signed else weights)


def mlp(rng: np.random.Generator, num_parents: int) -> NetworkFunctions:
    """The paper's network: five units, standard normal weights."""
    shape = (num_parents, HIDDEN_UNITS)
    return NetworkFunctions(rng.standard_normal(shape), rng.standard_normal(HIDDEN_UNITS))


def gaussian_process(rng: np.random.Generator, num_parents: int) -> Fourier:
    """A draw of variance 1 and length scale sqrt(number of parents).

    Typical points lie that far apart, so the functions of many parents are neither flat
    nor noise. Random Fourier features (Rahimi and Recht, 2007).
    """
    frequencies = rng.standard_normal((num_parents, NUM_FEATURES)) / num_parents**0.5
    phases = rng.uniform(0, 2 * np.pi, NUM_FEATURES)
    amplitudes = rng.standard_normal(NUM_FEATURES) * (2 / NUM_FEATURES) ** 0.5
    return Fourier(*(part.astype(np.float32) for part in (frequencies, phases, amplitudes)))


def sigmoid(rng: np.random.Generator, num_parents: int) -> Sigmoids:
    """Heights 1 + Exp(rate 4), slopes ±U(0.5, 2), shifts U(-2, 2).

    The additive model of Bühlmann, Peters and Ernest, "CAM" (2014).
    """
    signs = rng.choice([-1.0, 1.0], num_parents)
    return Sigmoids(
        height=1 + rng.exponential(1 / 4, num_parents),
        slope=signs * rng.uniform(0.5, 2, num_parents),
        shift=rng.uniform(-2, 2, num_parents),
    )


def additive(rng: np.random.Generator, num_parents: int) -> AdditiveFunctions:
    """One draw of a Gaussian process of length scale 1 for each parent."""
    return AdditiveFunctions(tuple(gaussian_process(rng, 1) for _ in range(num_parents)))


def products(rng: np.random.Generator, num_parents: int, size: int) -> ProductFunctions:
    """Parents in random groups of `size`, multiplied; weights ±U(0.5, 1.5).

    Parents that are left over join others in a group of their own; fewer than `size` make one
    group. So one parent alone acts linearly, and of several none has an effect where another
    is zero: what looks at one parent at a time sees nothing.
    """
    order = rng.permutation(num_parents).tolist()
    groups = [order[start : start + size] for start in range(0, num_parents, size)]
    if len(groups) > 1 and len(groups[-1]) < size:
        groups[-1] += order[: size - len(groups[-1])]
    return ProductFunctions(
        tuple(tuple(sorted(group)) for group in groups),
        rng.uniform(0.5, 1.5, len(groups)) * rng.choice([-1.0, 1.0], len(groups)),
    )


FAMILIES: dict[str, Callable[[np.random.Generator, int], Function]] = {
    "linear": linear,
    "signed_linear": partial(linear, signed=True),
    "mlp": mlp,
    "gp": gaussian_process,
    "sigmoid": sigmoid,
    "additive": additive,
    "products_of_two": partial(products, size=2),
    "products_of_three": partial(products, size=3),
}
