"""The folder is the registry, and an object is its configuration."""

import dataclasses
import json

import pytest

from bayesdag import plugins
from bayesdag.errors import InputError

EVERY = [(family, name) for family in plugins.FAMILIES for name in plugins.names(family)]


@pytest.mark.parametrize(("family", "name"), EVERY, ids=[f"{f}.{n}" for f, n in EVERY])
def test_every_plugin_is_a_frozen_dataclass_that_survives_json(family, name):
    plugin = plugins.load(family, name)()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plugin.something = 1
    told = json.loads(json.dumps(plugins.configuration(plugin)))
    assert plugins.from_configuration(told) == plugin


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
