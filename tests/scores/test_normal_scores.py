"""Normal scores: which columns have them, what they cost, and what they leave undecided."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayesdag import read
from bayesdag.scores._neural.normal_scores import _kernels, normal_scores
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS

# A skewed column is warned about when it is read, which is not the matter here.
pytestmark = pytest.mark.filterwarnings("ignore:column")
_CLASSES = ("network", "linear", "additive", "gaussian process")
NUM_ROWS = NETWORK_ROWS
SCORE = dataclasses.replace(SMALL_NETWORKS, trusted_rows=np.inf)


def margins(*columns, observed=None):
    values = np.column_stack(columns)
    everywhere = np.ones(values.shape, dtype=bool) if observed is None else observed
    return normal_scores(np.random.default_rng(0), values, everywhere)


def test_kernels_out_of_reach_add_nothing():
    rng = np.random.default_rng(0)
    sources, widths = rng.standard_t(2, size=400), rng.uniform(0.01, 1, 400)
    at = np.sort(np.append(sources[:50], [-40.0, 60.0]))
    distance = (at[:, None] - sources) / widths
    kernel = np.exp(-0.5 * distance**2) / widths
    values, slopes = _kernels(at, sources, widths)
    np.testing.assert_allclose(values, kernel.sum(axis=1), rtol=1e-12, atol=1e-12)
    expected = -(kernel * distance / widths).sum(axis=1)
    np.testing.assert_allclose(slopes, expected, rtol=1e-11, atol=1e-9)


def test_normal_columns_are_left_as_they_are():
    rng = np.random.default_rng(1)
    found = margins(*rng.normal(size=(20, NUM_ROWS)))
    assert len(found.warped) <= 1
    np.testing.assert_array_equal(np.delete(found.log_slope, found.warped), 0)


@pytest.mark.parametrize("bend", [np.exp, lambda z: z**3, np.tanh], ids=["exp", "cube", "tanh"])
def test_a_bent_column_is_straightened_at_the_price_of_its_density(bend):
    z = np.random.default_rng(2).normal(size=NUM_ROWS)
    x = 3 * bend(z) + 1
    found = margins(x)
    assert found.warped.tolist() == [0]
    assert stats.shapiro(found.values[:, 0]).pvalue > 0.9
    # Σ log h' = log density of x over that of its normal score, here known but for the
    # estimation of a density from so few rows.
    slope = (stats.norm.logpdf(z) - stats.norm.logpdf(found.values[:, 0])).sum()
    steps = 1e-6
    slope -= np.log((bend(z + steps) - bend(z - steps)) / (2 * steps) * 3).sum()
    assert slope - 60 < found.log_slope[0] < slope + 15


def test_a_column_of_few_values_has_no_density():
    rng = np.random.default_rng(3)
    assert margins(rng.integers(0, 9, NUM_ROWS) ** 3.0).warped.size == 0


def test_units_change_the_density_and_nothing_else():
    x = np.exp(np.random.default_rng(4).normal(size=NUM_ROWS))
    one, ten = margins(x), margins(10 * x)
    np.testing.assert_allclose(one.values, ten.values, atol=1e-6)
    assert one.log_slope[0] - ten.log_slope[0] == pytest.approx(NUM_ROWS * np.log(10), abs=0.1)


def test_rows_that_were_set_say_nothing_of_the_distribution():
    x = np.exp(np.random.default_rng(5).normal(size=NUM_ROWS))
    observed = np.ones((NUM_ROWS, 1), dtype=bool)
    observed[200:] = False
    elsewhere = np.where(observed[:, 0], x, 2.0)
    one, two = margins(x, observed=observed), margins(elsewhere, observed=observed)
    np.testing.assert_array_equal(one.log_slope, two.log_slope)
    np.testing.assert_array_equal(one.values[:200], two.values[:200])
    assert len(set(two.values[200:, 0])) == 1


def direction(x):
    """Log odds of 0 -> 1 against 1 -> 0."""
    stats_ = SCORE.prepare(read(x))
    pairs = [SCORE.log_evidence(stats_, j, np.array([[0, 0], [j, 1 - j]], bool)) for j in (0, 1)]
    gain = [pair[1] - pair[0] for pair in pairs]
    return gain[1] - gain[0], min(gain)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_normal_copula_has_no_direction_whatever_its_margins(seed):
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=NUM_ROWS)
    odds, gain = direction(z**3)
    assert gain > 50
    assert abs(odds) < 3


def test_noise_that_multiplies_does_not_turn_an_edge_around():
    rng = np.random.default_rng(6)
    x = rng.normal(size=NUM_ROWS)
    y = np.exp(np.abs(x) + 0.4 * rng.normal(size=NUM_ROWS))
    odds, _ = direction(np.column_stack([x, y]))
    assert odds > 5


def test_functions_behind_normal_scores_are_drawn():
    rng = np.random.default_rng(7)
    x = rng.normal(size=NUM_ROWS)
    y = np.exp(x + 0.4 * rng.normal(size=NUM_ROWS))
    data = read(np.column_stack([x, y]))
    stats_ = SCORE.prepare(data)
    graphs = np.tile(np.array([[0, 1], [0, 0]], np.int8), (5, 1, 1))
    params = SCORE.draw(jax.random.key(0), stats_, graphs)
    assert (params["mechanism"]["warped"][:, 1] == 1).all()
    one = partial(SCORE.scm(data).sample, num_rows=500, do_mask=jnp.zeros(2, bool))
    of_draw = jax.vmap(
        lambda theta, key, graph: one(theta, key, graph, do_values=jnp.zeros((500, 2)))
    )
    drawn = jax.jit(of_draw)(
        jax.tree.map(jnp.asarray, params),
        jax.random.split(jax.random.key(1), 5),
        jnp.asarray(graphs),
    )
    rows = np.asarray(drawn).reshape(-1, 2)
    assert (rows[:, 1] > 0).mean() > 0.99
    np.testing.assert_allclose(
        np.quantile(rows[:, 1], [0.1, 0.5, 0.9]), np.quantile(y, [0.1, 0.5, 0.9]), rtol=0.25
    )
    assert np.corrcoef(np.log(np.maximum(rows[:, 1], 0.01)), rows[:, 0])[0, 1] > 0.85


def test_the_weights_of_functions_name_the_one_that_made_the_rows():
    rng = np.random.default_rng(8)
    x = rng.normal(size=NUM_ROWS)
    stats_ = SCORE.prepare(read(np.column_stack([x, np.exp(x + 0.4 * rng.normal(size=NUM_ROWS))])))
    graphs = np.tile(np.array([[0, 1], [0, 0]], np.int8), (3, 1, 1))
    weights = SCORE.function_weights(stats_, graphs)
    classes = np.stack([weights[name] for name in _CLASSES])
    np.testing.assert_allclose(classes.sum(axis=0), 1, atol=1e-6)
    assert weights["linear"][1] > 0.9
    assert weights["of normal scores"][1] > 0.99


def test_values_count_as_they_are_where_normal_scores_are_left_out():
    data = read(np.exp(np.random.default_rng(0).normal(size=(300, 2))))
    left_out = dataclasses.replace(SMALL_NETWORKS, normal_scores=False).prepare(data)
    assert len(SMALL_NETWORKS.prepare(data).margins.warped) == 2
    assert len(left_out.margins.warped) == 0
    assert not left_out.margins.log_slope.any()
