"""Mini-batch noise is part of the temperature, not added to it (Gaussian mean, N = 5000)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC
from bayesdag.sgmcmc.samplers.sgld import SGLD

NUM_ROWS, BATCH, NUM_TILES = 5000, 512, 8
NUM_CHAINS, NUM_STEPS, NUM_WARMUP = 512, 3000, 600


def variance_ratio(sampler, key, correct):
    """Sampled variance of the mean over its posterior variance, and its standard error."""
    x = jax.random.normal(jax.random.key(1), (NUM_ROWS,))
    posterior_variance = 1 / (NUM_ROWS + 1)  # unit noise, prior N(0, 1)
    posterior_mean = x.sum() * posterior_variance

    def step(state, key):
        key_rows, key_noise = jax.random.split(key)
        rows = x[jax.random.randint(key_rows, (BATCH,), 0, NUM_ROWS)]  # with replacement: no sort
        tiles = (NUM_ROWS / BATCH) * (state.position - rows).reshape(NUM_TILES, -1).sum(axis=1)
        grad = tiles.sum() + state.position
        spread = NUM_TILES * tiles.var(ddof=1) if correct else None
        state = sampler.step(key_noise, state, grad, spread)
        return state, state.position

    def chain(key):
        start = sampler.init(posterior_mean)
        return jax.lax.scan(step, start, jax.random.split(key, NUM_STEPS))[1]

    draws = jax.jit(jax.vmap(chain))(jax.random.split(key, NUM_CHAINS))
    squares = np.asarray((draws[:, NUM_WARMUP:] - posterior_mean) ** 2).mean(axis=1)
    ratio = squares / posterior_variance
    return ratio.mean(), ratio.std() / NUM_CHAINS**0.5


# The step of SGLD must be small against 2 / 5001, the inverse curvature.
SAMPLERS = [AdamSGHMC(num_adapt=NUM_WARMUP), SGLD(step_size=1e-5)]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS, ids=["adam_sghmc", "sgld"])
def test_mini_batches_leave_the_temperature_at_one(sampler, key):
    ratio, error = variance_ratio(sampler, key, correct=True)
    assert error < 0.0125, "too noisy to see the heat of mini-batches"
    assert abs(ratio - 1) < 0.05 + 2 * error


@pytest.mark.slow
def test_without_the_correction_mini_batches_heat_the_chain(key):
    ratio, error = variance_ratio(SAMPLERS[0], key, correct=False)
    assert ratio - 4 * error > 1.1


def test_noise_that_cannot_be_taken_out_is_reported(key):
    sampler = AdamSGHMC()
    state = sampler.init(jnp.zeros(4))
    spread = jnp.array([0.0, 1.0, 1e9, 1e9])
    state = sampler.step(key, state, jnp.zeros(4), spread)
    assert float(sampler.clipped_share(state)) == 0.5


@pytest.mark.parametrize(("damping", "inner", "gain"), [(1.0, 0.0, 1.0), (1e-8, 1e-8, 100.0)])
def test_both_published_gains_are_settings(damping, inner, gain):
    sampler = AdamSGHMC(damping=damping, inner_damping=inner)
    assert float(sampler._gain(jnp.zeros(()))) == pytest.approx(gain, rel=1e-3)


def test_one_step_is_the_printed_formula(key):
    """Appendix "SG-MCMC Update", noise off, second step so that momentum counts."""
    sampler = AdamSGHMC(noise_scale=0.0)
    step, b1, b2 = sampler.step_size, 0.9, 0.99
    x, r, v = 1.0, 0.0, 0.0
    state = sampler.init(jnp.asarray(x))
    for grad in (3.0, -2.0):
        v = b2 * v + (1 - b2) * grad**2
        g = 1 / np.sqrt(1 + np.sqrt(v))
        r = b1 * r - step * g * grad
        x = x + step * g * r
        state = sampler.step(key, state, jnp.asarray(grad))
    assert float(state.position) == pytest.approx(x, rel=1e-6)


def test_the_injected_noise_has_the_printed_variance(key):
    sampler = dataclasses.replace(AdamSGHMC(), noise_scale=0.7)
    state = sampler.step(key, sampler.init(jnp.zeros(200_000)), jnp.zeros(200_000))
    wanted = 0.7**2 * 2 * sampler.step_size * (0.1 / sampler.step_size - sampler.step_size / 2)
    assert float(state.momentum.var()) == pytest.approx(wanted, rel=4 * (2 / 200_000) ** 0.5)
