import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesdag
from bayesdag import fit, read
from bayesdag.data.linearity import Linearity, _curvature, linearity
from bayesdag.errors import InputError
from bayesdag.methods import auto, collapsed
from bayesdag.methods.auto import Auto
from bayesdag.scores.bge import BGe
from bayesdag.scores.neural import NeuralScore
from tests.toys import toy_frame

QUICK = Auto.PRESETS["quick"]


def curved_frame():
    """The toy world with a parabola where soil made the crop grow in a straight line."""
    frame = toy_frame(500)
    soil = (frame["soil"] - frame["soil"].mean()) / frame["soil"].std()
    return frame.assign(crop=frame["crop"] + 2 * soil**2 * frame["crop"].std())


def test_few_variables_and_linear_data_are_added_up_exactly():
    posterior = fit(toy_frame(), QUICK)
    assert posterior.provenance["chosen"]["plugin"] == "methods/exact"
    assert posterior.marginals is not None
    why = posterior.provenance["notes"][0]
    assert "chosen: exact, because 4 variables are few and the data look linear" in why


def test_time_decides_how_rich_functions_are_and_the_result_says_what_is_left_out(monkeypatch):
    monkeypatch.setattr(collapsed, "on_cpu", lambda: True)
    monkeypatch.setattr(auto, "on_cpu", lambda: True)
    found = linearity(read(curved_frame()))
    assert Auto().choose(10, found)[0] == Auto().nonlinear
    chosen, notes = Auto().choose(80, found)
    assert chosen == Auto().additive
    assert "because the data do not look linear" in notes[0]
    needed = re.search(r"networks would take about (\d+) minutes \(allowed: 5\)", notes[0])
    assert needed is not None
    assert "left out: parents whose effects depend on one another" in notes[1]
    assert f"--minutes {needed[1]}" in notes[1]
    assert Auto(minutes=1.01 * int(needed[1]) + 1).choose(80, found)[0] == Auto().nonlinear
    chosen, notes = Auto(minutes=0.01).choose(80, found)
    assert chosen == Auto().collapsed
    assert "although the data do not look linear" in notes[0]


def test_an_accelerator_has_no_limit_but_the_number_of_variables(monkeypatch):
    monkeypatch.setattr(collapsed, "on_cpu", lambda: False)
    monkeypatch.setattr(auto, "on_cpu", lambda: False)
    found = linearity(read(curved_frame()))
    assert Auto().choose(100, found)[0] == Auto().nonlinear
    chosen, notes = Auto().choose(101, found)
    assert chosen == Auto().additive
    assert "networks are trained for up to 100 variables" in notes[0]


def test_minutes_must_be_positive():
    with pytest.raises(InputError, match="minutes is -1; it must be above 0"):
        Auto(minutes=-1.0)


@pytest.mark.parametrize("curve", [np.abs, np.sin])
def test_sums_of_curves_find_what_lines_do_not(curve, seed):
    """a -> b -> c by curves: where networks take too long, and straight lines see nothing."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=800)
    b = curve(2 * a) + 0.4 * rng.normal(size=800)
    c = curve(2 * b) + 0.4 * rng.normal(size=800)
    method = dataclasses.replace(QUICK.additive, num_samples=50)
    posterior = fit(pd.DataFrame({"a": a, "b": b, "c": c}), method)
    np.testing.assert_allclose(posterior.edge_matrix().round(), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert posterior.effect("a", "b").draws.std() > 0


def test_curved_data_get_learned_functions_and_the_result_says_why():
    chosen, notes = Auto().choose(4, linearity(read(curved_frame())))
    assert chosen == Auto().nonlinear
    assert chosen.score == NeuralScore()
    assert "chosen: collapsed with neural functions, because the data do not look lin" in notes[0]
    assert "corrected p-value" in notes[0]


@pytest.mark.slow
def test_curved_data_are_fitted_with_learned_functions(tmp_path):
    posterior = fit(curved_frame(), QUICK)
    assert posterior.provenance["chosen"]["score"]["plugin"] == "scores/neural"
    assert (
        posterior.edge_matrix()[posterior.names.index("soil"), posterior.names.index("crop")] > 0.5
    )
    posterior.save(tmp_path / "curved.nc")
    loaded = bayesdag.load(tmp_path / "curved.nc")
    np.testing.assert_array_equal(loaded.graphs, posterior.graphs)
    one, other = (p.effect("soil", "crop") for p in (posterior, loaded))
    np.testing.assert_allclose(one.draws, other.draws)


def test_auto_and_exact_are_one_model_in_numbers_and_words():
    chosen, asked = fit(toy_frame(51), "auto"), fit(toy_frame(51), "exact")
    assert chosen.provenance["chosen"]["plugin"] == "methods/exact"
    np.testing.assert_array_equal(chosen.edge_matrix(), asked.edge_matrix())
    assert chosen.provenance["model"] == asked.provenance["model"]
    assert "(BGe, alpha_mu = 1, alpha_w = d + 2)" in asked.provenance["model"]
    assert Auto().collapsed.score == Auto().exact.score == BGe()


def test_curves_below_the_threshold_are_said_to_be_small_not_absent():
    names = ("a", "b")
    told = Linearity(np.array([3.4e-15, 1.0]), np.array([0.04, 0.2]), names).describe()
    assert "explain at most 4.0% of what linear regression leaves" in told
    assert "(threshold 7.5%), although significantly (corrected p-value 3.4e-15)" in told
    told = Linearity(np.array([0.2, 1.0]), np.array([0.04, 0.2]), names).describe()
    assert "no more than chance" in told
    assert "0.2" in told


def test_rounding_errors_are_no_curves(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, 300))
    coarse = np.column_stack([a, b, c, a + b + c]).round(1)
    noise = np.full(4, 0.1 / np.sqrt(12))
    p_value, gain = _curvature(coarse, 3, noise)
    assert (p_value, gain) == (1.0, 0.0)
    assert linearity(read(np.column_stack([a, b, c + d]))).p_value.min() > 1e-4


@pytest.mark.filterwarnings("ignore::bayesdag.errors.BayesdagWarning")
def test_dependent_columns_do_not_hide_curves_of_others(seed):
    rng = np.random.default_rng(seed)
    x, b, noise = rng.normal(size=(3, 500))
    a = np.sin(2 * x) + 0.3 * noise
    straight = pd.DataFrame({"x": x, "a": x + noise, "b": b})
    bent = pd.DataFrame({"x": x, "a": a, "b": b})
    for frame, nonlinear in ((straight, False), (bent, True)):
        found = linearity(read(frame.assign(s=frame["a"] + frame["b"])))
        assert bool(found.nonlinear) is nonlinear
        product = linearity(read(frame.assign(s=frame["a"] * frame["b"])))
        assert "s" not in product.nonlinear


def test_many_variables_are_left_to_collapsed():
    straight = Linearity(np.ones(30), np.zeros(30), tuple(f"v{i}" for i in range(30)))
    chosen, notes = Auto().choose(30, straight)
    assert chosen == Auto().collapsed
    assert "30 variables are too many to add up all graphs" in notes[0]
    assert len(notes) == 1


def test_p_values_of_linear_gaussian_data_are_uniform(seed):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(5, 5))
    p_values = [_curvature(rng.normal(size=(80, 5)) @ mixing, 2)[0] for _ in range(400)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("curve", [np.square, np.abs, np.sin, np.tanh, None])
def test_curves_are_noticed_and_named(curve, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2000, 3))
    effect = z[:, 0] * z[:, 1] if curve is None else curve(2.5 * z[:, 0])
    values = np.column_stack([z, effect + 0.3 * rng.normal(size=2000)])
    assert linearity(read(values)).nonlinear


def test_cells_set_by_an_experimenter_do_not_count(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(1000, 2))
    mask = np.zeros(values.shape, dtype=bool)
    mask[:500, 1] = True
    values[:500, 1] = values[:500, 0] ** 2
    assert linearity(read(values)).nonlinear
    found = linearity(read(values, interventions=mask))
    assert found.p_value[1] > 0.01
