"""Effects, treatments, gaps and selected settings: what the suites measure is what they say."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayesdag import fitting
from bayesdag.bench.datasets import WithGaps
from bayesdag.bench.effects import _pairs, _true_effect, judge_effects
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.graph_effects import (
    NO_EFFECT,
    GraphEffects,
    TreatmentEffect,
    effect_of,
    possible_parents,
)
from bayesdag.bench.runners import OPPONENTS, Opponent
from bayesdag.bench.score_matching import ScoreMatching
from bayesdag.bench.suite import Trial
from bayesdag.bench.treatments import OUTCOME, TREATMENT, LeastSquares, PosteriorEffect, Treatments
from bayesdag.bench.tuning import TunedFit
from bayesdag.datasets import _mechanisms
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError
from bayesdag.graphs import ancestors
from bayesdag.methods.empty import Empty
from bayesdag.methods.exact import Exact

# Codes taken for numbers, cells imputed: said to users, and of every benchmark.
pytestmark = pytest.mark.filterwarnings("ignore::bayesdag.errors.BayesdagWarning")
SMALL = Synthetic(
    num_variables=3,
    edges_per_node=1,
    mechanism="signed_linear",
    noise_variance=1.0,
    scaling="standardised",
    num_train=400,
    num_test=0,
)


def test_half_of_the_pairs_have_no_causal_path_as_long_as_there_are_such():
    graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    causes = ancestors(graph)
    assert [bool(causes[pair]) for pair in _pairs(graph, 4)] == [True, False, True, False]
    assert len(set(_pairs(graph, 99))) == 6
    assert len(list(_pairs(np.zeros((3, 3), int), 2))) == 2


def test_true_effects_are_those_of_the_linear_model_and_zero_without_a_path():
    source = SMALL(1)
    weights = np.zeros((3, 3))
    for node, function in enumerate(source.truth.functions):
        parents = np.flatnonzero(source.graph[:, node])
        weights[parents, node] = getattr(function, "weights", [])
    total = np.linalg.inv(np.eye(3) - weights)
    scale = source.truth.outer.scale
    for cause in range(3):
        for outcome in set(range(3)) - {cause}:
            expected = 2 * total[cause, outcome] * scale[cause] / scale[outcome]
            assert _true_effect(source, cause, outcome) == pytest.approx(expected, abs=0.02)


def test_an_empty_graph_covers_just_the_pairs_without_a_path():
    source = SMALL(1)
    found = judge_effects(fitting.fit(source.train, Empty(), progress=False), source, 4)
    assert found["effect_coverage"] == [4, 2]
    assert found["effect_width"] == 0
    assert found["effect_error"] > 0.1


def test_a_fit_measures_effects_and_rows_under_interventions_when_asked():
    source = replace(SMALL, num_interventions=2, num_interventional=50, num_test=50)
    (found,) = FitRunner("empty", num_effects=2).measure([Trial({}, 1, source)])
    assert found["effect_coverage"][0] == 2
    assert np.isfinite(found["interventional_nll"])
    assert found["interventional_nll"] != found["nll"]


def test_a_confounded_treatment_misleads_those_who_do_not_adjust():
    tables = Treatments("linear", 3, 2, num_rows=4000)
    trials = [Trial({}, seed, tables) for seed in range(12)]
    adjusted = LeastSquares().measure(trials)
    crude = LeastSquares(covariates=False).measure(trials)
    assert {one["true_effect"] for one in adjusted} == {4.0}
    assert sum(one["effect_coverage"][1] for one in adjusted) >= 10
    assert np.mean([one["effect_error"] for one in crude]) > 4 * np.mean(
        [one["effect_error"] for one in adjusted]
    )


def test_the_average_effect_of_a_nonlinear_surface_is_that_of_both_potential_outcomes():
    made = Treatments("nonlinear", 3, 2, num_rows=500)
    one, again = made(3), made(3)
    assert one.table.equals(again.table)
    assert one.average_effect == pytest.approx(4.0)
    assert one.tiers[1:] == [[TREATMENT], [OUTCOME]]
    assert 0.05 < float(one.table[TREATMENT].to_numpy().mean()) < 0.5


def test_effects_on_single_rows_are_found_by_those_who_look_for_them():
    tables = Treatments("nonlinear", 6, 4, num_rows=3000)
    trials = [Trial({}, seed, tables) for seed in range(4)]
    each = LeastSquares(interactions=True).measure(trials)
    alike = LeastSquares().measure(trials)
    errors = [np.mean([one["individual_error"] for one in found]) for found in (each, alike)]
    assert errors[0] < 0.8 * errors[1]
    shares = [
        np.sum([one["individual_coverage"] for one in found], axis=0) for found in (each, alike)
    ]
    assert shares[0][1] > 2 * shares[1][1]


def test_intervals_of_single_rows_hold_their_effects_where_the_model_is_true():
    tables = Treatments("linear", 3, 2, num_rows=400)
    trials = [Trial({}, seed, tables) for seed in range(10)]
    found = LeastSquares(interactions=True).measure(trials)
    counted, inside = np.sum([one["individual_coverage"] for one in found], axis=0)
    assert counted == 1000
    assert 0.85 < inside / counted < 1


def test_a_posterior_states_the_effect_of_a_treatment():
    small = Treatments("linear", 2, 0, num_rows=300)
    (found,) = PosteriorEffect(Exact(num_samples=50)).measure([Trial({}, 1, small)])
    assert found["effect_error"] < 1
    assert found["effect_width"] > 0
    # The model is linear: the effect is the same on every row, and its error that of the mean.
    assert found["individual_error"] == pytest.approx(found["effect_error"], rel=1e-3)
    assert found["individual_coverage"] == [100, 100 * found["effect_coverage"][1]]


def test_binary_columns_are_measurements_to_a_method_that_is_told_so(monkeypatch):
    asked = {}

    def fitted(table, method, **given):
        asked.update(given)
        raise InputError("enough")

    monkeypatch.setattr(fitting, "fit", fitted)
    for as_numbers, kind in ((True, "continuous"), (False, None)):
        with pytest.raises(InputError, match="enough"):
            PosteriorEffect("exact", as_numbers).measure([Trial({}, 1, Treatments())])
        assert (asked["kinds"] or {}).get("b0") == kind


@pytest.mark.parametrize("at_random", [False, True])
def test_gaps_leave_the_first_column_whole_and_have_the_asked_fraction(at_random):
    whole = SMALL(1).train.values
    gaps = WithGaps(SMALL, 0.3, at_random)
    missing = gaps(1).train.missing
    assert not missing[:, 0].any()
    assert missing[:, 1:].mean() == pytest.approx(0.3, abs=0.05)
    high = whole[:, 0] > np.median(whole[:, 0])
    rates = missing[high, 1:].mean(), missing[~high, 1:].mean()
    assert (rates[0] > 3 * rates[1]) == at_random
    kept = replace(gaps, whole_rows=True)(1).train.values
    np.testing.assert_array_equal(kept, whole[~missing.any(axis=1)])


def test_the_setting_with_the_least_error_on_tuning_sets_is_chosen():
    tuned = TunedFit({"empty": Empty(), "exact": Exact(num_samples=20)}, SMALL, (500, 501))
    (found,) = tuned.measure([Trial({}, 1, SMALL)])
    assert found["chosen"] == "exact"
    assert set(found["tuning"]) == {"empty", "exact"}
    assert found["expected_shd"] < 3


@pytest.mark.parametrize(("name", "size"), [("products_of_two", 2), ("products_of_three", 3)])
def test_products_have_no_effect_of_a_parent_where_another_is_zero(name, size):
    rng = np.random.default_rng(0)
    for num_parents in range(1, 8):
        function: Any = _mechanisms.FAMILIES[name](rng, num_parents)
        assert {node for group in function.groups for node in group} == set(range(num_parents))
        assert {len(group) for group in function.groups} == {min(size, num_parents)}
    parents = rng.normal(size=(50, size))
    parents[:, 0] = 0
    function = _mechanisms.FAMILIES[name](rng, size)
    np.testing.assert_array_equal(function(parents), 0)


def slope(x, outcome, cause, *given):
    design = np.column_stack([x[:, [cause, *given]], np.ones(len(x))])
    return np.linalg.lstsq(design, x[:, outcome], rcond=None)[0][0]


def test_the_effect_under_a_dag_is_the_slope_given_the_parents_of_the_cause():
    x = np.random.default_rng(0).normal(size=(300, 3)) @ np.array([[1, 1, 2], [0, 1, 1], [0, 0, 1]])
    dag = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=float)
    found = effect_of(x, dag, 1, 2)
    assert found.mean == pytest.approx(slope(x, 2, 1, 0))
    assert found.low < 1 < found.high
    assert found.low + found.high == pytest.approx(2 * found.mean)
    assert effect_of(x, dag, 0, 2).mean == pytest.approx(slope(x, 2, 0))
    assert effect_of(x, dag, 2, 0) == NO_EFFECT


def test_intervals_of_a_true_graph_hold_the_effect_as_often_as_they_say():
    rng, inside = np.random.default_rng(3), 0
    dag = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=float)
    for _ in range(300):
        a, b, c = rng.normal(size=(3, 40))
        b += a
        found = effect_of(np.column_stack([a, b, c + a + 0.5 * b]), dag, 1, 2)
        inside += found.low < 0.5 < found.high
    assert 0.90 < inside / 300 < 0.99


def test_a_class_has_the_effects_of_all_its_sets_of_parents():
    x = np.random.default_rng(0).normal(size=(300, 2)) @ np.array([[1, 1], [0, 1]])
    line = np.array([[0, 0.5], [0.5, 0]])
    found = effect_of(x, line, 0, 1)
    assert found.mean == pytest.approx(slope(x, 1, 0) / 2)  # 0 - 1 may be 1 -> 0
    assert found.low == 0
    assert found.high > slope(x, 1, 0)


def test_sets_of_parents_that_would_make_a_collider_are_not_possible():
    star = np.zeros((4, 4))
    star[0, 1:3] = star[1:3, 0] = 0.5  # 1 - 0 - 2, and 3 apart
    assert [list(one) for one in possible_parents(star, 0)] == [[], [1], [2]]
    star[1, 2] = star[2, 1] = 0.5
    assert [list(one) for one in possible_parents(star, 0)] == [[], [1], [2], [1, 2]]
    star[3, 0] = 1
    assert [list(one) for one in possible_parents(star, 0)] == [[3]]


def test_a_rival_is_judged_by_the_effects_that_follow_from_its_graph(monkeypatch):
    monkeypatch.delenv(OPPONENTS, raising=False)
    (found,) = GraphEffects(ScoreMatching(), 4).measure([Trial({}, 1, SMALL)])
    assert found["effect_coverage"][0] == 4
    assert found["effect_error"] >= 0
    assert "expected_shd" in found
    assert f"set {OPPONENTS}" in str(GraphEffects(Opponent("boss")).lacking())


@pytest.mark.parametrize("adjacent", [True, False])
def test_a_rival_adjusts_a_treatment_for_what_its_graph_has_beside_it(monkeypatch, adjacent):
    made = Treatments("linear", 2, 0, num_rows=300)
    table = made(1).table
    edge = np.zeros((4, 4))
    edge[0, 2], edge[2, 3] = 1, adjacent
    monkeypatch.setattr(ScoreMatching, "found", lambda self, data: {"edge": edge})
    (found,) = TreatmentEffect(ScoreMatching()).measure([Trial({}, 1, made)])
    expected = slope(table.to_numpy(float), 3, 2, 0) if adjacent else 0
    assert found["effect"] == pytest.approx(expected)
    assert (found["effect_width"] > 0) == adjacent
    assert found["individual_error"] == pytest.approx(found["effect_error"])  # the same for all
