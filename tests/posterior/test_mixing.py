"""Effective sizes and R-hat of many quantities at once, against ArviZ's of each."""

import numpy as np
import pytest

from bayesdag.posterior import mixing

array_stats = pytest.importorskip("arviz_stats.base.array").array_stats


def chains(rng, num_chains, num_draws, correlation):
    """Autoregressive quantities, one for each correlation; then an indicator of each."""
    noise = rng.normal(size=(num_chains, num_draws, len(correlation)))
    values = np.zeros_like(noise)
    for t in range(num_draws):
        values[:, t] = np.asarray(correlation) * values[:, t - 1] * (t > 0) + noise[:, t]
    return np.concatenate([values, values > 0.3], axis=2)


@pytest.mark.parametrize(("num_chains", "num_draws"), [(4, 100), (1, 37), (2, 8), (3, 501), (2, 4)])
@pytest.mark.parametrize("of_ranks", [False, True])
def test_effective_sizes_are_those_of_arviz(seed, num_chains, num_draws, of_ranks):
    values = chains(np.random.default_rng(seed), num_chains, num_draws, [0.0, 0.5, 0.95, -0.6])
    values = values[:, :, np.ptp(values, axis=(0, 1)) > 0]
    how = "bulk" if of_ranks else "mean"
    expected = array_stats.ess(values, chain_axis=0, draw_axis=1, method=how)
    np.testing.assert_allclose(mixing.effective_sizes(values, of_ranks), expected, rtol=1e-6)


def test_split_rhat_is_that_of_arviz(seed):
    values = chains(np.random.default_rng(seed), 4, 101, [0.0, 0.9])
    values[0, :, 0] += 3.0
    expected = array_stats.rhat(values, chain_axis=0, draw_axis=1, method="split")
    np.testing.assert_allclose(mixing.split_rhat(values), expected, rtol=1e-9)


def test_many_quantities_are_taken_in_pieces(seed, monkeypatch):
    values = chains(np.random.default_rng(seed), 2, 50, [0.1, 0.4, 0.7])
    whole = mixing.effective_sizes(values)
    monkeypatch.setattr(mixing, "_TOGETHER", 250)
    np.testing.assert_array_equal(mixing.effective_sizes(values), whole)
