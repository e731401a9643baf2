"""Closed forms of linear Gaussian models against the simulation that serves all others."""

import dataclasses

import jax
import numpy as np

from bayesdag.model.noises.student_t import StudentT
from bayesdag.posterior import edge_evidence, linear_gaussian, predictive_checks
from tests.posterior.test_edge_evidence import EDGES, certain


def test_variances_equal_those_of_simulated_rows(seed, key, monkeypatch):
    data, posterior = certain(seed)
    rows = np.full(len(EDGES), float(data.num_rows))
    closed = edge_evidence.lost_log_likelihood(key, posterior._ensemble, EDGES, rows)
    monkeypatch.setattr(linear_gaussian, "applies", lambda model: False)
    simulated = np.array(
        [
            edge_evidence.lost_log_likelihood(k, posterior._ensemble, EDGES, rows)
            for k in jax.random.split(key, 20)
        ]
    )
    error = simulated.std(axis=0) / np.sqrt(len(simulated) - 1)
    # A ratio of variances of 256 rows is biased by a percent.
    assert (np.abs(simulated.mean(axis=0) - closed) < 4 * error + 0.02 * closed).all()


def test_given_contexts_count_as_they_are(seed):
    """The variance of the first variable is then that of its rows, not that of the model."""
    _, posterior = certain(seed)
    some, rng = np.arange(4), np.random.default_rng(seed)
    params, graphs = posterior._ensemble.take(some)
    edges = np.array([[0, 1]])
    plain = linear_gaussian.variance_ratios(params, graphs, edges, None)
    deviation = np.exp(np.asarray(params["noise"]["log_scale"]))[:, 0]
    held = np.zeros((2000, 4))
    held[:, 0] = rng.permutation(np.linspace(-1, 1, 2000))
    first = np.arange(4) == 0
    given = linear_gaussian.variance_ratios(params, graphs, edges, (first, held))
    expected = plain[:, 0] * held[:, 0].var() / deviation**2
    np.testing.assert_allclose(given[:, 0], expected, rtol=1e-9)


def test_probabilities_equal_those_of_the_density_on_a_grid(seed, monkeypatch):
    data, posterior = certain(seed, num_rows=200)
    params, graphs = posterior._ensemble.take(np.arange(3))
    x = posterior.model.scaling.apply(data.values)
    closed = predictive_checks._uniforms(posterior._ensemble.engine, params, graphs, x)
    monkeypatch.setattr(linear_gaussian, "applies", lambda model: False)
    on_grid = predictive_checks._uniforms(posterior._ensemble.engine, params, graphs, x)
    np.testing.assert_allclose(closed, on_grid, atol=2e-3)


def test_other_noise_is_simulated(seed):
    _, posterior = certain(seed)
    assert linear_gaussian.applies(posterior.model)
    other = dataclasses.replace(posterior.model, noise=StudentT())
    assert not linear_gaussian.applies(other)
