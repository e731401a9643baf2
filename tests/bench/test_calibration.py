"""Calibration of alpha_mu: what is judged, and against which worlds."""

import numpy as np
import pytest

from bayesdag.bench.calibration import (
    EFFECTS,
    EXPERIMENTS,
    INTEGRATED,
    RAW,
    AlphaMuCalibration,
    LinearWorlds,
    judge,
)
from bayesdag.bench.suite import Trial
from bayesdag.graphs import is_acyclic


def test_a_forecast_is_judged_by_its_bins_and_its_extremes():
    said = np.array([0.02, 0.02, 0.35, 0.35, 0.99])
    true = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    found = judge(said, true)
    logs = np.log([0.98, 0.02, 0.65, 0.35, 0.99])
    assert found["log_score"] == pytest.approx(logs.mean())
    assert found["calibration_error"] == pytest.approx((0.96 + 0.3 + 0.01) / 5)
    assert (found["num_low"], found["true_if_low"]) == (2, 0.5)
    assert (found["num_high"], found["true_if_high"]) == (1, 1.0)
    assert "true_if_high" not in judge(said[:4], true[:4])


def test_probabilities_are_cut_so_that_no_error_counts_without_end():
    assert judge(np.array([0.0]), np.array([1.0]))["log_score"] == pytest.approx(np.log(1e-3))


@pytest.mark.parametrize("kind", ["standardised", EXPERIMENTS, RAW])
def test_worlds_are_acyclic_and_of_the_kind_asked_for(kind):
    first, second = LinearWorlds(4, 60, "N(0, 1)", kind, num_worlds=2)(5)
    assert is_acyclic(first.graph)
    assert not np.array_equal(first.data.values, second.data.values)
    (again,) = LinearWorlds(4, 60, "N(0, 1)", kind)(6)
    np.testing.assert_array_equal(again.data.values, second.data.values)
    were_set = ~first.data.observed
    assert were_set.any() == (kind == EXPERIMENTS)
    assert (first.data.values[were_set] == 2).all()
    assert np.allclose(first.data.scaling.scale, 1) == (kind == RAW)


def test_every_alpha_mu_is_judged_and_the_best_falls_short_of_nothing():
    worlds = LinearWorlds(3, 30, list(EFFECTS)[1], num_worlds=3)
    (found,) = AlphaMuCalibration((0.1, 1.0)).measure([Trial({}, 0, worlds)])
    assert [row["alpha_mu"] for row in found["series"]] == [0.1, 1.0, INTEGRATED]
    for kind in ("edge", "adjacency"):
        gaps = [row[f"{kind}_shortfall"] for row in found["series"]]
        assert min(gaps) == 0
        assert max(gaps) > 0
