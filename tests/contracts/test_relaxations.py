"""What every relaxation of the sort promises, present and future."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import plugins
from bayesdag.sgmcmc import dagspace
from bayesdag.types import Relaxation

D = 5
ALL = [plugins.load("relaxations", name)() for name in plugins.names("relaxations")]
every_relaxation = pytest.mark.parametrize("relaxation", ALL, ids=plugins.names("relaxations"))
WEIGHT = np.random.default_rng(0).normal(size=(D, D)).astype(np.float32)
KEY = jax.random.key(0)
_compiled: dict = {}


def compiled(relaxation, name):
    """Shared between examples: compiling is what costs."""
    if (relaxation, name) not in _compiled:
        weighted = {
            "value": lambda p: relaxation(KEY, p, relaxation.init(D))[0],
            "soft": lambda p: relaxation.relaxed(p, relaxation.init(D))[0],
            "gradient": jax.grad(
                lambda p, w: (w * relaxation(KEY, p, relaxation.init(D))[0]).sum()
            ),
        }
        _compiled[relaxation, name] = jax.jit(weighted[name])
    return _compiled[relaxation, name]


def potentials(order, scale=0.1):
    return jnp.asarray(scale * np.asarray(order, dtype=np.float32))


@every_relaxation
def test_it_is_a_relaxation(relaxation):
    assert isinstance(relaxation, Relaxation)


@every_relaxation
@given(order=st.permutations(range(D)))
@settings(max_examples=20, deadline=None)
def test_the_value_is_the_hard_order(relaxation, order):
    p = potentials(order)
    order = compiled(relaxation, "value")(p)
    np.testing.assert_allclose(order, np.greater.outer(p, p), atol=1e-5)


@every_relaxation
def test_the_gradient_is_finite_and_not_zero(relaxation, key):
    for p in 0.1 * jax.random.normal(key, (10, D)):
        gradient = compiled(relaxation, "gradient")(p, WEIGHT)
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() > 1e-3


@every_relaxation
def test_the_gradient_is_finite_where_potentials_are_equal_or_far_apart(relaxation):
    for p in (jnp.zeros(D), potentials(range(D), scale=3.0)):
        assert np.isfinite(compiled(relaxation, "gradient")(p, WEIGHT)).all()


@every_relaxation
def test_raising_a_potential_makes_its_outgoing_edges_more_likely(relaxation, key):
    p = 0.02 * jax.random.normal(key, (D,))
    outgoing = np.zeros((D, D), dtype=np.float32)
    outgoing[2] = 1
    assert compiled(relaxation, "gradient")(p, outgoing)[2] > 0


@every_relaxation
@given(labels=st.permutations(range(D)))
@settings(max_examples=10, deadline=None)
def test_relabelling_the_nodes_relabels_the_gradient(relaxation, labels):
    p = potentials([0.3, -1.0, 0.8, 0.1, -0.2])
    moved = compiled(relaxation, "gradient")(p[jnp.array(labels)], WEIGHT[np.ix_(labels, labels)])
    expected = compiled(relaxation, "gradient")(p, WEIGHT)[jnp.array(labels)]
    np.testing.assert_allclose(moved, expected, rtol=2e-3, atol=2e-3)


@every_relaxation
def test_the_soft_order_hardens_as_it_cools(relaxation):
    p = potentials([0.3, -1.0, 0.8, 0.1, -0.2])
    hard = np.asarray(dagspace.order(p))
    errors = [
        np.abs(np.asarray(compiled(cold, "soft")(p)) - hard).max()
        for factor in (1.0, 0.2, 0.01)
        for cold in [type(relaxation)(temperature=relaxation.temperature * factor)]
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.2


@every_relaxation
def test_it_maps_over_chains(relaxation, key):
    p = 0.1 * jax.random.normal(key, (3, D))
    carry = jax.tree.map(lambda x: jnp.stack([x] * 3), relaxation.init(D))
    orders, _ = jax.jit(jax.vmap(relaxation, in_axes=(None, 0, 0)))(KEY, p, carry)
    np.testing.assert_allclose(orders, jax.vmap(dagspace.order)(p), atol=1e-5)
