"""`fit`: settings, presets, refusals and the stamp on the result."""

import pytest

from bayesdag import Dataset, fit, fitting, list_methods, plugins, read
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.runs import progress
from bayesdag.runs.checkpoint import Keeper
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
    fit(toy_frame(), "exact", num_samples=2, monitor=Keeper())
    assert capsys.readouterr().err == ""
    fit(toy_frame(), "exact", num_samples=2)
    assert capsys.readouterr().err.startswith("bayesdag: working, 0 s so far")
