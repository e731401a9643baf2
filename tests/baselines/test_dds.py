"""Differentiable DAG sampling: its graphs, its divergence, and what it finds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import fit, graphs, read
from bayesdag.baselines import dds
from bayesdag.baselines.likelihood import gradient_context
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods.dds import DDS
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from tests.toys import NAMES, toy_frame

QUICK = DDS.PRESETS["quick"]


def context_of(knowledge=None):
    known = Knowledge.read(knowledge).bind(NAMES) if knowledge else Constraints.free(NAMES)
    return gradient_context(read(toy_frame()), known, MLP())


@pytest.mark.parametrize("sinkhorn", [None, Sinkhorn(temperature=0.5)], ids=["top-k", "sinkhorn"])
def test_every_graph_is_a_dag_with_gradients_in_order_and_edges(sinkhorn, key):
    kernel = dataclasses.replace(QUICK, sinkhorn=sinkhorn)._kernel(300)
    learned, context = kernel.start(key, 4).learned, context_of({"forbidden": [("rain", "soil")]})

    def one(key, learned):
        graph = kernel.graph(key, learned, context)
        return (graph * jnp.arange(16.0).reshape(4, 4)).sum(), graph

    drawn = jax.jit(jax.vmap(jax.value_and_grad(one, argnums=1, has_aux=True), in_axes=(0, None)))
    (_, found), slopes = drawn(jax.random.split(key, 30), learned)
    found = np.round(np.asarray(found)).astype(np.int8)
    assert graphs.is_acyclic(found).all()
    assert (found[:, 0, 1] == 0).all()
    assert len(graphs.unique_graphs(found)[0]) > 10
    assert np.abs(slopes["order"]).max() > 0
    assert np.abs(slopes["edges"]).max() > 0


def test_the_divergence_is_that_of_bernoulli_variables():
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)), jnp.float32)
    p = 1 / (1 + np.exp(-np.asarray(logits, dtype=float)))
    each = p * np.log(p / 0.1) + (1 - p) * np.log((1 - p) / 0.9)
    expected = each[~np.eye(4, dtype=bool)].sum()
    found = dds.bernoulli_divergence(logits, 0.1, context_of())
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    prior = jnp.full((4, 4), float(np.log(0.1 / 0.9)), jnp.float32)
    np.testing.assert_allclose(dds.bernoulli_divergence(prior, 0.1, context_of()), 0, atol=1e-5)


def test_noise_scales_are_those_of_the_residuals():
    functions = MLP().init(jax.random.key(0), 4)
    context = context_of()
    found = dds.residual_scales(MLP(), functions, jnp.zeros((4, 4)), context)
    np.testing.assert_allclose(found, 0, atol=1e-5)  # standardised columns, no parents


def test_the_linked_pairs_of_the_toy_are_found():
    posterior = fit(toy_frame(), QUICK, seed=0)
    edge = posterior.edge_matrix()
    linked = edge + edge.T
    assert linked[0, 1] > 0.8
    assert linked[2, 3] > 0.8
    leaves = jax.tree.leaves(posterior.params["mechanism"])
    assert all((leaf[0, 0] == leaf[0, -1]).all() for leaf in leaves)  # one point estimate
    assert posterior.params["noise"]["log_scale"].std(axis=1).max() > 0


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match="batch_size is 0"):
        DDS(batch_size=0)
    with pytest.raises(InputError, match="edge_probability is 1"):
        DDS(edge_probability=1.0)
    with pytest.raises(InputError, match="held_out is 1"):
        DDS(held_out=1.0)
    with pytest.raises(InputError, match="patience is 0"):
        DDS(patience=0)


def test_learning_stops_when_held_out_rows_gain_nothing(key):
    method = dataclasses.replace(QUICK, patience=2)
    split = method._split(key, context_of())
    assert split.held_out.shape == (60, 4)
    assert split.train.x.shape == (240, 4)
    kernel = dataclasses.replace(method._kernel(240), check_every=1)
    start = kernel.start(key, 4)
    first, _ = kernel.step(key, jnp.zeros((), jnp.int32), start, split)
    assert np.isfinite(first.best_loss)
    assert first.num_worse == 0
    # A loss that nothing beats: two checks later it stands still, with what was best.
    beaten = first._replace(best_loss=jnp.asarray(-1e9), best=start.learned)
    second, _ = kernel.step(key, jnp.ones((), jnp.int32), beaten, split)
    third, _ = kernel.step(key, jnp.full((), 2, jnp.int32), second, split)
    fourth, stats = kernel.step(key, jnp.full((), 3, jnp.int32), third, split)
    assert [int(s.num_worse) for s in (second, third, fourth)] == [1, 2, 2]
    assert not np.array_equal(third.learned["edges"], second.learned["edges"])
    np.testing.assert_array_equal(fourth.learned["edges"], third.learned["edges"])
    np.testing.assert_array_equal(kernel.keep(key, fourth, split)["edges"], start.learned["edges"])
    assert np.isfinite(stats["energy"])


def test_a_fit_says_how_learning_ended():
    short = dataclasses.replace(QUICK, num_steps=3)
    assert "all of 3 steps" in fit(toy_frame(), short).provenance["notes"][1]
    impatient = dataclasses.replace(QUICK, patience=1)
    assert "stopped early" in fit(toy_frame(), impatient).provenance["notes"][1]
