"""What every way to move the masks promises: masks of zeros and ones that heed the data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.sgmcmc.samplers.sgld import SGLD
from tests.methods.test_joint import ENERGY, D, place_of, situation

ALL = [plugins.load("masks", name)() for name in plugins.names("masks")]
every_move = pytest.mark.parametrize("move", ALL, ids=plugins.names("masks"))
NUM_CHAINS, NUM_STEPS = 128, 30


def run(move, key, num_steps=NUM_STEPS):
    """Logits and mask of one chain after some moves, from no edge at all."""
    chain, sampler = place_of(ENERGY, situation()[2]), SGLD(step_size=0.05)

    def step(carry, key):
        logits, mask = carry
        return move(key, logits, mask, chain, sampler, 1.0), None

    start = (sampler.init(jnp.zeros((D, D))), jnp.zeros((D, D)))
    (logits, mask), _ = jax.lax.scan(step, start, jax.random.split(key, num_steps))
    return logits.position, mask


@pytest.fixture
def moved(move, key):
    return jax.jit(jax.vmap(lambda k: run(move, k)))(jax.random.split(key, NUM_CHAINS))


@every_move
def test_masks_stay_zeros_and_ones_and_logits_finite(move, moved):
    logits, masks = moved
    assert set(np.unique(masks)) <= {0.0, 1.0}
    assert np.isfinite(logits).all()
    assert isinstance(move.retains, bool)


@every_move
def test_the_same_key_moves_the_same_way(move, key):
    first, second = (jax.jit(lambda k: run(move, k, 3))(key) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)


@every_move
def test_masks_that_explain_the_data_better_are_visited_more_often(move, moved):
    chain = place_of(ENERGY, situation()[2])
    energy = jax.jit(lambda masks: -chain.log_terms(masks).sum(axis=1))
    coins = jax.random.bernoulli(jax.random.key(0), 0.5, moved[1].shape).astype(jnp.float32)
    visited, random = (np.asarray(energy(masks), np.float64) for masks in (moved[1], coins))
    error = np.hypot(visited.std(), random.std()) / NUM_CHAINS**0.5
    assert visited.mean() < random.mean() - 2 * error
