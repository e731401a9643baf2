"""Noise models: densities that integrate to one, samples that follow them, finite gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.noises.student_t import StudentT

every_noise = pytest.mark.parametrize("noise", [Gaussian(), StudentT()], ids=["gaussian", "t"])


def params_of(noise, key):
    params = noise.init(key, 2)
    return params | {"log_scale": jnp.array([-0.5, 0.7])}


@every_noise
def test_the_density_integrates_to_one(noise, key):
    grid = np.linspace(-400, 400, 400_001)
    rows = jnp.asarray(np.stack([grid, grid], axis=1), jnp.float32)
    density = np.exp(np.asarray(noise.log_prob(params_of(noise, key), rows), np.float64))
    np.testing.assert_allclose(integrate.simpson(density, x=grid, axis=0), 1, atol=2e-3)


@every_noise
def test_samples_follow_the_density(noise, key):
    params = params_of(noise, key)
    drawn = np.asarray(noise.sample(params, key, (4000, 2)), np.float64)
    grid = np.linspace(-400, 400, 400_001)
    rows = jnp.asarray(np.stack([grid, grid], axis=1), jnp.float32)
    density = np.exp(np.asarray(noise.log_prob(params, rows), np.float64))
    for k in range(2):
        below = integrate.cumulative_simpson(density[:, k], x=grid, initial=0)
        result = stats.kstest(drawn[:, k], lambda v, below=below: np.interp(v, grid, below))
        assert result.pvalue > 1e-4


@every_noise
def test_the_gradient_is_finite_at_zero(noise, key):
    params = params_of(noise, key)
    grad = jax.grad(lambda p: noise.log_prob(p, jnp.zeros((1, 2))).sum())(params)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(grad))
