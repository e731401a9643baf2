"""Likelihoods of relaxed graphs agree with those of the model that is stored."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import read
from bayesdag.baselines import likelihood
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from tests.toys import NAMES, TRUTH, toy_frame

RNG = np.random.default_rng(0)
SET = np.zeros((300, 4), dtype=bool)
SET[200:, 2] = True


def engine_log_prob(data, mechanism, params) -> float:
    """Of the stored model, in engine units."""
    scm = SCM(mechanism, Gaussian(), data.scaling)
    log_prob = jax.jit(lambda p: scm.log_prob(p, jnp.asarray(TRUTH), data.values, SET))
    found = log_prob(params)
    logs = np.log(data.scaling.scale) * (~SET).sum(axis=0)
    return float(np.asarray(found).sum() + logs.sum())


def test_linear_functions_need_no_rows_and_the_best_intercept_is_known():
    data = read(toy_frame(), interventions=SET, scaling="none")
    weights, log_scale = RNG.normal(size=(4, 4)), np.log([9.0, 1.0, 0.5, 3.0])
    params = {"mechanism": {"weights": jnp.asarray(weights)}, "noise": {"log_scale": log_scale}}
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params)
    context = likelihood.gradient_context(data, Constraints.free(NAMES), Linear(False))
    assert context.x.shape == (0, 4)
    graph = jnp.asarray(TRUTH, jnp.float32)
    log_likelihood = jax.jit(likelihood.log_likelihood, static_argnums=0)
    found = log_likelihood(Linear(False), params, graph, context)
    stored = likelihood.with_intercept(weights[None], TRUTH[None], data)
    stored = jax.tree.map(lambda leaf: jnp.asarray(leaf[0], jnp.float32), stored)
    both = {"mechanism": stored, "noise": params["noise"]}
    expected = engine_log_prob(data, Linear(), both)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    for change in (-0.1, 0.1):
        worse = both | {"mechanism": stored | {"bias": stored["bias"] + change}}
        assert engine_log_prob(data, Linear(), worse) < expected


def test_networks_are_judged_by_the_rows_that_nobody_set():
    data = read(toy_frame(), interventions=SET)
    mechanism = MLP(width=3, depth=2)
    params = {
        "mechanism": mechanism.init(jax.random.key(1), 4),
        "noise": {"log_scale": jnp.full(4, -0.3)},
    }
    context = likelihood.gradient_context(data, Constraints.free(NAMES), mechanism)
    assert context.scatter.shape == (0, 4, 4)
    log_likelihood = jax.jit(likelihood.log_likelihood, static_argnums=0)
    found = log_likelihood(mechanism, params, jnp.asarray(TRUTH, jnp.float32), context)
    np.testing.assert_allclose(found, engine_log_prob(data, mechanism, params), rtol=1e-4)


@pytest.mark.parametrize("num_graphs", [3, 12], ids=["few graphs", "many graphs"])
@pytest.mark.parametrize("in_cache", [500, 10**9], ids=["tiles", "at once"])
def test_many_graphs_are_judged_like_one_by_one(num_graphs, in_cache, monkeypatch):
    """Values and slopes, in tiles that do not divide the rows, too."""
    monkeypatch.setattr(likelihood, "_HIDDEN_IN_CACHE", in_cache)
    mechanism = MLP(width=3, depth=2)
    params = {
        "mechanism": mechanism.init(jax.random.key(1), 4),
        "noise": {"log_scale": jnp.full(4, -0.3)},
    }
    data = read(toy_frame(), interventions=SET)
    context = likelihood.gradient_context(data, Constraints.free(NAMES), mechanism)
    graphs = jax.random.uniform(jax.random.key(2), (num_graphs, 4, 4))

    def together(params, graphs):
        return likelihood.log_likelihoods(mechanism, params, graphs, context)

    def apart(params, graphs):
        return jnp.stack(
            [likelihood.log_likelihood(mechanism, params, graph, context) for graph in graphs]
        )

    for function in (lambda f: f, lambda f: jax.grad(lambda *x: f(*x).sum(), argnums=(0, 1))):
        found, expected = (jax.jit(function(f))(params, graphs) for f in (together, apart))
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-2), found, expected
        )


def test_graphs_are_confined_to_what_is_known():
    known = Knowledge(required=[("price", "rain")], forbidden=[("rain", "soil")]).bind(NAMES)
    context = likelihood.gradient_context(read(toy_frame()), known, Linear(False))
    graph = likelihood.confined(jnp.full((4, 4), 0.3), context)
    assert graph[3, 0] == 1
    assert graph[0, 1] == 0
    assert graph[0, 3] == 0  # it would close a cycle
    np.testing.assert_allclose(graph[1, 2], 0.3)
