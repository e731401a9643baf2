"""`fit`: settings, presets, refusals and the stamp on the result."""

import numpy as np
import pytest

from bayesdag import Dataset, extend, fit, fitting, list_methods, load, merge, plugins, read
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.runs import progress
from bayesdag.runs.recording import MonitorGroup
from tests.toys import toy_frame


def test_a_method_may_be_a_name_or_an_object():
    by_name = fit(toy_frame(), "exact", num_samples=7)
    by_object = fit(toy_frame(), plugins.load("methods", "exact")(num_samples=7))
    assert by_name.provenance == by_object.provenance
    assert (by_name.graphs == by_object.graphs).all()


def test_text_becomes_the_type_of_the_setting():
    method = fitting.build_method(
        "exact", num_samples="12", order_modular="false", score="linear_gaussian"
    )
    assert method.num_samples == 12  # pyright: ignore[reportAttributeAccessIssue]
    assert method.order_modular is False  # pyright: ignore[reportAttributeAccessIssue]
    assert method.score == plugins.load("scores", "linear_gaussian")()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("setting", "text", "words"),
    [("num_samples", "many", "whole number"), ("order_modular", "maybe", "true or false")],
)
def test_text_of_the_wrong_kind_is_refused(setting, text, words):
    with pytest.raises(InputError, match=f"{setting} is.*{words}"):
        fitting.build_method("exact", **{setting: text})


def test_settings_without_a_default_are_read_by_their_annotation():
    assert fitting.build_method("bayesdag", sparsity="3").sparsity == 3.0  # pyright: ignore[reportAttributeAccessIssue]
    assert fitting.build_method("bayesdag", sparsity="none").sparsity is None  # pyright: ignore[reportAttributeAccessIssue]
    assert fitting.build_method("auto", num_samples="7").num_samples == 7  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InputError, match="sparsity is a number, or none, not 'much'"):
        fitting.build_method("bayesdag", sparsity="much")
    with pytest.raises(InputError, match="'auto' has no setting 'sparsity'; it has: max_exact"):
        fitting.build_method("auto", sparsity="3")
    with pytest.raises(InputError, match="collapsed cannot be given as text"):
        fitting.build_method("auto", collapsed="quick")


def test_unknown_names_are_refused_with_the_list():
    with pytest.raises(InputError, match="no method is called 'exat'.*exact"):
        fit(toy_frame(), "exat")
    with pytest.raises(InputError, match="no score is called 'bgee'.*bge"):
        fit(toy_frame(), "exact", score="bgee")
    with pytest.raises(InputError, match="no preset 'paper'"):
        fit(toy_frame(), "exact", preset="paper")


def test_the_result_tells_where_it_came_from():
    provenance = fit(toy_frame(), "exact", seed=5, num_samples=7).provenance
    assert provenance["seed"] == 5
    assert provenance["method"]["num_samples"] == 7
    assert plugins.from_configuration(provenance["method"]) == fitting.build_method(
        "exact", num_samples=7
    )


def bent(num_rows=200):
    """The toy, with a second bump in the price and a bend in the crop."""
    table = toy_frame(num_rows)
    rain = (table["rain"] - table["rain"].mean()) / table["rain"].std()
    return table.assign(crop=table["crop"] + table["crop"].std() * rain**2)


def test_the_fit_is_checked_and_the_verdict_stays_with_the_result(tmp_path):
    found = fit(bent(), "exact", seed=4, num_samples=60)
    assert not found.checked.passed
    assert found.checked == found.check(bent(), seed=4)
    assert found.describe()[0] == f"fit: {found.checked.headline}"
    assert "do not trust" in repr(found)
    found.save(tmp_path / "bent.nc")
    assert load(tmp_path / "bent.nc").checked == found.checked
    assert extend(found, bent(), 20).checked == fit(bent(), "exact", seed=4, num_samples=80).checked


def test_merged_runs_carry_the_average_of_their_checks():
    runs = [fit(bent(), "exact", seed=seed, num_samples=60) for seed in (0, 1)]
    both = merge(runs)
    mean = np.mean([run.checked.variables[2].shape for run in runs])
    assert both.checked.variables[2].shape == pytest.approx(mean)
    assert "crop" in both.checked.headline


def test_the_text_of_a_posterior_is_short():
    text = repr(fit(toy_frame(), "exact", num_samples=7))
    assert text.startswith("<Posterior: 4 variables, 1 × 7 draws")
    assert len(text) < 200


def test_every_method_says_what_it_does():
    assert all(text.endswith(".") for text in list_methods().values())


def test_no_public_name_hides_behind_a_package():
    """`bayesdag.methods` is a folder: a function of that name would vanish on import."""
    import importlib
    import pkgutil

    import bayesdag

    folders = {module.name for module in pkgutil.iter_modules(bayesdag.__path__)}
    assert not folders & set(bayesdag.__all__)
    for name in bayesdag.__all__:
        assert getattr(importlib.import_module("bayesdag"), name) is not None


def test_data_that_were_read_are_not_warned_of_again():
    with pytest.warns(BayesdagWarning, match="rows are few"):
        data = read(toy_frame(num_rows=20))
    fit(data, "exact", num_samples=2)  # warnings are errors here
    with pytest.warns(BayesdagWarning, match="rows are few"):
        fit(Dataset(data.values, data.names), "exact", num_samples=2)


def test_a_long_fit_shows_progress_unless_it_is_turned_off(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    fit(toy_frame(), "exact", num_samples=2, progress=False)
    assert capsys.readouterr().err == ""
    fit(toy_frame(), "exact", num_samples=2, monitor=MonitorGroup())
    assert capsys.readouterr().err == ""
    fit(toy_frame(), "exact", num_samples=2)
    assert capsys.readouterr().err.startswith("bayesdag: working, 0 s so far")
