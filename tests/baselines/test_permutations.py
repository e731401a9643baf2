"""Random permutations: hard in value, distributed as promised, with gradients."""

from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag.baselines import permutations as drawn
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn, assignment

SOFT = Sinkhorn(temperature=0.5)


def is_permutation(matrix) -> bool:
    matrix = np.round(np.asarray(matrix), 4)
    ones = (matrix.sum(axis=0) == 1).all() and (matrix.sum(axis=1) == 1).all()
    return bool(ones and np.isin(matrix, (0, 1)).all())


def test_the_assignment_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        scores = rng.normal(size=(4, 4)).astype(np.float32)
        best = max(permutations(range(4)), key=lambda p, of=scores: of[range(4), p].sum())
        for columns in (np.zeros(4), rng.normal(0, 3, size=4)):
            found = drawn.hard_assignment(jnp.asarray(scores), jnp.asarray(columns, jnp.float32))
            assert is_permutation(found)
            np.testing.assert_array_equal(np.asarray(found).argmax(axis=1), best)


def test_gumbel_sinkhorn_is_hard_and_has_a_gradient(key):
    logits = jax.random.normal(key, (4, 4))

    def loss(logits):
        permutation, sweeps = drawn.gumbel_sinkhorn(key, logits, SOFT)
        return (permutation * jnp.arange(16.0).reshape(4, 4)).sum(), (permutation, sweeps)

    grad, (permutation, sweeps) = jax.jit(jax.grad(loss, has_aux=True))(logits)
    assert is_permutation(permutation)
    assert sweeps >= 1
    assert np.isfinite(grad).all()
    assert np.abs(grad).max() > 0


def test_the_first_place_of_gumbel_top_k_is_a_softmax(key):
    scores, num = jnp.array([0.0, 1.0, 2.0]), 4000
    draw = jax.vmap(lambda k: drawn.gumbel_top_k(k, scores, 0.5))
    found = np.asarray(jax.jit(draw)(jax.random.split(key, num)))
    assert all(is_permutation(one) for one in found[:20])
    first = np.round(found[:, :, 0]).mean(axis=0)
    expected = np.asarray(jax.nn.softmax(scores))
    error = np.sqrt(expected * (1 - expected) / num)
    assert (np.abs(first - expected) < 4 * error).all()


def test_an_order_says_who_comes_before_whom():
    permutation = jnp.zeros((3, 3)).at[jnp.array([0, 1, 2]), jnp.array([2, 0, 1])].set(1.0)
    order = np.asarray(drawn.order_of(permutation))  # node 1, then 2, then 0
    np.testing.assert_array_equal(order, [[0, 0, 0], [1, 0, 1], [1, 0, 0]])


def test_newton_steps_find_the_duals_of_thousands_of_sweeps(seed):
    rng = np.random.default_rng(seed)
    cold = Sinkhorn(temperature=0.2, max_iterations=20_000)
    scores = jnp.asarray(rng.normal(0, 3, (12, 20, 20)) + rng.gumbel(size=(12, 20, 20))) / 0.2

    solved: Any = assignment  # a function with a derivative of its own has no type

    def both(scores):
        swept, duals = solved(cold, scores, jnp.zeros(20))
        columns, rounds = drawn.newton_duals(scores, cold)
        soft, after = solved(cold, scores, columns)
        return swept, duals.num_iterations, soft, after, rounds

    swept, sweeps, soft, after, rounds = jax.jit(jax.vmap(both))(scores.astype(jnp.float32))
    np.testing.assert_allclose(soft, swept, atol=5e-3)  # both stop at a tolerance of 1e-3
    np.testing.assert_allclose(soft.sum(axis=1), 1, atol=2e-3)
    assert rounds.max() < 40
    assert after.num_iterations.max() <= 3
    assert sweeps.mean() > 300
