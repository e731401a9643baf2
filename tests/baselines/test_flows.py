"""Affine coupling: its Jacobian, and a posterior that a diagonal Gaussian cannot reach."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdag.baselines.flows import start_flow, transform
from bayesdag.baselines.optimisers import descend


def test_the_log_determinant_is_that_of_the_jacobian(key):
    flow = start_flow(key, 3, 5, 4)
    flow = jax.tree.map(
        lambda leaf: leaf + 0.2 * np.cos(np.arange(leaf.size)).reshape(leaf.shape).astype("f"), flow
    )
    x = jax.random.normal(key, (5,))
    _, log_det = jax.jit(transform)(flow, x)
    jacobian = jax.jit(jax.jacobian(lambda x: transform(flow, x)[0]))(x)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-4)
    assert abs(float(log_det)) > 0.01


def test_it_starts_as_the_identity(key):
    x = jax.random.normal(key, (5,))
    moved, log_det = jax.jit(transform)(start_flow(key, 2, 5, 4), x)
    np.testing.assert_array_equal(moved, x)
    assert log_det == 0


@pytest.mark.parametrize("hidden", [4, 256])
def test_one_step_of_all_weights_moves_a_point_by_that_step_at_most(key, hidden):
    """Else the step size that suits the rest of a posterior makes wide layers diverge."""
    flow, x = start_flow(key, 1, 4, hidden), jnp.ones(4)
    given = jnp.array([1.0, 0.0, 1.0, 0.0])
    sign = jnp.sign(jnp.tanh(given @ flow["first"][0]))
    flow["last"] = jnp.zeros_like(flow["last"]).at[0, :, 1].set(0.02 * sign[:, None])
    moved, _ = jax.jit(transform)(flow, x)
    assert 0 < jnp.abs(moved - x).max() <= 0.02


def test_it_learns_a_correlation(key):
    """The best diagonal Gaussian is half a log(1 / (1 - 0.9²)) = 0.83 nats away."""
    precision = jnp.linalg.inv(jnp.array([[1.0, 0.9], [0.9, 1.0]]))
    standard = jax.random.normal(key, (512, 2))
    constant = 0.5 * float(np.log(1 - 0.81))

    def divergence(flow):
        x, log_det = jax.vmap(lambda z: transform(flow, z))(standard)
        target = -0.5 * jnp.einsum("si,ij,sj->s", x, precision, x) - constant
        return (-0.5 * (standard**2).sum(axis=1) - log_det - target).mean()

    optimiser = optax.adam(0.02)
    flow = start_flow(key, 2, 2, 8)

    def step(carry, _):
        flow, state = carry
        value, grad = jax.value_and_grad(divergence)(flow)
        return descend(optimiser, grad, state, flow), value

    _, values = jax.lax.scan(step, (flow, optimiser.init(flow)), None, length=300)
    assert values[0] > 0.5
    assert values[-1] < 0.1
