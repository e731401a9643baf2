"""Independent edges: the gradient of a draw, and what the published code did differently."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.sgmcmc.edges import _bernoulli

ALL = [plugins.load("edges", name)() for name in plugins.names("edges")]


def test_the_gradient_of_a_draw_is_that_of_the_soft_one(key):
    logits = jnp.array([[0.4, -0.3], [1.0, 0.0]])

    def soft(logits):
        noise = jax.random.logistic(key, logits.shape)
        return jax.nn.sigmoid((logits + noise) / 0.2).sum()

    hard = jax.jit(jax.grad(lambda logits: _bernoulli.sample(key, logits, 0.2).sum()))(logits)
    np.testing.assert_allclose(hard, jax.jit(jax.grad(soft))(logits), rtol=1e-6)


@pytest.mark.parametrize("edges", ALL, ids=plugins.names("edges"))
def test_the_published_shift_moves_draws_but_not_the_entropy(edges, key):
    shifted = dataclasses.replace(edges, logit_shift=-1.0, entropy_of_shifted=False)
    params, potentials = edges.init(key, 3), jnp.array([0.3, -0.1, 0.2])
    moved = shifted.logits(params, potentials) - edges.logits(params, potentials)
    np.testing.assert_allclose(moved, -1.0, atol=1e-6)
    assert float(shifted.entropy(params, potentials)) == pytest.approx(
        float(edges.entropy(params, potentials)), rel=1e-5
    )
