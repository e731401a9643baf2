"""BCD Nets: its prior, its bound, and what it finds where the order is identified."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import integrate
from scipy.special import exp1

from bayesdag import fit
from bayesdag.baselines import bcd
from bayesdag.errors import InputError
from bayesdag.methods.bcd import BCD
from tests.toys import toy_frame

QUICK = BCD.PRESETS["quick"]


def test_the_horseshoe_is_a_density_with_the_right_shape():
    x = np.array([0.01, 0.1, 0.5, 1.0, 3.0, 10.0])
    z = x**2 / (2 * 0.3**2)
    inside = z < 500  # exp overflows beyond
    expected = np.log(np.exp(z[inside]) * exp1(z[inside]) / np.sqrt(2 * np.pi**3) / 0.3)
    found = np.asarray(bcd.log_horseshoe(jnp.asarray(x), 0.3))
    np.testing.assert_allclose(found[inside], expected, atol=2e-3)
    mass, _ = integrate.quad(
        lambda u: 2 * np.exp(u + float(bcd.log_horseshoe(jnp.exp(u), 1.0))), -12, 8
    )
    assert mass == pytest.approx(1, abs=0.01)


def test_the_divergence_of_gumbel_variables_is_zero_at_the_prior_alone():
    assert bcd.gumbel_divergence(jnp.zeros((3, 3))) == 0
    for logits in (-1.0, 2.0):
        assert bcd.gumbel_divergence(jnp.full((3, 3), logits)) > 0


@pytest.mark.slow
def test_equal_variances_identify_the_order():
    """a -> b -> c with equal noise in raw units: the first has the smallest variance."""
    from bayesdag import read

    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 500))
    b += 1.2 * a
    c += 1.2 * b
    data = read(pd.DataFrame({"c": c, "a": a, "b": b}), scaling="centre")
    method = dataclasses.replace(QUICK, equal_noise=True, num_steps=800)
    edge = fit(data, method, seed=0).edge_probabilities()
    assert edge.loc["a", "b"] > 0.9
    assert edge.loc["b", "c"] > 0.9
    assert edge.loc["c", "a"] < 0.1


@pytest.mark.slow
def test_edges_are_found_where_all_orders_are_equally_good():
    """Groups of variables with a common cause: no order is better, but no edges are far worse."""
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=(800, 3)), 3, axis=1) + 0.8 * rng.normal(size=(800, 9))
    frame = pd.DataFrame(values, columns=list("abcdefghi"))
    found = fit(frame, QUICK, seed=0)
    without = -0.5 * 9 * 800 * (1 + np.log(2 * np.pi))
    assert found.stats["log_joint"].mean() > without + 300
    assert found.graphs.sum(axis=(2, 3)).mean() > 5


@pytest.mark.slow
def test_weights_below_the_threshold_are_no_edges():
    few = dataclasses.replace(QUICK, num_steps=5)
    every, none = (
        fit(toy_frame(), dataclasses.replace(few, threshold=t)).stats["num_edges"]
        for t in (0.0, 100.0)
    )
    assert (every == 6).all()
    assert (none == 0).all()


def test_one_variance_is_the_same_for_all_variables():
    kernel = dataclasses.replace(QUICK, equal_noise=True)._kernel
    state = kernel.start(jax.random.key(0), 4)
    draw = jax.jit(kernel.draw, static_argnums=2)
    _, log_scale, order = draw(jax.random.key(1), state.variational, 4)
    assert len(np.unique(np.asarray(log_scale))) == 1
    assert sorted(np.asarray(order).sum(axis=0).round()) == [0, 1, 2, 3]


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match="num_steps is 0"):
        BCD(num_steps=0)
    with pytest.raises(InputError, match="horseshoe_scale is 0"):
        BCD(horseshoe_scale=0.0)
    with pytest.raises(InputError, match="flow_layers is -1"):
        BCD(flow_layers=-1)


def test_a_flow_draws_from_another_posterior_and_knows_its_density(key):
    kernel = dataclasses.replace(QUICK, flow_layers=2, hidden=8)._kernel
    variational = kernel.start(key, 4).variational
    plain = dataclasses.replace(QUICK, hidden=8)._kernel
    # A flow starts as the identity.
    for one, other in zip(
        kernel.draw(key, variational, 4), plain.draw(key, variational, 4), strict=True
    ):
        np.testing.assert_allclose(one, other)
    bent = jax.tree.map(lambda leaf: leaf + 0.1, variational["flow"])
    draws, density = jax.vmap(lambda k: kernel._continuous(k, variational | {"flow": bent}))(
        jax.random.split(key, 20)
    )
    gaussian, before = jax.vmap(lambda k: plain._continuous(k, variational))(
        jax.random.split(key, 20)
    )
    assert np.abs(draws - gaussian).max() > 0.01
    assert np.abs(density - before).max() > 0.01
