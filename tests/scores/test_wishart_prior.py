"""The parameter prior of lines: Markov equivalent graphs have equal evidence."""

import dataclasses

import numpy as np
import pytest

from bayesdag import Dataset, read
from bayesdag.scores._neural import wishart_prior
from bayesdag.scores._neural.function_classes import FunctionClass
from bayesdag.scores._neural.network_cache import families_of
from bayesdag.scores.bge import BGe
from bayesdag.scores.neural import NeuralScore

NUM_ROWS = 1000
SCORE = NeuralScore(trusted_rows=np.inf, heteroscedastic=False, average_noise_models=False)
SETS = np.array([[bool(m >> j & 1) for j in range(4)] for m in range(8)])  # within {a, b, c}


def strong_and_weak(num_rows: int = NUM_ROWS, seed: int = 0) -> Dataset:
    """A collider with strong effects, whose child has one, too."""
    rng = np.random.default_rng(seed)
    a, b, noise, more = rng.normal(size=(4, num_rows))
    c = a + 0.3 * b + 0.2 * noise
    return read(np.column_stack([a, b, c, c + 0.1 * more]))


@pytest.fixture(scope="module")
def prior_and_data():
    data = strong_and_weak()
    return wishart_prior.wishart_prior(data.scaled, data.observed), data


def test_lines_have_the_evidence_of_bge_family_by_family():
    data, exact = strong_and_weak(), BGe()
    stats, reference = SCORE.prepare(data), exact.prepare(data)
    for node, sets in ((3, SETS), (2, SETS[:4])):
        nodes = np.full(len(sets), node)
        SCORE.log_evidence(stats, node, sets)
        found = [stats.cache.trained[f] for f in families_of(nodes, sets)]
        lines = np.array([f.log_evidence[FunctionClass.LINEAR, 0] for f in found])
        lines += wishart_prior.log_odds(stats.prior, nodes, sets)
        expected = exact.log_evidence(reference, node, sets)
        np.testing.assert_allclose(lines - lines[0], expected - expected[0], atol=1.5)


def test_equivalent_lines_have_equal_evidence_and_others_had_not():
    """The two orders of a complete graph describe the same normal distributions."""
    data = strong_and_weak()
    families = [(np.arange(4), np.tri(4, k=-1, dtype=bool))]
    families.append((np.arange(4), ~np.tri(4, dtype=bool)))

    def total(score: NeuralScore) -> list[float]:
        stats = score.prepare(data)
        result = []
        for nodes, parents in families:
            trained = score._trained(stats, nodes, parents)[0].families
            lines = np.array([f.log_evidence[FunctionClass.LINEAR, 0] for f in trained])
            if stats.prior is not None:
                lines = lines + wishart_prior.log_odds(stats.prior, nodes, parents)
            result.append(lines.sum())
        return result

    one, other = total(SCORE)
    assert one == pytest.approx(other, abs=0.5)
    one, other = total(dataclasses.replace(SCORE, equivalent_lines=False))
    assert abs(one - other) > 3


def test_odds_of_a_family_are_computed_once_and_alike_in_any_company(monkeypatch):
    data, asked = strong_and_weak(), []
    nodes, parents = np.arange(4), np.tri(4, k=-1, dtype=bool)
    alone = SCORE.prepare(data)
    for node in range(4):
        SCORE.log_evidence(alone, node, parents[[node]])
    together, compute = SCORE.prepare(data), wishart_prior.log_odds

    def counted(prior, nodes, parents):
        asked.append(len(nodes))
        return compute(prior, nodes, parents)

    monkeypatch.setattr(wishart_prior, "log_odds", counted)
    for _ in range(2):
        SCORE.log_evidence_of_families(together, nodes, parents)
    assert sum(asked) == len(together.log_odds)
    for family, value in together.log_odds.items():
        assert alone.log_odds[family] == pytest.approx(value, abs=1e-9)


def test_odds_depend_on_no_units_and_are_zero_without_parents(prior_and_data):
    prior, data = prior_and_data
    nodes = np.full(len(SETS), 3)
    found = wishart_prior.log_odds(prior, nodes, SETS)
    assert found[0] == 0
    other = wishart_prior.wishart_prior(data.scaled * [1e3, 1, 1e-3, 7] + 5, data.observed)
    np.testing.assert_allclose(wishart_prior.log_odds(other, nodes, SETS), found, atol=1e-6)


def test_rows_where_a_node_was_set_say_nothing_about_it():
    data = strong_and_weak(300)
    rng = np.random.default_rng(1)
    observed = np.ones_like(data.scaled, dtype=bool)
    values = data.scaled.copy()
    observed[200:, 3], values[200:, 3] = False, rng.normal(size=100)
    nodes = np.full(len(SETS), 3)
    every = wishart_prior.wishart_prior(values, observed)
    some = wishart_prior.wishart_prior(values[:200], observed[:200])
    expected = wishart_prior.log_odds(some, nodes, SETS)
    np.testing.assert_allclose(wishart_prior.log_odds(every, nodes, SETS), expected)
    whole = wishart_prior.wishart_prior(values, np.ones_like(observed))
    assert abs(wishart_prior.log_odds(whole, nodes, SETS) - expected).max() > 10


def test_constant_and_repeated_columns_leave_finite_odds():
    a = np.random.default_rng(0).normal(size=50)
    values = np.column_stack([a, a, np.ones(50), -a])
    prior = wishart_prior.wishart_prior(values, np.ones_like(values, dtype=bool))
    assert np.isfinite(wishart_prior.log_odds(prior, np.full(8, 3), SETS)).all()


def test_nobody_observed_says_nothing():
    values = np.random.default_rng(0).normal(size=(50, 4))
    observed = np.ones_like(values, dtype=bool)
    observed[:, 3] = False
    prior = wishart_prior.wishart_prior(values, observed)
    np.testing.assert_allclose(wishart_prior.log_odds(prior, np.full(8, 3), SETS), 0, atol=1e-9)
