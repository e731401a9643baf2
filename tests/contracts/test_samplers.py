"""What every sampler promises, present and future: proven on targets that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.types import Sampler

ALL = [plugins.load("samplers", name)() for name in plugins.names("samplers")]
every_sampler = pytest.mark.parametrize("sampler", ALL, ids=plugins.names("samplers"))

# Correlated and asymmetric: a swapped axis or a wrong sign shows.
MEAN = np.array([0.3, -0.2], dtype=np.float32)
COVARIANCE = np.array([[0.01, 0.006], [0.006, 0.0075]], dtype=np.float32)
PRECISION = np.linalg.inv(COVARIANCE)
NUM_CHAINS, NUM_STEPS, NUM_WARMUP = 256, 6000, 2000


def gaussian_grad(position):
    """Gradient of the energy of N(MEAN, COVARIANCE), the position split over two leaves."""
    x = jnp.stack([position["first"], position["second"]])
    grad = jnp.asarray(PRECISION) @ (x - jnp.asarray(MEAN))
    return {"first": grad[0], "second": grad[1]}


def run(sampler, key, num_steps, grad=gaussian_grad):
    """Positions of one chain after every step."""
    start = {"first": jnp.asarray(0.3), "second": jnp.asarray(-0.2)}

    def step(state, key):
        state = sampler.step(key, state, grad(state.position))
        return state, jnp.stack(jax.tree.leaves(state.position))

    return jax.lax.scan(step, sampler.init(start), jax.random.split(key, num_steps))[1]


@every_sampler
def test_it_is_a_sampler_and_keeps_the_structure_of_its_state(sampler, key):
    assert isinstance(sampler, Sampler)
    position = {"a": jnp.ones((3, 2)), "b": (jnp.zeros(4),)}
    state = sampler.init(position)
    after = sampler.step(key, state, position)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert [x.shape for x in jax.tree.leaves(after)] == [x.shape for x in jax.tree.leaves(state)]
    assert [x.dtype for x in jax.tree.leaves(after)] == [x.dtype for x in jax.tree.leaves(state)]


@every_sampler
def test_moments_of_a_correlated_gaussian_are_right(sampler, key):
    keys = jax.random.split(key, NUM_CHAINS)
    draws = jax.jit(jax.vmap(lambda key: run(sampler, key, NUM_STEPS)))(keys)
    draws = np.asarray(draws[:, NUM_WARMUP:], dtype=np.float64) - MEAN
    products = np.einsum("csi,csj->cij", draws, draws) / draws.shape[1]
    for by_chain, truth in ((draws.mean(axis=1), 0.0), (products, COVARIANCE)):
        # Chains are independent, so their spread is the error bar.
        error = by_chain.std(axis=0) / NUM_CHAINS**0.5
        assert (np.abs(by_chain.mean(axis=0) - truth) < 4 * error).all()
        assert (error < 0.1 * np.abs(truth).max() + 0.002).all(), "the test would see nothing"


@every_sampler
def test_the_noise_scale_is_the_root_of_the_temperature(sampler, key):
    import dataclasses

    cold = dataclasses.replace(sampler, noise_scale=0.5)
    keys = jax.random.split(key, NUM_CHAINS)
    draws = jax.jit(jax.vmap(lambda key: run(cold, key, NUM_STEPS)))(keys)
    by_chain = (
        np.asarray(draws[:, NUM_WARMUP:]).var(axis=(1,))
        + (np.asarray(draws[:, NUM_WARMUP:]).mean(axis=1) - MEAN) ** 2
    )
    error = by_chain.std(axis=0) / NUM_CHAINS**0.5
    assert (np.abs(by_chain.mean(axis=0) - 0.25 * np.diag(COVARIANCE)) < 4 * error).all()


@every_sampler
def test_it_compiles_once(sampler, key):
    traces = []

    @jax.jit
    def step(key, state):
        traces.append(1)
        return sampler.step(key, state, gaussian_grad(state.position))

    state = sampler.init({"first": jnp.zeros(()), "second": jnp.zeros(())})
    for _ in range(3):
        state = step(key, state)
    assert len(traces) == 1


@every_sampler
def test_no_noise_and_no_gradient_means_no_motion(sampler, key):
    import dataclasses

    still = dataclasses.replace(sampler, noise_scale=0.0)
    position = {"a": jnp.arange(3.0)}
    state = still.step(key, still.init(position), {"a": jnp.zeros(3)})
    np.testing.assert_array_equal(state.position["a"], position["a"])
