"""Warm-up by population annealing: who survives, and what goes along with a survivor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.sgmcmc import annealing
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC

HEAT, WARMUP = 1000.0, 400


def share(step):
    return float(annealing.likelihood_power(HEAT, WARMUP, jnp.asarray(step)))


def survivors(key, step, energy):
    return annealing.survivors(key, HEAT, WARMUP, jnp.asarray(step), jnp.asarray(energy))


def test_the_data_count_more_and_more_until_half_of_the_warmup():
    shares = [share(step) for step in range(0, WARMUP, 20)]
    assert shares[0] == pytest.approx(1 / HEAT, rel=1e-4)
    assert shares[:11] == sorted(set(shares[:11]))
    assert shares[10:] == [1.0] * 10


def test_a_start_without_heat_leaves_the_data_alone():
    assert annealing.likelihood_power(1.0, WARMUP, jnp.asarray(0)) == 1.0


@pytest.mark.parametrize("step", [0, 3, 199, 204, 300])
def test_between_stages_and_after_the_heat_every_chain_stays(key, step):
    energy = 1e4 * jnp.arange(5.0)
    np.testing.assert_array_equal(survivors(key, step, energy), np.arange(5))


def test_chains_that_are_equally_good_all_survive(key):
    np.testing.assert_array_equal(survivors(key, 200, jnp.full(7, 123.0)), np.arange(7))


def test_a_chain_far_better_than_all_others_takes_every_place(key):
    energy = jnp.asarray([9e5, 8e5, 1e5, 7e5])
    np.testing.assert_array_equal(survivors(key, 200, energy), np.full(4, 2))


def test_survivors_are_as_many_as_the_gain_in_likelihood_says(key):
    energy = np.array([0.0, 10.0, 20.0, 40.0])
    gained = share(200) - share(196)
    weights = np.exp(-gained * energy) / np.exp(-gained * energy).sum()
    chosen = jax.vmap(lambda k: survivors(k, 200, energy))(jax.random.split(key, 4000))
    counts = np.stack([np.sum(np.asarray(chosen) == k, axis=1) for k in range(4)], axis=1)
    error = counts.std(axis=0) / len(counts) ** 0.5
    assert np.all(np.abs(counts.mean(axis=0) - 4 * weights) <= 5 * error + 1e-6)


def test_all_that_belongs_to_a_chain_goes_along(key):
    sampler = AdamSGHMC()
    chosen = jnp.asarray([2, 2, 0])
    position = {"a": jnp.arange(6.0).reshape(3, 2), "b": jnp.arange(3.0)}
    grad = jax.tree.map(lambda x: 1 + x**2, position)
    state = sampler.step(key, sampler.init(position), grad)
    found = annealing.take_chains(chosen, state)
    # The momentum of every entry moves with it: one more step without noise says so.
    quiet = AdamSGHMC(noise_scale=0.0)
    expected = jax.tree.map(lambda x: x[chosen], quiet.step(key, state, grad).position)
    moved = quiet.step(key, found, jax.tree.map(lambda x: x[chosen], grad)).position
    jax.tree.map(np.testing.assert_allclose, moved, expected)


def test_published_presets_are_not_annealed():
    for name, method in BayesDAG.PRESETS.items():
        assert method.start_heat == 1, name
