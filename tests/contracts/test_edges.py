"""What every q(W|p) promises: exact draws, and densities and entropies that belong to them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from bayesdag import plugins
from bayesdag.types import Edges

ALL = [plugins.load("edges", name)() for name in plugins.names("edges")]
every_edges = pytest.mark.parametrize("edges", ALL, ids=plugins.names("edges"))
POTENTIALS = jnp.array([0.3, -0.1, 0.2])
MASKS = jnp.asarray(list(itertools.product([0.0, 1.0], repeat=9))).reshape(-1, 3, 3)


@pytest.fixture
def params(edges, key):
    return jax.jit(lambda k: edges.init(k, 3))(key)


def log_probs(edges, params):
    """Of all 512 masks of three nodes."""
    of_mask = jax.vmap(lambda mask: edges.log_prob(params, POTENTIALS, mask))
    return np.asarray(jax.jit(of_mask)(MASKS), np.float64)


@every_edges
def test_it_is_an_edge_posterior(edges):
    assert isinstance(edges, Edges)


@every_edges
def test_a_mask_is_exactly_zero_or_one(edges, params, key):
    """A rounding error would become a lost edge where draws are stored as integers."""
    draw = jax.jit(jax.vmap(lambda k: edges.sample(params, k, POTENTIALS)))
    assert set(np.unique(draw(jax.random.split(key, 500)))) == {0.0, 1.0}


@every_edges
def test_the_probabilities_of_all_masks_sum_to_one_and_give_the_entropy(edges, params):
    log_prob = log_probs(edges, params)
    assert np.exp(log_prob).sum() == pytest.approx(1, abs=1e-5)
    wanted = -(np.exp(log_prob) * log_prob).sum()
    assert float(edges.entropy(params, POTENTIALS)) == pytest.approx(wanted, rel=1e-4)


@every_edges
def test_draws_have_the_probabilities_of_the_density(edges, params, key):
    num = 40_000
    draw = jax.jit(jax.vmap(lambda k: edges.sample(params, k, POTENTIALS)))
    frequency = np.asarray(draw(jax.random.split(key, num)), np.float64).mean(axis=0)
    probability = np.tensordot(np.exp(log_probs(edges, params)), np.asarray(MASKS), axes=1)
    error = np.sqrt(probability * (1 - probability) / num)
    assert (np.abs(frequency - probability) < 5 * error).all()


@every_edges
def test_the_gradient_of_the_entropy_agrees_with_finite_differences(edges, params, key):
    vector, restore = ravel_pytree(params)
    entropy = jax.jit(lambda v: edges.entropy(restore(v), POTENTIALS))
    grad = jax.jit(jax.grad(entropy))(vector)
    for direction in jax.random.normal(key, (3, vector.size)):
        step = 1e-2 * direction / jnp.linalg.norm(direction)
        change = float(entropy(vector + step) - entropy(vector - step)) / 2
        assert float(grad @ step) == pytest.approx(change, abs=2e-5)


@every_edges
def test_a_draw_carries_a_gradient_to_the_parameters(edges, params, key):
    slope = jax.jit(jax.grad(lambda p: edges.sample(p, key, POTENTIALS).sum()))(params)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(slope)]
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert max(np.abs(leaf).max() for leaf in leaves) > 0
