"""Monotone tables: an inverse, slopes that integrate, and straight lines beyond the ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.data import Scaling
from bayesdag.model import warps
from bayesdag.model.mechanisms.networks import Networks
from bayesdag.model.noises.skewed_student_t import SkewedStudentT
from bayesdag.model.scm import SCM

GRID = np.linspace(-3.0, 3.0, 13)
TABLE = np.exp(GRID)  # the logarithm, in pieces
X = np.array([-4.0, 0.06, 0.3, 1.0, 2.0, 15.0, 60.0])


def test_unwarping_undoes_warping():
    z = warps.warped(TABLE, GRID, jnp.asarray(X))
    np.testing.assert_allclose(warps.unwarped(TABLE, GRID, z), X, rtol=1e-5)
    assert (np.diff(z) > 0).all()


def test_it_runs_through_its_table():
    np.testing.assert_allclose(warps.warped(TABLE, GRID, jnp.asarray(TABLE)), GRID, atol=1e-5)


def test_the_slope_is_the_derivative():
    slope = jax.vmap(jax.grad(lambda x: warps.warped(TABLE, GRID, x)))(jnp.asarray(X))
    np.testing.assert_allclose(
        np.exp(warps.log_slope(TABLE, GRID, jnp.asarray(X))), slope, rtol=1e-5
    )


@pytest.fixture
def post_nonlinear():
    """x1 = exp(x0 + noise / 2), as a model and its parameters; x0 stays as it is."""
    model = SCM(Networks(width=2), SkewedStudentT(), Scaling(np.zeros(2), np.ones(2)))
    mechanism = jax.tree.map(jnp.asarray, Networks(width=2).init(jax.random.key(0), 2))
    mechanism |= {
        "second": jnp.zeros((2, 2)),
        "slopes": jnp.array([[0.0, 0.0], [1.0, 0.0]]),
        "warped": jnp.array([0.0, 1.0]),
        "warp": jnp.asarray(np.stack([GRID, TABLE])),
        "reach": jnp.array([3.0, 3.0]),
    }
    noise = {"log_scale": jnp.log(jnp.array([1.0, 0.5])), "log_degrees": jnp.log(jnp.full(2, 1e3))}
    return model, {"mechanism": mechanism, "noise": noise | {"log_skew": jnp.zeros(2)}}


GRAPH = jnp.array([[0, 1], [0, 0]])
FREE = jnp.zeros(2, dtype=bool)


def test_a_warped_variable_has_a_density_that_integrates_to_one(post_nonlinear):
    model, params = post_nonlinear

    @jax.jit
    def on_grid(z):
        x1 = warps.unwarped(TABLE, GRID, z)
        rows = jnp.stack([jnp.full_like(x1, 0.4), x1], axis=1)
        return x1, model.log_terms(params, GRAPH, rows)[:, 1]

    x1, log_density = on_grid(np.linspace(-9, 11, 40001, dtype=np.float32))
    density = np.exp(log_density)
    np.testing.assert_allclose(np.trapezoid(density, x1), 1, atol=5e-3)


def test_noise_that_is_abducted_gives_the_rows_again(post_nonlinear):
    model, params = post_nonlinear

    @jax.jit
    def there_and_back(key):
        unset = jnp.zeros((50, 2))
        rows = model.sample(params, key, GRAPH, 50, FREE, unset)
        noise = model.abduct(params, GRAPH, rows)
        return rows, noise, model.predict(params, GRAPH, noise, FREE, unset)

    rows, noise, again = map(np.asarray, there_and_back(jax.random.key(1)))
    np.testing.assert_allclose(again, rows, rtol=1e-3, atol=1e-4)
    assert (rows[:, 1] > -1).all()
    # log x1 - x0 is the noise, but for the pieces of the table
    inside = (rows[:, 1] > TABLE[0]) & (rows[:, 1] < TABLE[-1])
    np.testing.assert_allclose(
        np.log(rows[inside, 1]) - rows[inside, 0], noise[inside, 1], atol=0.06
    )
