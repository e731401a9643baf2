"""Gradients of the relaxations against their definitions, in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.graphs import rank_matrix
from bayesdag.sgmcmc.relaxations.logistic import Logistic
from bayesdag.sgmcmc.relaxations.sinkhorn import Duals, Sinkhorn
from bayesdag.sgmcmc.relaxations.softsort import SoftSort

D = 6
EXACT = Sinkhorn(tolerance=1e-12, ridge=1e-12)


def start(relaxation, d=D):
    """A carry in double precision."""
    if isinstance(relaxation, Sinkhorn):
        return Duals(jnp.zeros(d), jnp.zeros((), jnp.int32))
    return None


def scene(seed, scale=0.1):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=D), rng.normal(size=(D, D))


@pytest.mark.parametrize("relaxation", [EXACT, SoftSort(), Logistic()], ids=str)
def test_the_gradient_is_that_of_its_own_soft_order(relaxation, seed):
    with jax.enable_x64(True):
        p, weight = scene(seed)

        def soft(p):
            return (weight * relaxation.relaxed(p, start(relaxation))[0]).sum()

        gradient = jax.jit(jax.grad(soft))(jnp.asarray(p))
        steps = jnp.asarray(1e-6 * np.eye(D))
        numeric = jax.jit(jax.vmap(lambda step: (soft(p + step) - soft(p - step)) / 2e-6))(steps)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("relaxation", [EXACT, SoftSort()], ids=str)
def test_the_cotangent_is_taken_at_the_hard_permutation(relaxation, seed):
    """Pinned: soft cotangents are another estimator, and usually not far off."""
    with jax.enable_x64(True):
        p, weight = scene(seed)
        p = jnp.asarray(p)
        below = np.tril(np.ones((D, D)), -1)
        hard = np.asarray(rank_matrix(p))
        # d/dP of <weight, P L Pᵀ> at the hard P.
        cotangent = weight @ hard @ below.T + weight.T @ hard @ below

        def soft_permutation(p):
            return (
                relaxation._soft(p, start(relaxation))[0]
                if relaxation is EXACT
                else (relaxation._soft(p))
            )

        def at_hard(p):
            return (weight * relaxation(jax.random.key(0), p, start(relaxation))[0]).sum()

        def at_soft(p):
            return (weight * relaxation.relaxed(p, start(relaxation))[0]).sum()

        pulled = jax.jit(lambda p: jax.vjp(soft_permutation, p)[1](jnp.asarray(cotangent))[0])(p)
        np.testing.assert_allclose(jax.jit(jax.grad(at_hard))(p), pulled, rtol=1e-8)
        assert np.abs(jax.jit(jax.grad(at_soft))(p) - pulled).max() > 1e-3


def test_sinkhorn_without_a_tape_agrees_with_unrolling(seed):
    p, weight = (x.astype(np.float32) for x in scene(seed))
    relaxation = Sinkhorn(tolerance=1e-6)

    def unrolled(p):
        scores = p[:, None] * jnp.arange(1.0, D + 1)[None, :] / relaxation.temperature

        def sweep(scores, _):
            scores = scores - jax.nn.logsumexp(scores, axis=1, keepdims=True)
            return scores - jax.nn.logsumexp(scores, axis=0, keepdims=True), None

        return (weight * jnp.exp(jax.lax.scan(sweep, scores, None, length=200)[0])).sum()

    def implicit(p):
        return (weight * relaxation._soft(p, relaxation.init(D))[0]).sum()

    np.testing.assert_allclose(
        jax.jit(jax.grad(implicit))(p), jax.jit(jax.grad(unrolled))(p), rtol=2e-3, atol=1e-3
    )


def test_sinkhorn_is_doubly_stochastic_to_its_tolerance(key):
    relaxation = Sinkhorn()
    soft, _ = jax.jit(relaxation._soft)(0.1 * jax.random.normal(key, (20,)), relaxation.init(20))
    np.testing.assert_allclose(soft.sum(axis=1), 1, atol=2e-3)
    np.testing.assert_allclose(soft.sum(axis=0), 1, atol=2e-3)


def test_a_warm_start_saves_sinkhorn_most_of_its_iterations(key):
    relaxation = Sinkhorn(spacing=10.0)
    p = 0.05 * jax.random.normal(key, (20,))
    call = jax.jit(relaxation.permutation)
    _, cold = call(p, relaxation.init(20))
    _, warm = call(p + 1e-4 * jax.random.normal(key, (20,)), cold)
    assert int(cold.num_iterations) > 30
    assert int(warm.num_iterations) < int(cold.num_iterations) / 3


def test_a_newton_step_leaves_sinkhorn_a_sweep_or_two_after_a_small_move(key):
    relaxation = Sinkhorn()
    p = jax.random.normal(key, (20,))
    call = jax.jit(relaxation.permutation)
    _, before = call(p, relaxation.init(20))
    _, after = call(p + 0.002 * jax.random.normal(jax.random.fold_in(key, 1), (20,)), before)
    assert int(after.num_iterations) <= 5  # about thirty without it


def test_sinkhorn_stops_at_its_limit_and_stays_finite(key):
    relaxation = Sinkhorn(spacing=10.0, max_iterations=7)
    p = jax.random.normal(key, (20,))

    def loss(p):
        order, carry = relaxation(key, p, relaxation.init(20))
        return (order * order[::-1]).sum(), carry

    gradient, carry = jax.jit(jax.grad(loss, has_aux=True))(p)
    assert int(carry.num_iterations) == 7
    assert np.isfinite(gradient).all()
