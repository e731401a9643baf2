"""Section 3 of the paper: theorems, lemmas, and the slips in its appendix pinned down."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bayesdag.graphs import all_dags, ancestors, is_acyclic, rank_matrix
from bayesdag.knowledge import Knowledge
from bayesdag.sgmcmc import dagspace

D = 5
masks = hnp.arrays(np.float32, (D, D), elements=st.sampled_from([0.0, 1.0]))
orders = st.permutations(range(D))
quickly = settings(max_examples=40, deadline=None)


def distinct(order):
    """Distinct potentials in a given order, unevenly spaced."""
    return jnp.asarray((np.asarray(order, dtype=np.float32) - 1.7) ** 3)


def free(d=D):
    nothing = np.zeros((d, d), dtype=bool)
    return dagspace.support(nothing, np.eye(d, dtype=bool), np.zeros((d, d)))


@given(mask=masks, order=orders)
@quickly
def test_every_mask_and_potential_vector_gives_a_dag(mask, order):
    """Lemma "equivalence of τ to DAG space", part (a)."""
    assert is_acyclic(np.asarray(dagspace.graph(jnp.asarray(mask), distinct(order))))


def test_every_dag_has_a_mask_and_potentials():
    """The same lemma, part (b), for all 543 DAGs of four nodes."""
    for graph in all_dags(4):
        mask, potentials = dagspace.coordinates(graph)
        np.testing.assert_array_equal(dagspace.graph(mask, jnp.asarray(potentials)), graph)


@given(order=orders)
@quickly
def test_edges_run_from_higher_to_lower_potential(order):
    """The main text's direction; one proof in the appendix states the opposite."""
    p = np.asarray(distinct(order))
    np.testing.assert_array_equal(dagspace.order(jnp.asarray(p)), p[:, None] > p[None, :])


@given(mask=masks, order=orders)
@quickly
def test_the_step_and_the_permutation_give_the_same_graph(mask, order):
    """Theorem 3.2, with L strictly lower triangular."""
    p = distinct(order)
    np.testing.assert_allclose(
        mask * dagspace.permuted_order(p), dagspace.graph(jnp.asarray(mask), p), atol=1e-6
    )


def test_a_diagonal_in_the_triangle_would_be_a_self_loop():
    p = distinct(range(D))
    permutation = np.asarray(rank_matrix(p))
    with_diagonal = permutation @ np.tril(np.ones((D, D))) @ permutation.T
    assert not is_acyclic(with_diagonal)
    assert np.diag(np.asarray(dagspace.permuted_order(p))).sum() == 0


@given(order=orders)
@quickly
def test_the_rank_matrix_maximises_the_inner_product(order):
    """P = argmax pᵀ(P o) over permutations, checked by trying them all."""
    import itertools

    p = np.asarray(distinct(order))
    o = np.arange(1, D + 1)
    best = max(p @ o[list(permutation)] for permutation in itertools.permutations(range(D)))
    assert p @ (np.asarray(rank_matrix(jnp.asarray(p))) @ o) == pytest.approx(best, rel=1e-5)


@given(order=orders, labels=orders)
@quickly
def test_differences_of_permuted_potentials_are_permuted_on_both_sides(order, labels):
    """grad(M p) = M grad(p) Mᵀ; the appendix has the transpose on the other side."""
    p = distinct(order)
    matrix = np.eye(D, dtype=np.float32)[list(labels)]
    moved = dagspace.differences(jnp.asarray(matrix @ np.asarray(p)))
    np.testing.assert_allclose(moved, matrix @ np.asarray(dagspace.differences(p)) @ matrix.T)
    if not np.array_equal(matrix, matrix.T):
        wrong = matrix.T @ np.asarray(dagspace.differences(p)) @ matrix
        assert np.abs(wrong - np.asarray(moved)).max() > 0


def test_inference_over_masks_and_potentials_is_inference_over_dags(key):
    """Theorem 3.1 for three nodes: p(G|D) from (W, p) equals p(G|D) with the induced prior."""
    dags = all_dags(3)
    log_likelihood = np.random.default_rng(0).normal(size=len(dags))
    key_p, key_w = jax.random.split(key)
    num = 200_000
    potentials = jax.random.normal(key_p, (num, 3))
    mask = jax.random.bernoulli(key_w, 0.5, (num, 3, 3)).astype(jnp.float32)
    drawn = np.asarray(jax.jit(jax.vmap(dagspace.graph))(mask, potentials))
    code = (drawn.reshape(num, 9) @ 2 ** np.arange(9)).astype(int)
    index = {int(g.reshape(9) @ 2 ** np.arange(9)): k for k, g in enumerate(dags)}
    which = np.array([index[c] for c in code])
    weight = np.exp(log_likelihood[which])  # p(D | τ(W, p)) for draws from the prior
    by_draws = np.bincount(which, weight, minlength=len(dags)) / weight.sum()
    # The induced prior, exactly: orders are equally probable, allowed edges fair coins.
    prior = np.array([_linear_extensions(g) for g in dags]) / (6 * 8)
    exact = prior * np.exp(log_likelihood)
    error = 4 * np.sqrt(exact / exact.sum() / num * weight.max() / weight.mean())
    assert prior.sum() == pytest.approx(1)
    assert (np.abs(by_draws - exact / exact.sum()) < error).all()


def _linear_extensions(graph):
    import itertools

    return sum(
        all(order.index(i) < order.index(j) for i, j in np.argwhere(graph))
        for order in itertools.permutations(range(len(graph)))
    )


def test_equal_potentials_still_give_a_complete_order():
    order = np.asarray(dagspace.order(jnp.zeros(4)))
    np.testing.assert_array_equal(order, np.tril(np.ones((4, 4)), -1))
    np.testing.assert_array_equal(order, dagspace.permuted_order(jnp.zeros(4)))


def test_without_required_edges_nothing_is_lifted(key):
    coordinates = jax.random.normal(key, (D,))
    potentials, log_volume = dagspace.lift(coordinates, free(), 0.1)
    np.testing.assert_array_equal(potentials, coordinates)
    assert log_volume == 0


CHAIN = {"required": [("a", "b"), ("b", "c"), ("e", "c"), ("a", "e")]}
_required = Knowledge.read(CHAIN).bind(tuple("abcde"))
SUPPORT = dagspace.support(_required.required, _required.forbidden, _required.log_odds)

lift = jax.jit(lambda coordinates: dagspace.lift(coordinates, SUPPORT, 0.1))


@given(hnp.arrays(np.float32, D, elements=st.floats(-2, 2, width=32)), masks)
@quickly
def test_lifted_potentials_agree_with_every_required_path(coordinates, mask):
    potentials, _ = lift(jnp.asarray(coordinates))
    graph = np.asarray(dagspace.graph(dagspace.confine(jnp.asarray(mask), SUPPORT), potentials))
    assert is_acyclic(graph)
    assert _required.allows(graph)
    order = np.asarray(dagspace.order(potentials))
    assert (order[ancestors(_required.required)] == 1).all()


def test_the_volume_of_the_lift_is_its_log_determinant(key):
    coordinates = 0.2 * jax.random.normal(key, (D,))
    jacobian = jax.jit(jax.jacobian(lambda c: lift(c)[0]))(coordinates)
    _, log_volume = lift(coordinates)
    np.testing.assert_allclose(np.linalg.slogdet(jacobian)[1], log_volume, rtol=1e-4)


def test_the_mask_keeps_forbidden_edges_out_and_required_ones_in():
    mask = np.asarray(dagspace.confine(jnp.ones((D, D)), SUPPORT))
    assert (mask[_required.forbidden] == 0).all()
    mask = np.asarray(dagspace.confine(jnp.zeros((D, D)), SUPPORT))
    np.testing.assert_array_equal(mask, _required.required)
