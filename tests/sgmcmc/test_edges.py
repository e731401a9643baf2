"""Edge posteriors: exact draws, densities and entropies, and the two networks behind them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.sgmcmc.edges import _bernoulli

ALL = [plugins.load("edges", name)() for name in plugins.names("edges")]
every_edges = pytest.mark.parametrize("edges", ALL, ids=plugins.names("edges"))


@every_edges
def test_a_mask_is_exactly_zero_or_one(edges, key):
    """A rounding error would become a lost edge where draws are stored as integers."""
    params = edges.init(key, 6)
    potentials = jax.random.normal(key, (6,))
    masks = jax.jit(jax.vmap(lambda k: edges.sample(params, k, potentials)))(
        jax.random.split(key, 500)
    )
    assert set(np.unique(masks)) == {0.0, 1.0}


@every_edges
def test_draws_have_the_probabilities_of_the_logits(edges, key):
    params, potentials = edges.init(key, 4), jnp.array([0.1, -0.2, 0.05, 0.3])
    masks = jax.vmap(lambda k: edges.sample(params, k, potentials))(jax.random.split(key, 4000))
    probability = jax.nn.sigmoid(edges.logits(params, potentials))
    error = jnp.sqrt(probability * (1 - probability) / 4000)
    assert (jnp.abs(masks.mean(axis=0) - probability) < 5 * error).all()


@every_edges
def test_entropy_is_that_of_all_masks(edges, key):
    """By enumeration of the 512 masks of three nodes."""
    params, potentials = edges.init(key, 3), jnp.array([0.3, -0.1, 0.2])
    masks = jnp.asarray(list(itertools.product([0.0, 1.0], repeat=9))).reshape(-1, 3, 3)
    log_prob = jax.vmap(lambda mask: edges.log_prob(params, potentials, mask))(masks)
    assert float(jnp.exp(log_prob).sum()) == pytest.approx(1, abs=1e-5)
    wanted = -(jnp.exp(log_prob) * log_prob).sum()
    assert float(edges.entropy(params, potentials)) == pytest.approx(float(wanted), rel=1e-4)


@every_edges
def test_the_gradient_of_the_entropy_agrees_with_finite_differences(edges, key):
    params, potentials = edges.init(key, 3), jnp.array([0.3, -0.1, 0.2])
    grad = jax.grad(lambda p: edges.entropy(p, potentials))(params)[2]["bias"]
    step = 1e-2
    for k in (0, 4, 8):
        moved = [
            (*params[:2], params[2] | {"bias": params[2]["bias"].at[k].add(sign * step)})
            for sign in (1, -1)
        ]
        change = edges.entropy(moved[0], potentials) - edges.entropy(moved[1], potentials)
        assert float(grad[k]) == pytest.approx(float(change) / (2 * step), abs=2e-3)


def test_the_gradient_of_a_draw_is_that_of_the_soft_one(key):
    logits = jnp.array([[0.4, -0.3], [1.0, 0.0]])

    def soft(logits):
        noise = jax.random.logistic(key, logits.shape)
        return jax.nn.sigmoid((logits + noise) / 0.2).sum()

    hard = jax.grad(lambda logits: _bernoulli.sample(key, logits, 0.2).sum())(logits)
    np.testing.assert_allclose(hard, jax.grad(soft)(logits), rtol=1e-6)


@every_edges
def test_the_published_shift_moves_draws_but_not_the_entropy(edges, key):
    import dataclasses

    shifted = dataclasses.replace(edges, logit_shift=-1.0, entropy_of_shifted=False)
    params, potentials = edges.init(key, 3), jnp.array([0.3, -0.1, 0.2])
    moved = shifted.logits(params, potentials) - edges.logits(params, potentials)
    np.testing.assert_allclose(moved, -1.0, atol=1e-6)
    assert float(shifted.entropy(params, potentials)) == pytest.approx(
        float(edges.entropy(params, potentials)), rel=1e-5
    )
