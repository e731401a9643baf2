"""What every noise model promises: densities that integrate to one, samples that follow them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from bayesdag import plugins
from bayesdag.types import Noise

ALL = [plugins.load("noises", name)() for name in plugins.names("noises")]
every_noise = pytest.mark.parametrize("noise", ALL, ids=plugins.names("noises"))
GRID = np.linspace(-400, 400, 400_001)


def params_of(noise, key):
    """Unequal scales, so that a variable that reads another's scale shows."""
    return noise.init(key, 2) | {"log_scale": jnp.array([-0.5, 0.7])}


def density_on_grid(noise, params):
    rows = jnp.asarray(np.stack([GRID, GRID], axis=1), jnp.float32)
    return np.exp(np.asarray(jax.jit(noise.log_prob)(params, rows), np.float64))


@every_noise
def test_it_is_a_noise_model(noise):
    assert isinstance(noise, Noise)


@every_noise
def test_the_density_integrates_to_one(noise, key):
    density = density_on_grid(noise, params_of(noise, key))
    np.testing.assert_allclose(integrate.simpson(density, x=GRID, axis=0), 1, atol=2e-3)


@every_noise
def test_samples_follow_the_density(noise, key):
    params = params_of(noise, key)
    drawn = np.asarray(jax.jit(noise.sample, static_argnums=2)(params, key, (4000, 2)), np.float64)
    density = density_on_grid(noise, params)
    for k in range(2):
        below = integrate.cumulative_simpson(density[:, k], x=GRID, initial=0)
        result = stats.kstest(drawn[:, k], lambda v, below=below: np.interp(v, GRID, below))
        assert result.pvalue > 1e-4


@every_noise
def test_the_gradient_is_finite_at_zero(noise, key):
    params = params_of(noise, key)
    grad = jax.jit(jax.grad(lambda p: noise.log_prob(p, jnp.zeros((1, 2))).sum()))(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grad))
