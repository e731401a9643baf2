"""The posterior of BCD Nets' own model, against plain quadrature."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad, trapezoid

from bayesdag.baselines.bcd import NOISE_RATE, NOISE_SHAPE, log_horseshoe
from bayesdag.bench.horseshoe import HorseshoeOrders
from bayesdag.data import read
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.scores._sufficient_statistics import rows_of


def fitted(values, **settings):
    data = read(values, scaling="centre")
    return HorseshoeOrders(**settings)(jax.random.key(0), data, Constraints.free(data.names), None)


def pair(seed: int, num_rows: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=num_rows)
    return np.column_stack([x, 0.35 * x + 0.8 * rng.normal(size=num_rows)])


def by_quadrature(x, y, scale, threshold):
    """Evidence of y given x, and the probability of a weight above the threshold."""
    x, y = x - x.mean(), y - y.mean()
    weights = np.linspace(-1.5, 1.5, 6001)  # an even distance from the singular density at 0
    weights = weights + 0.5 * (weights[1] - weights[0])
    left = ((y[:, None] - x[:, None] * weights) ** 2).sum(axis=0)
    n = len(x)

    def noise(log_scale: float, square: float) -> float:
        prior = -2 * NOISE_SHAPE * log_scale - NOISE_RATE * np.exp(-2 * log_scale)
        return np.exp(prior - n * log_scale - 0.5 * square * np.exp(-2 * log_scale))

    grid = np.linspace(-1.5, 1.0, 400)
    over_noise = trapezoid(noise(grid[:, None], left[None, :]), grid, axis=0)
    density = np.exp(np.asarray(log_horseshoe(weights, scale), float)) * over_noise
    total = trapezoid(density, weights)
    alone = quad(noise, -1.5, 1.5, args=(float(y @ y),))[0]
    return total, alone, trapezoid(density * (np.abs(weights) > threshold), weights) / total


def test_orders_and_edges_of_a_pair_are_those_of_quadrature(seed):
    values = pair(seed)
    found = fitted(values, num_samples=20_000)
    x, y = values.T
    forward, y_alone, edge = by_quadrature(x, y, 0.1, 0.3)
    backward, x_alone, edge_back = by_quadrature(y, x, 0.1, 0.3)
    first = forward * x_alone / (forward * x_alone + backward * y_alone)
    probability = found.edge_matrix()
    assert probability[0, 1] == pytest.approx(first * edge, abs=0.02)
    assert probability[1, 0] == pytest.approx((1 - first) * edge_back, abs=0.02)


def test_most_points_of_a_regression_count(seed):
    data = read(pair(seed, 300), scaling="centre")
    moments = rows_of(data.scaled, data.observed)
    found = HorseshoeOrders().regression(np.random.default_rng(seed), moments, 1, (0,))
    effective = 1 / (found.probability**2).sum()
    assert effective > 0.5 * len(found.probability)


def test_too_many_variables_are_refused():
    with pytest.raises(InputError, match="7 variables have too many orders"):
        fitted(np.random.default_rng(0).normal(size=(80, 7)))
