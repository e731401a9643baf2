"""Negative binomial counts: cumulative probabilities and quantiles against another library."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import nbinom

from bayesdag.model import count_quantiles

cumulative = jax.jit(count_quantiles.cumulative)
quantile = jax.jit(count_quantiles.quantile)


@pytest.mark.parametrize(("r", "mean"), [(0.3, 2.0), (4.0, 0.1), (20.0, 30.0), (200.0, 100.0)])
def test_small_counts_are_exact(r, mean):
    counts = np.arange(0, 40, dtype=np.float32)
    means = jnp.full(40, mean, jnp.float32)
    exact = nbinom.cdf(counts, r, r / (r + mean))
    found = cumulative(jnp.float32(r), means, jnp.asarray(counts))
    np.testing.assert_allclose(found, exact, atol=2e-5)
    u = (np.arange(40) + 0.5) / 40
    drawn = quantile(jnp.float32(r), means, jnp.asarray(u, jnp.float32))
    np.testing.assert_array_equal(drawn, nbinom.ppf(u, r, r / (r + mean)))


def test_large_counts_are_near_enough():
    u = np.linspace(0.01, 0.99, 50)
    means = jnp.full(50, 5e4, jnp.float32)
    drawn = quantile(jnp.float32(4.0), means, jnp.asarray(u, jnp.float32))
    np.testing.assert_allclose(drawn, nbinom.ppf(u, 4.0, 4 / (4 + 5e4)), rtol=0.03)


def test_nothing_is_below_zero():
    found = cumulative(jnp.float32(1.0), jnp.ones(2), jnp.array([-1.0, 0.0]))
    np.testing.assert_allclose(found, [0, 0.5], atol=1e-6)
