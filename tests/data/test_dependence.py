"""Columns that determine one another are found and named; noisy ones raise no alarm."""

import warnings

import numpy as np
import pytest

from bayesdag.data import Dataset, dependence, read
from bayesdag.data._exact_fit import resolution
from bayesdag.errors import BayesdagWarning
from tests.tables import EXACT, noisy_table


def found(columns, mask=None):
    values = np.column_stack([np.asarray(c, dtype=float) for c in columns.values()])
    return Dataset(values, tuple(columns), mask).dependences


@pytest.mark.parametrize("num_rows", [60, 1000])
@pytest.mark.parametrize("name", EXACT)
def test_the_columns_and_the_relation_are_named(name, num_rows, seed):
    columns, members, words = EXACT[name](np.random.default_rng(seed), num_rows)
    columns = {**columns, "other": np.random.default_rng(seed + 1).normal(size=num_rows)}
    told = found(columns)
    assert [[told.names[j] for j in group] for group in told.groups] == [members]
    assert told.relations[0].words == words


@pytest.mark.parametrize("num", range(50))
def test_noisy_tables_raise_no_alarm(num):
    values = noisy_table(np.random.default_rng(num), curved=bool(num % 2))
    told = Dataset(values, tuple(f"x{j}" for j in range(values.shape[1]))).dependences
    assert not told, told.describe()


@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
def test_noise_above_the_rounding_is_noise_however_small(share, seed):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, 200))
    assert not found({"a": a, "b": b, "s": a + b + np.sqrt(2 * share) * noise})


def test_close_but_noisy_time_series_of_few_rows_raise_no_alarm(seed):
    rng = np.random.default_rng(seed)
    year = np.arange(1947, 1963)
    trends = {f"x{j}": (50 + 3 * (year - 1947) + rng.normal(size=16)).round(1) for j in range(5)}
    assert not found({"year": year, **trends})


def test_a_table_with_more_columns_than_rows_raises_no_alarm_but_shows_a_sum(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(25, 40))
    columns = {f"x{j}": values[:, j] for j in range(40)}
    assert not found(columns)
    told = found({**columns, "s": values[:, 3] + values[:, 7]})
    assert [r.words for r in told.relations] == ["s = x3 + x7"]


def test_outliers_make_nothing_exact(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(300, 4))
    values[0] = 1e6 * np.array([1.0, 2.0, 3.0, 4.0])
    assert not found(dict(zip("abcd", values.T, strict=True)))


def test_a_column_that_is_mostly_zero_is_no_function_of_another(seed):
    rng = np.random.default_rng(seed)
    rare = np.where(rng.random(300) < 0.05, rng.normal(size=300), 0.0)
    assert not found({"rare": rare, "a": rng.normal(size=300), "b": rng.normal(size=300)})


def test_cells_that_were_set_need_not_follow_the_relation(seed):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, 120))
    s = a + b
    s[60:] = noise[60:]
    mask = np.zeros((120, 3), dtype=bool)
    mask[60:, 2] = True
    assert not found({"a": a, "b": b, "s": s})
    assert [r.words for r in found({"a": a, "b": b, "s": s}, mask).relations] == ["s = a + b"]
    mask[4:, 2] = True
    s[4:] = noise[4:]
    assert not found({"a": a, "b": b, "s": s}, mask)  # four rows prove nothing


def test_relations_that_share_a_column_make_one_group_and_others_do_not(seed):
    rng = np.random.default_rng(seed)
    a, b, c, e, f = rng.normal(size=(5, 80))
    columns = {"a": a, "b": b, "c": c, "s": a + b, "t": b + c, "e": e, "f": f, "g": e - 2 * f}
    told = found(columns)
    assert told.groups == ((0, 1, 2, 3, 4), (5, 6, 7))
    assert len(told.relations) == 3


def test_every_column_of_a_group_is_computed_in_turn_until_nothing_is_redundant(seed):
    rng = np.random.default_rng(seed)
    a, b, c, e = rng.normal(size=(4, 80))
    columns = {"a": a, "b": b, "s": a + b, "c": c, "e": e, "t": a + b + c + e}
    data = Dataset(np.column_stack(list(columns.values())), tuple(columns))
    ways = dependence.derivations(data.values, data.observed, data.dependences)
    assert [next(iter(way)) for way in ways] == list(range(6))
    for way in ways:
        left = [j for j in range(6) if j not in way]
        assert len(left) == 4
        assert np.linalg.matrix_rank(data.values[:, left]) == 4
        for column, others in way.items():
            rest = data.values[:, column] - _fitted(data.values[:, others], data.values[:, column])
            assert np.abs(rest).max() < 1e-9


def _fitted(design, y):
    return design @ np.linalg.lstsq(design, y, rcond=None)[0]


def test_nothing_is_computed_in_an_ordinary_table():
    data = Dataset(np.random.default_rng(0).normal(size=(50, 3)), ("a", "b", "c"))
    assert dependence.derivations(data.values, data.observed, data.dependences) == [{}]


def test_reading_warns_once_with_the_remedy(seed):
    a, b = np.random.default_rng(seed).normal(size=(2, 60))
    with pytest.warns(BayesdagWarning, match=r"a, b and s .*\(s = a \+ b\).*drop those") as caught:
        data = read(_frame({"a": a, "b": b, "s": a + b}), scaling="centre")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(data)


def _frame(columns):
    import pandas as pd

    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("x", "unit"),
    [([1.5, 2.25, 3.0], 0.01), ([100.0, 2300.0, 500.0], 100.0), ([0.1 + 0.2, 0.7, 1.1], 0.1)],
)
def test_the_unit_of_rounding_is_read_off_the_numbers(x, unit):
    assert resolution(np.array(x)) == pytest.approx(unit)


def test_numbers_that_nobody_rounded_have_the_unit_of_their_digits():
    x = np.random.default_rng(0).normal(size=100)
    assert resolution(x) < 1e-15
    assert 1e-8 < resolution(x.astype(np.float32).astype(float)) < 1e-6
