"""What every mechanism promises: a mean sees its parents alone, and one node agrees with all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.types import Heteroscedastic, Mechanism

ALL = [plugins.load("mechanisms", name)() for name in plugins.names("mechanisms")]
every_mechanism = pytest.mark.parametrize("mechanism", ALL, ids=plugins.names("mechanisms"))
D, N = 4, 6
# 0 -> 1, 0 -> 2, 1 -> 2; 3 stands alone.
GRAPH = jnp.zeros((D, D)).at[jnp.array([0, 0, 1]), jnp.array([1, 2, 2])].set(1.0)


@pytest.fixture
def params(mechanism, key):
    return jax.jit(lambda k: mechanism.init(k, D))(key)


@pytest.fixture
def rows(key):
    return jax.random.normal(key, (N, D))


@every_mechanism
def test_it_is_a_mechanism(mechanism):
    assert isinstance(mechanism, Mechanism)


@every_mechanism
def test_a_mean_depends_on_the_parents_alone(mechanism, params, rows):
    slope = jax.jacobian(lambda row: mechanism(params, row[None, :], GRAPH)[0])
    slopes = np.asarray(jax.jit(jax.vmap(slope))(rows))
    is_edge = np.asarray(GRAPH.T) == 1
    assert (slopes[:, ~is_edge] == 0).all()
    assert (np.abs(slopes[:, is_edge]).max(axis=0) > 0).all()


@every_mechanism
def test_one_node_agrees_with_all_nodes(mechanism, params, rows):
    together = jax.jit(mechanism)(params, rows, GRAPH)
    each = jax.jit(jax.vmap(lambda i: mechanism.node(params, rows, GRAPH[:, i], i)))
    np.testing.assert_allclose(each(jnp.arange(D)).T, together, rtol=2e-4, atol=2e-5)


@every_mechanism
def test_permuting_the_rows_permutes_the_means(mechanism, params, rows):
    order = np.random.default_rng(0).permutation(N)
    call = jax.jit(mechanism)
    moved = call(params, rows[order], GRAPH)
    np.testing.assert_allclose(moved, call(params, rows, GRAPH)[order], rtol=1e-4, atol=1e-5)


@every_mechanism
def test_it_maps_over_chains(mechanism, rows, key):
    keys = jax.random.split(key, 3)
    params = jax.jit(jax.vmap(lambda k: mechanism.init(k, D)))(keys)
    means = jax.jit(jax.vmap(lambda p: mechanism(p, rows, GRAPH)))(params)
    first = jax.jit(mechanism)(jax.tree.map(lambda leaf: leaf[0], params), rows, GRAPH)
    np.testing.assert_allclose(means[0], first, rtol=1e-4, atol=1e-5)


@every_mechanism
def test_a_noise_scale_is_positive_and_depends_on_the_parents_alone(mechanism, params, rows):
    if not isinstance(mechanism, Heteroscedastic):
        pytest.skip("its noise has one scale per variable")
    node_scale = jax.jit(lambda x: mechanism.node_scale(params, x, GRAPH[:, 2], jnp.asarray(2)))
    scale = node_scale(rows)
    assert scale.shape == (N,)
    assert (scale > 0).all()
    np.testing.assert_array_equal(scale, node_scale(rows.at[:, 3].add(1.0)))
