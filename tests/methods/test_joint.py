"""The joint engine: estimates of slopes in the logits, weights, moves, and the method."""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag import extend, fit
from bayesdag.data import Dataset
from bayesdag.fitting import running
from bayesdag.graphs import all_dags, num_linear_extensions
from bayesdag.knowledge import Knowledge
from bayesdag.methods.joint import Joint
from bayesdag.model.energy import Energy
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.uniform import Uniform
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.sgmcmc import chains, dagspace, mask_gradients, mask_moves, order_moves, reweighting
from bayesdag.sgmcmc.mask_gradients import LeaveOneOut, MaskDraws, SelfNormalised
from bayesdag.sgmcmc.mask_moves import Flips
from bayesdag.sgmcmc.node_energies import ChainContext, chain_context
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC
from tests.toys import toy_frame

D = 3
NUM_OUTER = 1500
FLAT = Energy(Linear(intercept=False), Gaussian(), Uniform())
ENERGY = Energy(Linear(intercept=False), Gaussian(), DensityGrid(num=3))


def rows(num: int, seed: int = 0) -> np.ndarray:
    """Weak evidence for a -> b -> c, so that many graphs keep some probability."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(num, D))
    weights = np.array([[0, 0.5, 0], [0, 0, -0.6], [0, 0, 0]])
    return noise @ np.linalg.inv(np.eye(D) - weights)


def situation(num_rows: int = 12):
    """Context, functions and potentials of one chain: order a, b, c."""
    data = Dataset(rows(num_rows), ("a", "b", "c"))
    context = chains.context([data], Knowledge().bind(data.names))
    context = context._replace(x=context.x[0], counted=context.counted[0])
    weights = jnp.array([[0.0, 0.5, 0.3], [0.2, 0.0, -0.4], [0.1, 0.4, 0.0]])
    params = {"mechanism": {"weights": weights}, "noise": {"log_scale": jnp.full(D, -0.1)}}
    return context, params, jnp.array([0.3, 0.1, -0.2])


def all_masks() -> jax.Array:
    """All 2⁶ masks without a diagonal."""
    bits = (np.arange(64)[:, None] >> np.arange(6)) & 1
    masks = np.zeros((64, D, D))
    masks[:, ~np.eye(D, dtype=bool)] = bits
    return jnp.asarray(masks, jnp.float32)


def place_of(energy: Energy, potentials: jax.Array, component: int = 0) -> ChainContext:
    context, params, _ = situation()
    batch = chains.tiled(context, jnp.arange(len(context.x)), 1, correct=False)
    order, drawn = dagspace.order(potentials), jnp.asarray(component)
    return ChainContext(energy, order, params, drawn, context.support, batch, 1.0)


def column_energies():
    """Node energies of every mask, at one component of the prior."""
    place = place_of(ENERGY, situation()[2], 1)
    return -place.log_terms(all_masks())


def log_probability(logits: jax.Array) -> jax.Array:
    """log p(column j of every mask | its logits); the 2⁴ masks that share it are a constant."""
    up, down = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
    terms = all_masks() * up[None] + (1 - all_masks()) * down[None]
    return (terms * (1 - jnp.eye(D))[None]).sum(axis=1)


def exact_gradient(logits: jax.Array) -> jax.Array:
    """∇ log E[p(D|W)] by enumeration of all masks."""
    log_terms = -column_energies()

    def objective(logits):
        return jax.nn.logsumexp(log_probability(logits) + log_terms, axis=0).sum()

    return jax.grad(objective)(logits)


def estimates(key, estimate, logits, num_masks: int, repetitions: int) -> jax.Array:
    place = place_of(ENERGY, situation()[2], 1)

    def one(key):
        noise, masks = mask_gradients.draw(key, logits, num_masks)
        log_terms = place.log_terms(masks)
        draws = MaskDraws(noise, masks, log_terms, jnp.zeros(D, int), jnp.zeros((D, D)))
        return estimate(logits, draws)

    return jax.jit(jax.vmap(one))(jax.random.split(key, repetitions))


LOGITS = jnp.array([[0.0, 0.4, -0.3], [0.1, 0.0, 0.6], [-0.5, 0.2, 0.0]])


@pytest.mark.slow
@pytest.mark.parametrize("estimate", [SelfNormalised(), LeaveOneOut()])
def test_estimates_of_the_slope_approach_enumeration(key, estimate):
    found = estimates(key, estimate, LOGITS, num_masks=256, repetitions=500)
    exact = exact_gradient(LOGITS)
    error = found.std(axis=0) / len(found) ** 0.5
    off = ~np.eye(D, dtype=bool)
    # A ratio of averages over 256 masks is off by no more than a few thousandths.
    assert np.all(np.abs(found.mean(axis=0) - exact)[off] < 5 * error[off] + 5e-3)
    assert np.abs(exact[off]).max() > 0.05


def test_no_slope_in_a_logit_exceeds_one(key):
    found = estimates(key, SelfNormalised(), LOGITS, num_masks=4, repetitions=500)
    assert np.abs(found).max() <= 1


@given(shift=st.floats(-1e4, 1e4), spread=st.floats(0, 1e4))
def test_averages_of_likelihoods_are_stable(shift, spread):
    log_terms = jnp.asarray([[shift], [shift - spread]], jnp.float32)
    value = float(mask_gradients.log_mean_exp(log_terms)[0])
    assert np.isfinite(value)
    assert shift - np.log(2) - 0.01 <= value <= shift + 0.01
    weights = mask_gradients.node_weights(log_terms)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-5)
    assert 0.99 <= float(mask_gradients.effective_number(log_terms)[0]) <= 2.01


def exact_edges() -> np.ndarray:
    """P(edge | D, Θ) over all 25 graphs, each counted once for each of its orders."""
    context, params, _ = situation()
    batch = chains.tiled(context, jnp.arange(len(context.x)), 1, correct=False)
    dags = all_dags(D)
    cost = [
        float(FLAT.data(dag, params, batch) + FLAT.structure(dag, context.support.log_odds))
        for dag in jnp.asarray(dags, jnp.float32)
    ]
    orders = np.array([num_linear_extensions(dag) for dag in dags])
    weight = orders * np.exp(-np.array(cost) + min(cost))
    return np.tensordot(weight / weight.sum(), dags, 1)


def outer_draws(key, num: int) -> dict:
    """(p, W̃) given the data, by resampling draws of the prior by E[p(D|W) | W̃, p]."""
    _, params, _ = situation()
    key_p, key_logits, key_choice = jax.random.split(key, 3)
    potentials = 0.1 * jax.random.normal(key_p, (10 * num, D))
    logits = jax.random.normal(key_logits, (10 * num, D, D))

    def log_weight(potentials, logits):
        place = place_of(FLAT, potentials)
        log_terms = place.log_terms(all_masks())
        return jax.nn.logsumexp(log_probability(logits) + log_terms, axis=0).sum()

    weights = jax.jit(jax.vmap(log_weight))(potentials, logits)
    chosen = jax.random.categorical(key_choice, weights, shape=(num,))
    repeated = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num, 1, 1, *leaf.shape)), params)
    masks = jnp.zeros((num, 1, 1, D, D), jnp.int8)
    found = {"potentials": potentials[chosen][:, None, None], "mask": masks}
    return found | {"logits": logits[chosen][:, None, None]} | repeated


def reweighted(key, num_masks: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Edge probabilities with their errors, and statistics, as the engine finds them."""
    key_outer, key_inner = jax.random.split(key)
    context, *_ = situation()
    stacked = context._replace(x=context.x[None], counted=context.counted[None])
    draws = outer_draws(key_outer, NUM_OUTER)
    found = reweighting.graphs(key_inner[None], FLAT, draws, stacked, num_masks, None)
    graphs = np.asarray(found["graph"])[:, 0, 0].astype(float)
    return graphs.mean(axis=0), graphs.std(axis=0) / NUM_OUTER**0.5 + 1e-4, found["stats"]


@pytest.mark.slow
def test_weights_make_expectations_those_of_enumeration(key):
    found, error, stats = reweighted(key, num_masks=64)
    # 64 masks for parent sets of at most two: the bias of the ratio is below two percent.
    assert np.all(np.abs(found - exact_edges()) < 5 * error + 0.02)
    effective = np.asarray(stats["effective_masks"])
    assert np.all((effective >= 1) & (effective <= 64))
    assert np.all(np.asarray(stats["least_effective_masks"]) <= effective + 1e-5)


@pytest.mark.slow
def test_uniform_weights_are_noticed(key, monkeypatch):
    monkeypatch.setattr(
        mask_gradients,
        "choose",
        lambda key, log_terms: jax.random.categorical(key, jnp.zeros_like(log_terms), axis=0),
    )
    # Another number of masks, because compiled code would not see the change.
    found, error, _ = reweighted(key, num_masks=63)
    assert np.abs(found - exact_edges()).max() > 5 * error.max() + 0.1


class Held(NamedTuple):
    """In place of a sampler's state."""

    position: jax.Array


@pytest.mark.slow
def test_flips_and_swaps_visit_graphs_as_often_as_enumeration_says(key):
    context, params, potentials = situation(40)
    # Symmetric, so that functions look the same when an edge is turned round.
    weights = params["mechanism"]["weights"]
    params["mechanism"]["weights"] = 0.5 * (weights + weights.T)
    batch = chains.tiled(context, jnp.arange(len(context.x)), 1, correct=False)
    log_odds = context.support.log_odds

    def step(carry, key):
        potentials, mask = carry
        keys = jax.random.split(key, 3)
        here = chain_context(keys[0], ENERGY, potentials, mask, params, context.support, batch)
        _, mask = Flips()(keys[1], Held(mask), mask, here, AdamSGHMC(), 1.0)
        potentials, mask, _ = order_moves.swap(keys[2], potentials, mask, here)
        return (potentials, mask), mask * dagspace.order(potentials)

    def chain(key):
        start = (potentials, jnp.zeros((D, D)))
        return jax.lax.scan(step, start, jax.random.split(key, 2000))[1][100:].mean(axis=0)

    means = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(key, 32)))
    cost = [
        float(ENERGY.data(dag, params, batch) + ENERGY.structure(dag, log_odds))
        for dag in jnp.asarray(all_dags(D), jnp.float32)
    ]
    orders = np.array([num_linear_extensions(dag) for dag in all_dags(D)])
    weight = orders * np.exp(-np.array(cost) + min(cost))
    exact = np.tensordot(weight / weight.sum(), all_dags(D), 1)
    error = means.std(axis=0) / 32**0.5
    assert np.all(np.abs(means.mean(axis=0) - exact) < 5 * error + 1e-3)


def test_logits_given_a_mask_follow_their_conditional(key):
    drawn = mask_moves.draw_logits(key, jnp.ones((300, 300)), 2.0)
    grid = np.linspace(-12, 12, 4001)
    density = np.exp(-(grid**2) / 8) / (1 + np.exp(-grid))
    exact = (grid * density).sum() / density.sum()
    assert float(drawn.mean()) == pytest.approx(exact, abs=5 * 2 / 300)
    assert float(mask_moves.draw_logits(key, jnp.zeros((300, 300)), 2.0).mean()) < 0


@given(
    st.lists(st.floats(-0.5, 0.5, width=32), min_size=4, max_size=4, unique=True),
    st.sampled_from([(), (("a", "b"),), (("a", "b"), ("b", "c")), (("c", "a"), ("c", "b"))]),
)
def test_lowering_potentials_undoes_lifting_them(coordinates, required):
    bound = Knowledge(required=required).bind(("a", "b", "c", "d"))
    support = dagspace.support(bound.required, bound.forbidden, bound.log_odds)
    lifted, _ = dagspace.lift(jnp.asarray(coordinates, jnp.float32), support, 0.1)
    again, _ = dagspace.lift(dagspace.lower(lifted, support, 0.1), support, 0.1)
    np.testing.assert_allclose(again, lifted, atol=1e-5)


TINY = dataclasses.replace(
    Joint.PRESETS["quick"], num_chains=2, num_warmup=6, num_samples=2, thinning=2
)


@pytest.mark.slow
def test_extending_gives_the_draws_of_one_long_fit():
    longer = dataclasses.replace(TINY, num_samples=4)
    short = fit(toy_frame(), TINY, seed=1, keep_state=True)
    np.testing.assert_array_equal(
        extend(short, toy_frame(), 2).graphs, fit(toy_frame(), longer, seed=1).graphs
    )


class StoppedError(Exception):
    """In place of a kill."""


class Watch:
    """A monitor that notes the steps it is told of, and stops the run after `last`."""

    def __init__(self, last: int) -> None:
        self.last, self.steps = last, []

    def resume(self, template):
        return None

    def chunk(self, step, total, state, stats):
        self.steps.append(step)
        if step > self.last:
            raise StoppedError


@pytest.mark.slow
def test_a_run_stopped_halfway_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "Checkpoint", partial(Checkpoint, every=0.0))
    settings = {"seed": 1, "checkpoint": tmp_path / "partial"}
    with pytest.raises(StoppedError):
        fit(toy_frame(), TINY, monitor=Watch(2), **settings)
    watch = Watch(99)
    fit(toy_frame(), TINY, monitor=watch, **settings).save(tmp_path / "resumed.nc")
    fit(toy_frame(), TINY, seed=1).save(tmp_path / "whole.nc")
    assert min(watch.steps) > 3
    assert (tmp_path / "resumed.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()


def test_an_edge_that_appears_after_the_warm_up_does_not_blow_up_its_weight(key):
    """Without an edge its weight has no gradient but the prior's; with it a very steep one."""
    sampler = Joint(num_warmup=50)._param_sampler

    def step(state, at):
        curvature = jnp.where(at < 100, 1.0, 1e5)
        state = sampler.step(jax.random.fold_in(key, at), state, curvature * state.position)
        return state, jnp.abs(state.position).max()

    _, sizes = jax.lax.scan(step, sampler.init(jnp.ones(3)), jnp.arange(300))
    assert float(sizes.max()) < 5


@pytest.mark.parametrize(("step", "heat"), [(0, 100.0), (25, 10.0), (50, 1.0), (400, 1.0)])
def test_graphs_cool_down_to_the_target_in_half_the_warm_up(step, heat):
    method = Joint(start_heat=100.0, num_warmup=100, temperature=2.0)
    assert float(method._heat(jnp.asarray(step))) == pytest.approx(2 * heat, rel=1e-5)


@given(st.integers(0, 2**16 - 1), st.integers(0, 99))
def test_a_proposal_marks_free_entries_once(bits, seed):
    free = jnp.asarray([(bits >> k) & 1 for k in range(16)], jnp.float32).reshape(4, 4)
    uniform = jnp.asarray(np.random.default_rng(seed).random((4, 4)), jnp.float32)
    marked = np.asarray(mask_moves._entries(uniform, jnp.ones(4, bool), free))
    assert set(np.unique(marked)) <= {0.0, 1.0}
    np.testing.assert_array_equal(marked.sum(axis=0), np.minimum(np.asarray(free).sum(axis=0), 2))
