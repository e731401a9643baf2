"""BGe against densities written row by row, against the published code, and by its symmetry."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as distributions

from bayesdag import graphs
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.scores.bge import BGe


def raw(values, interventions=None) -> Dataset:
    """A data set whose engine units are its own."""
    d = values.shape[1]
    names = tuple(f"v{i}" for i in range(d))
    return Dataset(values, names, interventions, Scaling(np.zeros(d), np.ones(d)))


def correlated(seed: int, num_rows: int, d: int):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(num_rows, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def score_of(score: BGe, data: Dataset, dags) -> np.ndarray:
    prepared = score.prepare(data)
    nodes = range(data.num_variables)
    return sum(score.log_evidence(prepared, i, dags[:, :, i] != 0) for i in nodes)  # pyright: ignore[reportReturnType]


def row_by_row(values, alpha_mu: float, alpha_w: float, d: int) -> float:
    """Evidence of some of d columns: the product of its Student t predictive densities."""
    num_columns = values.shape[1]
    freedom = alpha_w - d + num_columns
    scale = np.eye(num_columns) * alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1)
    mean, weight, total = np.zeros(num_columns), alpha_mu, 0.0
    for row in values:
        df = freedom - num_columns + 1
        shape = scale * (weight + 1) / (weight * df)
        total += distributions.multivariate_t(mean, shape, df).logpdf(row)
        scale = scale + weight / (weight + 1) * np.outer(row - mean, row - mean)
        mean = (weight * mean + row) / (weight + 1)
        weight, freedom = weight + 1, freedom + 1
    return total


@pytest.mark.parametrize(("alpha_mu", "alpha_w"), [(1.0, None), (0.3, 9.5)])
def test_evidence_is_the_product_of_predictive_densities(seed, alpha_mu, alpha_w):
    d = 4
    values = correlated(seed, 12, d)
    score = BGe(alpha_mu, alpha_w)
    prepared = score.prepare(raw(values))
    subsets = np.arange(2**d)[:, None] >> np.arange(d) & 1 == 1
    for node in range(d):
        parents = subsets[~subsets[:, node]]
        expected = [
            row_by_row(values[:, [*np.flatnonzero(s), node]], alpha_mu, alpha_w or d + 2, d)
            - row_by_row(values[:, s], alpha_mu, alpha_w or d + 2, d)
            if s.any()
            else row_by_row(values[:, [node]], alpha_mu, alpha_w or d + 2, d)
            for s in parents
        ]
        np.testing.assert_allclose(
            score.log_evidence(prepared, node, parents), expected, rtol=1e-10
        )


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), num_rows=st.integers(2, 60))
def test_markov_equivalent_graphs_score_the_same(seed, num_rows):
    dags = graphs.all_dags(4)
    scores = score_of(BGe(), raw(correlated(seed, num_rows, 4)), dags)
    _, label = graphs.equivalence_classes(dags)
    highest = np.full(label.max() + 1, -np.inf)
    lowest = np.full(label.max() + 1, np.inf)
    np.maximum.at(highest, label, scores)
    np.minimum.at(lowest, label, scores)
    assert np.all(highest - lowest < 1e-9 * np.abs(scores).max())
    assert len(highest) == 185  # classes with 4 nodes (Gillispie & Perlman, 2001)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_scores_are_those_of_the_published_code(anchors_folder, number):
    anchor = np.load(anchors_folder / f"linear_er5_seed{number}.npz")
    dags, published = anchor["tp_all_graphs"], anchor["tp_log_marginal_likelihood"]
    ours = score_of(BGe(), raw(anchor["X_train"].astype(float)), dags)
    # The published constants depend on in-degrees alone and are rounded to float32.
    in_degree = (dags.sum(axis=1)[:, :, None] == np.arange(5)).sum(axis=1).astype(float)
    rounding = np.linalg.lstsq(in_degree, ours - published)[0]
    assert np.abs(rounding).max() < 1e-4
    np.testing.assert_allclose(published + in_degree @ rounding, ours, atol=1e-9)

    def edges(log_scores):
        weight = np.exp(log_scores - log_scores.max())
        return np.tensordot(weight / weight.sum(), dags, 1)

    np.testing.assert_allclose(edges(ours), edges(published + in_degree @ rounding), atol=1e-9)
    np.testing.assert_allclose(edges(ours), edges(published), atol=3e-6)


def test_rows_where_a_node_was_set_do_not_count_for_it(seed):
    values = correlated(seed, 30, 3)
    mask = np.zeros(values.shape, dtype=bool)
    mask[20:, 1] = True
    mask[25:, 2] = True
    parents = np.array([[True, False, False], [False, False, False]])
    score = BGe()
    seeing = score.prepare(raw(values, mask))
    for node, counted in [(0, 30), (1, 20), (2, 25)]:
        alone = score.prepare(raw(values[:counted]))
        rows = parents[1:] if node == 0 else parents
        np.testing.assert_allclose(
            score.log_evidence(seeing, node, rows), score.log_evidence(alone, node, rows)
        )


def test_a_node_that_was_always_set_is_left_to_its_prior(key):
    values = correlated(3, 10, 2)
    mask = np.array([[False, True]] * 10)
    score = BGe()
    prepared = score.prepare(raw(values, mask))
    parents = np.array([[False, False], [True, False]])
    np.testing.assert_allclose(score.log_evidence(prepared, 1, parents), 0, atol=1e-12)
    drawn = score.draw(key, prepared, np.zeros((4000, 2, 2), dtype=np.int8))
    # alpha_w = 4, no parents and no rows: σ² is inverse gamma with shape 3/2 and scale 1/4.
    variance = np.exp(2 * drawn["noise"]["log_scale"][:, 1])
    assert distributions.kstest(variance, distributions.invgamma(1.5, scale=0.25).cdf).pvalue > 1e-3


def wishart_parameters(rng, stats, alpha_mu: float, num: int):
    """Weights, intercepts and variances of 0 -> 1, {0, 1} -> 2 from joint precision draws."""
    freedom = stats.alpha_w + stats.num_rows[0]
    covariance = distributions.invwishart(freedom, stats.scale[0]).rvs(num, random_state=rng)
    root = np.linalg.cholesky(covariance / (alpha_mu + stats.num_rows[0]))
    mean = stats.mean[0] + (root @ rng.standard_normal((num, 3, 1)))[:, :, 0]
    columns = []
    for node in range(3):
        earlier = covariance[:, :node, :node]
        slopes = np.linalg.solve(earlier, covariance[:, :node, node, None])[:, :, 0]
        variance = covariance[:, node, node] - (slopes * covariance[:, node, :node]).sum(axis=1)
        bias = mean[:, node] - (slopes * mean[:, :node]).sum(axis=1)
        columns += [*slopes.T, bias, np.log(variance) / 2]
    return np.stack(columns, axis=1)


def test_draws_are_those_of_the_joint_wishart_posterior(key, seed):
    num, score = 40_000, BGe(0.7, 6.0)
    prepared = score.prepare(raw(correlated(1, 15, 3)))
    complete = np.triu(np.ones((3, 3), dtype=np.int8), 1)
    drawn = score.draw(key, prepared, np.broadcast_to(complete, (num, 3, 3)))
    weights, bias = drawn["mechanism"]["weights"], drawn["mechanism"]["bias"]
    log_scale = drawn["noise"]["log_scale"]
    ours = [bias[:, 0], log_scale[:, 0], weights[:, 0, 1], bias[:, 1], log_scale[:, 1]]
    ours += [weights[:, 0, 2], weights[:, 1, 2], bias[:, 2], log_scale[:, 2]]
    theirs = wishart_parameters(np.random.default_rng(seed), prepared, score.alpha_mu, num)
    pairs = np.triu_indices(9)

    def moments(columns):
        products = columns[:, pairs[0]] * columns[:, pairs[1]]
        every = np.concatenate([columns, products], axis=1)
        return every.mean(axis=0), every.var(axis=0) / len(every)

    mean, error = moments(np.stack(ours, axis=1))
    expected, expected_error = moments(theirs)
    assert np.all(np.abs(mean - expected) < 4.5 * np.sqrt(error + expected_error))


def test_draws_follow_their_graph_and_their_key(key, seed):
    rng = np.random.default_rng(seed)
    dags = np.triu(rng.random((50, 6, 6)) < 0.4, 1).astype(np.int8)
    score = BGe()
    prepared = score.prepare(raw(correlated(seed, 40, 6)))
    first = score.draw(key, prepared, dags)
    weights = first["mechanism"]["weights"]
    np.testing.assert_array_equal(weights != 0, dags != 0)
    again = score.draw(key, prepared, dags)
    np.testing.assert_array_equal(weights, again["mechanism"]["weights"])
    other = score.draw(jax.random.split(key)[0], prepared, dags)
    assert not np.array_equal(first["mechanism"]["bias"], other["mechanism"]["bias"])


def test_relabelling_the_columns_relabels_the_scores(seed):
    values, order = correlated(seed, 25, 5), np.array([3, 0, 4, 1, 2])
    dags = graphs.all_dags(5)[::500]
    moved = dags[:, order][:, :, order]
    expected = score_of(BGe(), raw(values), dags)
    np.testing.assert_allclose(score_of(BGe(), raw(values[:, order]), moved), expected)


@pytest.mark.parametrize("fixed", [(), (2,), (5, 2)])
def test_all_subsets_of_candidates_score_as_they_do_one_by_one(seed, fixed):
    data = raw(correlated(seed, 30, 7))
    score, candidates = BGe(), (6, 1, 3)
    stats = score.prepare(data)
    base = np.zeros((2, 7), dtype=bool)
    base[0, list(fixed)] = True
    found = score.log_evidence_of_subsets(stats, 4, base, candidates)
    sets = np.repeat(base[:, None], 8, axis=1)
    for k, candidate in enumerate(candidates):
        sets[:, np.arange(8) >> k & 1 == 1, candidate] = True
    expected = score.log_evidence(stats, 4, sets.reshape(-1, 7)).reshape(2, 8)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_improper_priors_and_redundant_columns_are_refused(seed):
    values = correlated(seed, 20, 3)
    with pytest.raises(InputError, match="alpha_w above 4"):
        BGe(alpha_w=3.5).prepare(raw(values))
    values[:, 2] = values[:, 0] - values[:, 1]
    prepared = BGe().prepare(raw(values * 1e9))
    with pytest.raises(InputError, match="redundant columns"):
        BGe().log_evidence(prepared, 2, np.array([[True, True, False]]))
