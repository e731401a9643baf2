import dataclasses
from math import ceil

import numpy as np
import pandas as pd
import pytest

from bayesdag import fit, read
from bayesdag.methods import _kinds, _kinds_in_time
from bayesdag.methods._mixture import sharing_time
from bayesdag.methods.auto import Auto
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.imputed import Imputed
from bayesdag.scores.mixed import MixedScore


def levels_and_numbers(num_rows):
    rng = np.random.default_rng(7)
    grade = rng.integers(0, 5, num_rows)
    return pd.DataFrame(
        {
            "grade": grade,
            "bought": rng.random(num_rows) < 0.2 + 0.1 * grade,
            "weight": rng.normal(grade, 1.0),
        }
    )


def suited(data):
    return _kinds.with_score_for(Collapsed(), data)[0]


def test_a_small_table_is_fitted_whole():
    data = read(levels_and_numbers(300))
    method = suited(data)
    found = _kinds_in_time.bounded(method, data, 5.0)
    assert found.method == method
    assert found.data is data
    assert found.notes == []


@pytest.mark.parametrize("minutes", [0.2, 1.0, 5.0])
def test_what_is_left_out_makes_the_estimate_fit_the_minutes(minutes):
    data = read(levels_and_numbers(200_000))
    found = _kinds_in_time.bounded(suited(data), data, minutes)
    assert found.duration.seconds <= 60 * minutes
    assert 500 <= found.data.num_rows < 200_000


def test_networks_go_before_rows_and_the_words_say_how_to_have_all():
    data = read(levels_and_numbers(20_000))
    method = suited(data)
    needed = _kinds_in_time.seconds(method, data) / 60
    found = _kinds_in_time.bounded(method, data, 0.6 * needed)
    assert found.method.score == MixedScore(networks=False)
    assert found.data is data
    (words,) = found.notes
    assert "left out, because the whole would take about" in words
    assert f"--minutes {ceil(needed)}" in words
    assert _kinds_in_time.bounded(method, data, float(ceil(needed))).notes == []


def test_rows_are_the_same_for_every_seed_and_their_number_is_said():
    method = dataclasses.replace(Auto.PRESETS["quick"], minutes=0.02)
    frame = levels_and_numbers(2000)
    for seed in (0, 1):
        posterior = fit(frame, method, seed=seed)
        note = next(n for n in posterior.provenance["notes"] if n.startswith("left out"))
        assert "rows: 500 of 2000, drawn at random" in note
    data = read(frame)
    first, second = (_kinds_in_time.bounded(suited(data), data, 0.02).data for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)


def test_fits_that_share_the_minutes_have_a_part_of_them_each():
    data = read(levels_and_numbers(20_000))
    method = suited(data)
    needed = ceil(_kinds_in_time.seconds(method, data) / 60)
    assert _kinds_in_time.bounded(method, data, float(needed)).notes == []
    (words,) = _kinds_in_time.bounded(method, data, float(needed), num_fits=7).notes
    assert f"(allowed: {needed:.3g})" in words
    assert f"--minutes {ceil(7 * _kinds_in_time.seconds(method, data) / 60)}" in words


def test_methods_made_of_auto_hand_the_time_on():
    shared = sharing_time(Imputed(Auto(minutes=3.0)), 4)
    assert shared == Imputed(Auto(minutes=3.0, num_fits=4))
    assert sharing_time(Collapsed(), 4) == Collapsed()


@pytest.mark.filterwarnings("ignore::bayesdag.errors.BayesdagWarning")
def test_a_long_table_with_gaps_is_completed_in_the_rows_that_the_time_allows():
    frame = levels_and_numbers(10_000)
    frame.loc[::9, "weight"] = np.nan
    quick = dataclasses.replace(Auto.PRESETS["quick"], minutes=0.01, num_samples=20)
    found = fit(frame, Imputed(quick, num_completions=1), progress=False)
    assert any("rows: 500 of 10000" in note for note in found.provenance["notes"])
    assert found.summary["num_rows"] == 10_000


def test_rows_that_are_alike_are_expected_to_cost_once():
    rng = np.random.default_rng(0)
    codes = pd.DataFrame(rng.integers(0, 3, (5000, 6)), columns=list("abcdef")).astype(str)
    measured = codes.assign(**{name: rng.normal(size=5000) for name in "abc"})
    measured["d"] = codes["d"]
    assert _kinds_in_time._different_rows(read(codes)) < 0.06
    assert _kinds_in_time._different_rows(read(measured)) == 1.0
