"""A family of plug-ins without a contract is noticed, and so is a plug-in without a build."""

import importlib
from pathlib import Path

import pytest

from bayesdag import plugins

HERE = Path(__file__).parent
every_family = pytest.mark.parametrize("family", sorted(plugins.FAMILIES))


@every_family
def test_every_family_has_a_contract_that_finds_its_plug_ins(family):
    contract = HERE / f"test_{family}.py"
    assert contract.is_file(), f"write {contract.name}: what does every plug-in promise?"
    assert f'plugins.names("{family}")' in contract.read_text()


@every_family
def test_every_file_of_a_family_is_a_plug_in_with_a_description(family):
    for name in plugins.names(family):
        module = importlib.import_module(f"bayesdag.{plugins.FAMILIES[family]}.{name}")
        assert module.__doc__, f"{family}/{name} has no module docstring"
        assert plugins.load(family, name) is module.build
        assert module.build.__doc__
