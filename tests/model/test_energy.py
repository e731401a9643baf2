"""U = -log joint: its mini-batch scaling, its gradient tile by tile, and the cost of edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.model.energy import Batch, Energy, variance_of_sum
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.model.priors.uniform import Uniform

ENERGY = Energy(Linear(intercept=False), Gaussian(), Uniform())
NO_BELIEFS = jnp.zeros((3, 3))
# Compiled as wholes: step by step they would be many small programs.
data_energy = jax.jit(ENERGY.data)


def data_gradient(graph, params, batch, wanted):
    """With the scale of the batch compiled in: whether its noise is measured depends on it."""

    def of(graph, params, x, counted):
        return ENERGY.data_gradient(graph, params, batch._replace(x=x, counted=counted), wanted)

    return jax.jit(of)(graph, params, batch.x, batch.counted)


@pytest.fixture
def params(key):
    return {
        "mechanism": Linear(intercept=False).init(key, 3),
        "noise": {"log_scale": jnp.array([0.1, -0.2, 0.3])},
    }


@pytest.fixture
def graph():
    return jnp.zeros((3, 3)).at[0, 1].set(1.0).at[1, 2].set(1.0)


def batch_of(x, num_tiles, scale=1.0, sampling=0.0):
    tiles = x.reshape(num_tiles, -1, 3)
    return Batch(tiles, jnp.ones_like(tiles), scale, sampling)


def test_the_scale_of_a_mini_batch_lives_in_the_energy(params, graph, key):
    x = np.asarray(jax.random.normal(key, (12, 3)))
    whole = data_energy(graph, params, batch_of(x, 1))
    parts = [data_energy(graph, params, batch_of(x[k : k + 4], 1, scale=3.0)) for k in (0, 4, 8)]
    assert float(sum(parts)) / 3 == pytest.approx(float(whole), rel=1e-5)


def test_the_gradient_does_not_depend_on_the_tiles(params, graph, key):
    x = np.asarray(jax.random.normal(key, (12, 3)))
    wanted = ("mechanism", "noise")
    one = data_gradient(graph, params, batch_of(x, 1), wanted)
    many = data_gradient(graph, params, batch_of(x, 4), wanted)
    np.testing.assert_allclose(one.graph.sum(axis=0), many.graph.sum(axis=0), rtol=1e-4)
    for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(many.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    direct = jax.jit(jax.grad(ENERGY.data))(graph, params, batch_of(x, 1))
    np.testing.assert_allclose(one.graph[0], direct, rtol=1e-4, atol=1e-5)


def test_cells_that_were_set_do_not_count(params, graph, key):
    x = jax.random.normal(key, (4, 3))
    batch = batch_of(x, 1)
    masked = batch._replace(counted=jnp.asarray(batch.counted).at[0, :, 1].set(0.0))
    slope = data_gradient(graph, params, masked, ("mechanism",))
    assert (np.asarray(slope.params["mechanism"]["weights"])[:, 1] == 0).all()


def test_the_measured_noise_is_the_variance_over_batches(params, graph, key):
    """Means over many batches of the estimate against the variance of the gradients."""
    x = jax.random.normal(key, (2000, 3))

    def one(key):
        rows = x[jax.random.choice(key, 2000, (64,), replace=False)]
        batch = batch_of(rows, 8, scale=2000 / 64, sampling=1 - 64 / 2000)
        found = ENERGY.data_gradient(graph, params, batch, ("noise",))
        return found.params["noise"]["log_scale"], found.variance["noise"]["log_scale"]

    grads, estimates = jax.lax.map(one, jax.random.split(key, 600))
    # The variance of 600 gradients has a relative error of 6 %, heavy tails a little more.
    np.testing.assert_allclose(estimates.mean(axis=0), grads.var(axis=0), rtol=0.35)


def test_the_variance_of_a_sum_is_that_of_its_terms():
    terms = np.array([1.0, 2.0, 4.0, 7.0])
    found = variance_of_sum(jnp.asarray(terms.sum()), jnp.asarray((terms**2).sum()), 4)
    assert float(found) == pytest.approx(4 * terms.var(ddof=1), rel=1e-5)


def test_every_edge_costs_what_is_said(graph):
    priced = Energy(Linear(), Gaussian(), Uniform(), sparsity=7.0)
    fewer = graph.at[1, 2].set(0.0)
    cost = jax.jit(priced.structure)
    difference = cost(graph, NO_BELIEFS) - cost(fewer, NO_BELIEFS)
    assert float(difference) == pytest.approx(7.0, abs=1e-4)


def test_the_published_cost_has_no_slope_where_an_edge_is_absent(graph):
    priced = Energy(Linear(), Gaussian(), Uniform(), sparsity=7.0, free_absence=True)
    slope = jax.jit(jax.grad(priced.structure))(graph, NO_BELIEFS)
    np.testing.assert_allclose(slope, 7.0 * graph, atol=1e-4)


def test_an_edge_of_a_density_costs_its_log_odds(graph):
    sparse = Energy(Linear(), Gaussian(), ErdosRenyi(probability=0.2))
    slope = jax.jit(jax.grad(sparse.structure))(graph, NO_BELIEFS)
    np.testing.assert_allclose(slope, np.log(0.8 / 0.2), rtol=1e-4)


def test_a_belief_pays_for_its_edge(graph):
    odds = NO_BELIEFS.at[0, 1].set(2.0)
    cost = jax.jit(ENERGY.structure)
    change = cost(graph, odds) - cost(graph, NO_BELIEFS)
    assert float(change) == pytest.approx(-2.0, abs=1e-5)
