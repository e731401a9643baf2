"""Noise of the generators: independent draws of mean 0 and variance 1, by name.

Heteroscedastic noise is Gaussian noise whose scale depends on the parents.
"""

import numpy as np

from bayesdag.datasets._truth import Draws, Function

DEGREES_OF_FREEDOM = 5  # heavy tails with a finite kurtosis (9)


def gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal draws."""
    return rng.standard_normal(shape)


def laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Laplace draws; a scale b has variance 2 b²."""
    return rng.laplace(scale=np.sqrt(0.5), size=shape)


def student_t(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Student-t draws; v degrees of freedom have variance v / (v - 2)."""
    unit = np.sqrt((DEGREES_OF_FREEDOM - 2) / DEGREES_OF_FREEDOM)
    return unit * rng.standard_t(DEGREES_OF_FREEDOM, shape)


def uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform draws; a width w has variance w² / 12."""
    return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Exponential draws, centred: skewed to one side."""
    return rng.exponential(size=shape) - 1


def scale(rng: np.random.Generator, num_parents: int) -> Function:
    """Factor of the noise scale: a smooth step along a random direction, 1/e to e."""
    direction = rng.standard_normal(num_parents) / np.sqrt(max(num_parents, 1))
    return lambda parents: np.exp(np.tanh(parents @ direction))


HETEROSCEDASTIC = "heteroscedastic"
NOISES: dict[str, Draws] = {
    "gaussian": gaussian,
    "laplace": laplace,
    "student_t": student_t,
    "uniform": uniform,
    "exponential": exponential,
    HETEROSCEDASTIC: gaussian,
}
