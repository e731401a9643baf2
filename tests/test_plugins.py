"""The folder is the registry, and an object is its configuration."""

import dataclasses
import json

import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.errors import FileFormatError, InputError
from bayesdag.methods.collapsed import Collapsed
from bayesdag.model.mechanisms.linear import Linear

EVERY = [(family, name) for family in plugins.FAMILIES for name in plugins.names(family)]


@pytest.mark.parametrize(("family", "name"), EVERY, ids=[f"{f}.{n}" for f, n in EVERY])
def test_every_plugin_is_a_frozen_dataclass_that_survives_json(family, name):
    plugin = plugins.load(family, name)()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plugin.something = 1
    told = json.loads(json.dumps(plugins.configuration(plugin)))
    assert plugins.from_configuration(told, family) == plugin


@pytest.mark.parametrize("family", plugins.FAMILIES)
def test_no_family_is_empty(family):
    assert plugins.names(family)


def test_a_new_file_is_a_new_plugin(tmp_path, monkeypatch):
    import bayesdag.model.noises

    (tmp_path / "cauchy.py").write_text("class Cauchy: pass\nbuild = Cauchy\n")
    monkeypatch.setattr(
        bayesdag.model.noises, "__path__", [*bayesdag.model.noises.__path__, str(tmp_path)]
    )
    assert "cauchy" in plugins.names("noises")
    assert plugins.load("noises", "cauchy").__name__ == "Cauchy"


def test_an_unknown_name_is_refused_with_the_list():
    with pytest.raises(InputError, match=r"no noise is called 'gausian'.*gaussian"):
        plugins.load("noises", "gausian")


def test_a_plug_in_is_written_as_its_family_and_name():
    told = plugins.configuration(Collapsed())
    assert told["plugin"] == "methods/collapsed"
    assert told["prior"]["plugin"] == "priors/density"


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_every_preset_survives_json(name):
    for preset in getattr(plugins.load("methods", name), "PRESETS", {}).values():
        told = json.loads(json.dumps(plugins.configuration(preset)))
        assert plugins.from_configuration(told, "methods") == preset


@dataclasses.dataclass(frozen=True)
class Homemade:
    """A plug-in that no folder holds."""

    size: int = 1


def test_a_class_that_is_not_registered_cannot_be_written():
    with pytest.raises(InputError, match=r"Homemade is no registered plug-in.*build = Homemade"):
        plugins.configuration(Homemade())
    with pytest.raises(InputError, match="type set cannot be written"):
        plugins.configuration(({1},))


def nested(depth: int) -> dict:
    config = plugins.configuration(Collapsed())
    for _ in range(depth):
        config = {"plugin": "methods/bagged", "method": config}
    return config


LINEAR = {"plugin": "mechanisms/linear"}


@pytest.mark.parametrize(
    ("config", "family", "words"),
    [
        ({"plugin": "cli.fit:demo", "out": "victim.txt"}, "mechanisms", "is no plug-in"),
        ({"plugin": "os:system", "command": "touch victim.txt"}, "mechanisms", "is no plug-in"),
        ({"plugin": "builtins/exec"}, "mechanisms", "is no plug-in"),
        ({"plugin": "mechanisms/../../cli/fit"}, "mechanisms", "is no plug-in"),
        ({"plugin": "mechanisms/__init__"}, "mechanisms", "is no plug-in"),
        ({"plugin": "scores/_neural"}, None, "is no plug-in"),
        ({"plugin": "model.mechanisms.linear:Linear"}, "mechanisms", "is no plug-in"),
        ({"plugin": "datasets/synthetic"}, "mechanisms", "one of the mechanisms belongs"),
        ({"plugin": "noises/gaussian"}, "mechanisms", "one of the mechanisms belongs"),
        (LINEAR | {"out": "victim.txt"}, "mechanisms", "no field 'out'"),
        (LINEAR | {"intercept": 1}, "mechanisms", "intercept is 1, which is not of its type"),
        (LINEAR | {"init_scale": "1"}, "mechanisms", "not of its type"),
        (LINEAR | {"init_scale": True}, "mechanisms", "not of its type"),
        (LINEAR | {"init_scale": float("nan")}, "mechanisms", "not of its type"),
        (LINEAR | {"init_scale": 10**30}, "mechanisms", "not of its type"),
        (LINEAR | {"init_scale": [1.0]}, "mechanisms", "not of its type"),
        (LINEAR | {"init_scale": LINEAR}, "mechanisms", "not of its type"),
        ({"plugin": "methods/exact", "num_samples": 1.5}, "methods", "not of its type"),
        ({"plugin": "methods/exact", "score": None}, "methods", "not of its type"),
        ({"plugin": "methods/exact", "score": LINEAR}, "methods", "one of the scores belongs"),
        ({"plugin": "methods/exact", "score": [LINEAR]}, "methods", "not of its type"),
        # Edge posteriors have every method that the protocol of noises asks for.
        (
            {"plugin": "methods/bayesdag", "noise": {"plugin": "edges/bernoulli"}},
            "methods",
            "one of the noises belongs",
        ),
        (
            {"plugin": "methods/auto", "exact": {"plugin": "methods/collapsed"}},
            "methods",
            "does not fit there",
        ),
        ({"plugin": "priors/density", "num": -1}, "priors", "cannot be built"),
        ({"plugin": "methods/averaged", "methods": [1]}, "methods", "not of its type"),
        ({"plugin": "methods/averaged", "methods": [[]]}, "methods", "not of its type"),
        (nested(200), "methods", "nested more than"),
        ({"plugin": 3}, "mechanisms", "where a plug-in belongs"),
        ({"plugin": ["mechanisms/linear"]}, "mechanisms", "where a plug-in belongs"),
        ([LINEAR], "mechanisms", "where a plug-in belongs"),
        ("mechanisms/linear", "mechanisms", "where a plug-in belongs"),
        (None, "mechanisms", "where a plug-in belongs"),
        ({}, "mechanisms", "where a plug-in belongs"),
    ],
)
def test_what_is_not_a_registered_plug_in_is_refused_and_nothing_runs(
    config, family, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim.txt").write_text("mine")
    with pytest.raises(FileFormatError, match=words):
        plugins.from_configuration(config, family)
    assert [path.name for path in tmp_path.iterdir()] == ["victim.txt"]
    assert (tmp_path / "victim.txt").read_text() == "mine"


def test_settings_that_a_later_version_added_take_their_defaults():
    assert plugins.from_configuration(LINEAR) == Linear()


def test_numpy_numbers_are_written_as_plain_ones():
    assert json.dumps(plugins.configuration((np.float32(0.5), np.int64(3)))) == "[0.5, 3]"
