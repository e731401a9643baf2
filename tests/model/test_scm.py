"""The structural causal model against closed forms of the linear Gaussian case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayesdag.data import Scaling
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from tests.toys import TRUTH, WEIGHTS

SHIFT, SCALE = np.array([50.0, 2.0, 0.0, 9.0]), np.array([10.0, 1.0, 0.1, 3.0])
SIGMA = np.array([1.0, 0.7, 0.9, 0.6])
BIAS = np.array([0.1, -0.2, 0.0, 0.3])
MODEL = SCM(Linear(), Gaussian(), Scaling(SHIFT, SCALE))
PARAMS = {
    "mechanism": {"weights": jnp.asarray(WEIGHTS), "bias": jnp.asarray(BIAS)},
    "noise": {"log_scale": jnp.log(jnp.asarray(SIGMA))},
}
GRAPH = jnp.asarray(TRUTH)
NOTHING = jnp.zeros(4, dtype=bool)

# x = noise (I - B)^-1 in scaled units: mean and covariance of the observational law.
SOLVE = np.linalg.inv(np.eye(4) - WEIGHTS)
MEAN = (BIAS @ SOLVE) * SCALE + SHIFT
COVARIANCE = (SOLVE.T * SIGMA**2) @ SOLVE * np.outer(SCALE, SCALE)


# Compiled as wholes: step by step they would be many small programs.
log_prob, abduct = jax.jit(MODEL.log_prob), jax.jit(MODEL.abduct)
draw = jax.jit(MODEL.sample, static_argnums=3)


def sample(key, num_rows, do_mask=NOTHING, do_values=None):
    values = np.zeros((num_rows, 4), np.float32) if do_values is None else do_values
    return np.asarray(draw(PARAMS, key, GRAPH, num_rows, do_mask, values), dtype=float)


def test_density_of_rows_is_that_of_the_implied_gaussian(key):
    x = sample(key, 20)
    expected = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(x)
    found = log_prob(PARAMS, GRAPH, jnp.asarray(x), jnp.zeros((20, 4), dtype=bool))
    np.testing.assert_allclose(found, expected, rtol=2e-4)


def test_a_cell_that_was_set_adds_nothing_to_the_density(key):
    x = jnp.asarray(sample(key, 5))
    mask = np.zeros((5, 4), dtype=bool)
    whole = log_prob(PARAMS, GRAPH, x, jnp.asarray(mask))
    mask[:, 2] = True
    without = log_prob(PARAMS, GRAPH, x, jnp.asarray(mask))
    residual = np.asarray(abduct(PARAMS, GRAPH, x))[:, 2]
    term = stats.norm(0, SIGMA[2]).logpdf(residual) - np.log(SCALE[2])  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(np.asarray(whole) - np.asarray(without), term, atol=2e-4)


def test_sampled_rows_have_the_implied_moments(key):
    # Independent batches, so that their spread is the error bar.
    batches = np.stack([sample(k, 2000) for k in jax.random.split(key, 16)])
    means = batches.mean(axis=1)
    error = means.std(axis=0, ddof=1) / 4
    assert (np.abs(means.mean(axis=0) - MEAN) < 4 * error).all()
    covariances = np.stack([np.cov(batch.T) for batch in batches])
    error = covariances.std(axis=0, ddof=1) / 4
    assert (np.abs(covariances.mean(axis=0) - COVARIANCE) < 4 * error).all()


def test_an_intervention_moves_descendants_by_the_total_effect_and_nothing_else(key):
    mask = NOTHING.at[1].set(True)  # soil
    low = sample(key, 50, mask, jnp.full((50, 4), 2.0))
    high = sample(key, 50, mask, jnp.full((50, 4), 3.0))  # one unit = one scaled unit more
    np.testing.assert_allclose(high[:, 1] - low[:, 1], 1, rtol=1e-5)
    np.testing.assert_allclose(high[:, 0], low[:, 0])
    np.testing.assert_allclose(high[:, 2] - low[:, 2], WEIGHTS[1, 2] * 0.1, rtol=1e-3)
    np.testing.assert_allclose(high[:, 3] - low[:, 3], WEIGHTS[1, 2] * WEIGHTS[2, 3] * 3, rtol=1e-3)


def test_abduction_then_prediction_gives_the_rows_back(key):
    x = jnp.asarray(sample(key, 10))
    residuals = abduct(PARAMS, GRAPH, x)
    again = jax.jit(MODEL.predict)(PARAMS, GRAPH, residuals, NOTHING, jnp.zeros((10, 4)))
    np.testing.assert_allclose(again, x, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [2, 3, 1, 0]])
def test_the_order_of_the_columns_does_not_matter(key, order):
    """Ancestral sampling must follow the graph, not the index."""
    place = np.argsort(order)
    moved = jax.tree.map(
        lambda leaf: leaf[np.ix_(place, place)] if leaf.ndim == 2 else leaf[place], PARAMS
    )
    model = SCM(Linear(), Gaussian(), Scaling(SHIFT[place], SCALE[place]))
    residuals = jax.random.normal(key, (6, 4))
    values = jnp.zeros((6, 4))
    straight = jax.jit(MODEL.predict)(PARAMS, GRAPH, residuals, NOTHING, values)
    shuffled = jax.jit(model.predict)(
        moved, GRAPH[np.ix_(place, place)], residuals[:, place], NOTHING, values
    )
    np.testing.assert_allclose(shuffled, straight[:, place], rtol=1e-5, atol=1e-4)
