"""Rows that resemble their neighbours, and rows that only look as if they did."""

import numpy as np
import pytest
from scipy.stats import norm

from bayesdag import fit, read
from bayesdag.posterior.serial_dependence import (
    MATTERS,
    blocks_of,
    is_in_time,
    is_sorted,
    of_values,
    rows_per_independent_row,
)

NUM_ROWS = 600
EVERYWHERE = np.ones((NUM_ROWS, 3), dtype=bool)


def in_time(memory: float, seed: int = 0):
    """Three series that remember, independent of one another."""
    fresh = np.random.default_rng(seed).normal(size=(NUM_ROWS, 3))
    for row in range(1, NUM_ROWS):
        fresh[row] = memory * fresh[row - 1] + np.sqrt(1 - memory**2) * fresh[row]
    return fresh


def factor(rows):
    return rows_per_independent_row(norm.cdf(rows)[None], EVERYWHERE, rows)


@pytest.mark.parametrize("memory", [0.5, 0.8])
def test_the_factor_is_that_of_the_variance_of_a_correlation(memory):
    expected = (1 + memory**2) / (1 - memory**2)
    found = np.mean([factor(in_time(memory, seed)) for seed in range(10)])
    assert found == pytest.approx(expected, rel=0.2)


def test_independent_rows_are_worth_what_they_are():
    assert max(factor(in_time(0.0, seed)) for seed in range(20)) < MATTERS


def test_one_series_among_independent_columns_repeats_nothing():
    rows = in_time(0.0)
    rows[:, 0] = in_time(0.95)[:, 0]
    assert factor(rows) < MATTERS


def test_trends_that_explain_one_another_are_worth_few_rows():
    """Their residuals keep little of the memory that made them look dependent."""
    walks = np.cumsum(np.random.default_rng(3).normal(size=(NUM_ROWS, 3)), axis=0)
    residuals = in_time(0.6)
    assert factor(residuals) < 2.5
    assert rows_per_independent_row(norm.cdf(residuals)[None], EVERYWHERE, walks) > 3.5


def test_memory_that_a_fit_took_away_at_long_lags_does_not_make_up_for_that_at_short_ones():
    rows = in_time(0.8)
    slow = np.linspace(-1, 1, NUM_ROWS)[:, None] ** np.arange(9)
    residuals = rows - slow @ np.linalg.lstsq(slow, rows, rcond=None)[0]
    walks = np.cumsum(np.random.default_rng(3).normal(size=(NUM_ROWS, 3)), axis=0)
    assert rows_per_independent_row(norm.cdf(residuals)[None], EVERYWHERE, walks) > 3


def test_values_alone_say_what_trends_are_worth_unless_a_table_is_sorted():
    walks = np.cumsum(np.random.default_rng(3).normal(size=(NUM_ROWS, 3)), axis=0)
    assert of_values(read(walks)) > 30
    assert of_values(read(in_time(0.0))) < MATTERS
    rows = in_time(0.0)
    assert of_values(read(rows[np.argsort(rows[:, 0])])) == 1


def test_rows_that_are_sorted_by_a_label_are_judged_within_its_blocks():
    label = np.repeat([0.0, 1.0, 2.0], NUM_ROWS // 3)
    fresh = in_time(0.0) + 3 * label[:, None]
    series = in_time(0.9) + 3 * label[:, None]
    names = ("label", "a", "b", "c")
    assert blocks_of(np.column_stack([label, fresh]), names).tolist() == label.astype(int).tolist()
    assert of_values(read(np.column_stack([label, fresh]))) < MATTERS
    assert of_values(read(np.column_stack([label, series]))) > 3
    assert of_values(read(fresh)) > 30
    assert not blocks_of(np.column_stack([label, fresh]), ("year", "a", "b", "c")).any()
    assert not blocks_of(np.column_stack([label % 2, fresh]), names).any()


def test_a_fit_says_when_rows_repeat_and_not_when_the_table_is_sorted():
    rows = in_time(0.8)
    rows[:, 1] += rows[:, 0]
    check = fit(read(rows), "exact").check(read(rows))
    assert check.repeats
    assert any("are worth one independent row" in words for words in check.warnings)
    assert not check.passed
    shuffled = np.random.default_rng(1).permutation(rows)
    by_cause = shuffled[np.argsort(shuffled[:, 0])]
    assert not fit(read(by_cause), "exact").check(read(by_cause)).repeats


def test_a_table_in_the_order_of_its_years_is_in_time_and_sorted_by_age_is_not():
    rng = np.random.default_rng(0)
    years = np.repeat(np.arange(1959, 2009), 4)
    values = np.stack([years, np.sort(rng.exponential(size=200))], axis=1).astype(float)
    assert is_sorted(values)
    assert is_in_time(values, ("year", "pop"))
    assert not is_in_time(values, ("age", "pop"))
    assert not is_in_time(rng.permutation(values), ("year", "pop"))
