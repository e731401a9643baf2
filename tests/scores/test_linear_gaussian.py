"""The linear score against adaptive quadrature of the density written plainly."""

import numpy as np
import pytest
from scipy import integrate, stats

from bayesdag.data import Dataset, Scaling, read
from bayesdag.scores import linear_gaussian
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian


def raw(values, interventions=None) -> Dataset:
    """A data set whose engine units are its own."""
    d = values.shape[1]
    names = tuple(f"v{i}" for i in range(d))
    return Dataset(values, names, interventions, Scaling(np.zeros(d), np.ones(d)))


def regression(seed: int, num_rows: int, num_parents: int, strength: float):
    """Centred rows; the last column depends on the others."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows, num_parents)) @ rng.normal(size=(num_parents, num_parents))
    y = strength * x @ rng.normal(size=num_parents) + 0.5 * rng.normal(size=num_rows)
    values = np.column_stack([x, y])
    return values - values.mean(axis=0)


def log_density(values, score: LinearGaussian):
    """log p(y, log σ | x) from the n-dimensional normal density of y."""
    x, y = values[:, :-1] * score.weight_scale, values[:, -1]
    prior = stats.invgamma(score.noise_shape, scale=score.noise_scale)

    def at(log_sigma: float) -> float:
        variance = np.exp(2 * log_sigma)
        covariance = variance * np.eye(len(y)) + x @ x.T
        square = y @ np.linalg.solve(covariance, y)
        log_det = np.linalg.slogdet(2 * np.pi * covariance)[1]
        return -0.5 * (square + log_det) + prior.logpdf(variance) + np.log(2) + 2 * log_sigma  # pyright: ignore[reportAttributeAccessIssue]

    return at


def peaks_and_total(values, score) -> tuple[float, float]:
    """Highest log density on a grid, and the log of the integral."""
    at = log_density(values, score)
    grid = np.linspace(-5, 9, 400)
    heights = np.array([at(u) for u in grid])
    pieces = np.concatenate([[-9], grid[heights > heights.max() - 60][::4], [14]])
    mass = [
        integrate.quad(lambda u: np.exp(at(u) - heights.max()), a, b, epsabs=1e-14, epsrel=1e-11)[0]
        for a, b in zip(pieces[:-1], pieces[1:], strict=True)
    ]
    return heights.max(), heights.max() + np.log(sum(mass))


def all_but_last(d: int) -> np.ndarray:
    return np.arange(d)[None, :] < d - 1


@pytest.mark.parametrize(
    ("num_rows", "num_parents", "strength", "score"),
    [
        (2, 1, 1.0, LinearGaussian()),
        (3, 5, 1.0, LinearGaussian()),
        (12, 3, 0.0, LinearGaussian()),
        (25, 2, 30.0, LinearGaussian()),
        (15, 2, 2.0, LinearGaussian(weight_scale=3.0, noise_shape=0.7, noise_scale=4.0)),
    ],
)
def test_evidence_is_the_integral_over_the_noise_scale(
    seed, num_rows, num_parents, strength, score
):
    values = regression(seed, num_rows, num_parents, strength)
    prepared = score.prepare(raw(values))
    found = score.log_evidence(prepared, num_parents, all_but_last(num_parents + 1))[0]
    assert found == pytest.approx(peaks_and_total(values, score)[1], abs=1e-8)


def two_peaks(strength: float):
    """A weight far out in its prior: either it is believed, or all is noise."""
    x = np.linspace(-1, 1, 14)[:, None] * 3
    y = strength * x[:, 0] + 0.1 * np.tile([1, -1], 7)
    values = np.column_stack([x, y])
    return values - values.mean(axis=0)


def test_a_density_with_two_peaks_is_integrated_whole():
    values, score = two_peaks(11.4), LinearGaussian(noise_scale=0.01)
    at = log_density(values, score)
    heights = np.array([at(u) for u in np.linspace(-4, 6, 300)])
    inner = (heights[1:-1] > heights[:-2]) & (heights[1:-1] > heights[2:])
    assert inner.sum() == 2
    found = score.log_evidence(score.prepare(raw(values)), 1, all_but_last(2))[0]
    assert found == pytest.approx(peaks_and_total(values, score)[1], abs=1e-8)


def test_many_sets_at_once_are_the_same_as_one_by_one(seed):
    values = np.random.default_rng(seed).normal(size=(40, 5)).cumsum(axis=1)
    score = LinearGaussian()
    prepared = score.prepare(raw(values))
    sets = (np.arange(32)[:, None] >> np.arange(5) & 1 == 1)[:16]
    together = score.log_evidence(prepared, 4, sets)
    single = [score.log_evidence(prepared, 4, s[None, :])[0] for s in sets]
    np.testing.assert_allclose(together, single, rtol=1e-12)


def test_shifts_do_not_matter_and_come_back_in_the_intercept(key, seed):
    values = regression(seed, 200, 2, 1.0)
    score, shift = LinearGaussian(), np.array([5.0, -300.0, 1000.0])
    here, there = score.prepare(raw(values)), score.prepare(raw(values + shift))
    sets = all_but_last(3)
    np.testing.assert_allclose(
        score.log_evidence(there, 2, sets), score.log_evidence(here, 2, sets), rtol=1e-9
    )
    graph = np.array([[[0, 0, 1], [0, 0, 1], [0, 0, 0]]])
    drawn = score.draw(key, there, graph)["mechanism"]
    means = drawn["bias"][0] + shift @ drawn["weights"][0]
    np.testing.assert_allclose(means, shift, rtol=1e-9)


def test_rows_where_a_node_was_set_do_not_count_for_it(seed):
    values = regression(seed, 30, 2, 1.0)
    mask = np.zeros(values.shape, dtype=bool)
    mask[18:, 2] = True
    score, sets = LinearGaussian(), all_but_last(3)
    seeing, alone = score.prepare(raw(values, mask)), score.prepare(raw(values[:18]))
    np.testing.assert_allclose(
        score.log_evidence(seeing, 2, sets), score.log_evidence(alone, 2, sets)
    )


def follows_its_density(log_sigma, values, score) -> float:
    """p-value of the noise scales under the density written plainly."""
    at = log_density(values, score)
    grid = np.linspace(log_sigma.min() - 1, log_sigma.max() + 1, 800)
    heights = np.array([at(u) for u in grid])
    cumulative = np.append(0, np.cumsum(np.exp(heights - heights.max())))
    edges = np.append(grid, 2 * grid[-1] - grid[-2]) - (grid[1] - grid[0]) / 2
    law = stats.kstest(log_sigma, lambda u: np.interp(u, edges, cumulative / cumulative[-1]))
    return law.pvalue


def draws_of_last(key, values, score, num: int):
    """Weights and log noise scale of the last column, given all others as parents."""
    d = values.shape[1]
    graph = np.zeros((num, d, d), dtype=np.int8)
    graph[:, :-1, -1] = 1
    drawn = score.draw(key, score.prepare(raw(values)), graph)
    return drawn["mechanism"]["weights"][:, :-1, -1], drawn["noise"]["log_scale"][:, -1]


some_values = pytest.mark.parametrize(
    "values",
    [regression(1, 4, 2, 1.0), regression(2, 60, 2, 1.0), two_peaks(11.4)],
    ids=["few rows", "many rows", "two peaks"],
)


@some_values
def test_noise_scales_follow_their_density_and_weights_follow_the_noise(key, values):
    num, score = 5000, LinearGaussian(noise_scale=0.01)
    weights, log_sigma = draws_of_last(key, values, score, num)
    assert follows_its_density(log_sigma, values, score) > 1e-3
    x, y = values[:, :-1], values[:, -1]
    variance = np.exp(2 * log_sigma)[:, None, None]
    precision = x.T @ x / variance + np.eye(x.shape[1])
    mean = np.linalg.solve(precision, (x.T @ y)[:, None] / variance)[:, :, 0]
    root = np.linalg.cholesky(precision)
    standard = (np.swapaxes(root, 1, 2) @ (weights - mean)[:, :, None])[:, :, 0]
    assert stats.kstest(standard.ravel(), "norm").pvalue > 1e-3
    correlation = np.corrcoef(standard.T, log_sigma)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 4.5 / np.sqrt(num)


def test_rejection_makes_even_a_coarse_grid_exact(key, monkeypatch):
    values, score = regression(2, 60, 2, 1.0), LinearGaussian(noise_scale=0.01)
    monkeypatch.setattr(linear_gaussian, "NODES_A_WIDTH", 0.5)
    monkeypatch.setattr(linear_gaussian, "ENVELOPE", 1.0)
    _, log_sigma = draws_of_last(key, values, score, 20_000)
    assert follows_its_density(log_sigma, values, score) > 1e-3


@some_values
def test_the_envelope_covers_the_density(values):
    score, node = LinearGaussian(noise_scale=0.01), np.array([values.shape[1] - 1])
    family = score._family(score.prepare(raw(values)), node, np.arange(node[0])[None])
    grid = score._grid(family)
    heights = score._log_density(family, grid)[0]
    fine = np.linspace(grid[0, 0], grid[0, -1], 20_000)
    excess = score._log_density(family, fine[None])[0] - np.interp(fine, grid[0], heights)
    relevant = np.interp(fine, grid[0], heights) > heights.max() - 12
    assert excess[relevant].max() < linear_gaussian.ENVELOPE


def test_it_tells_apart_what_bge_does_not():
    # A noise scale of its own gives the direction away when the variances say so.
    rng = np.random.default_rng(0)
    cause = rng.normal(size=500)
    data = raw(np.column_stack([cause, 1.0 * cause + rng.normal(size=500)]))

    def preference(score):
        prepared = score.prepare(data)
        none, one = np.zeros((1, 2), dtype=bool), np.array([[True, False]])
        forward = score.log_evidence(prepared, 0, none) + score.log_evidence(prepared, 1, one)
        backward = score.log_evidence(prepared, 1, none)
        return (forward - backward - score.log_evidence(prepared, 0, one[:, ::-1]))[0]

    assert preference(BGe()) == pytest.approx(0, abs=1e-9)
    assert abs(preference(LinearGaussian())) > 0.1


def test_the_value_of_a_set_does_not_depend_on_those_asked_for_with_it(seed):
    """Resumed fits ask in other batches, and must end in the same bytes."""
    rng = np.random.default_rng(seed)
    data = read(rng.normal(size=(100, 8)) @ rng.normal(size=(8, 8)))
    parents = rng.random((60, 8)) < 0.4
    parents[:, 3] = False
    score = LinearGaussian()
    together = score.log_evidence(score.prepare(data), 3, parents)
    alone = [score.log_evidence(score.prepare(data), 3, one[None])[0] for one in parents]
    np.testing.assert_array_equal(together, alone)
