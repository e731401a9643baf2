"""The examples in docstrings give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import bayesdag

SOURCE = Path(bayesdag.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text())


def dotted(path: Path) -> str:
    return ".".join(["bayesdag", *path.relative_to(SOURCE).with_suffix("").parts])


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_examples_in_docstrings_are_true(path):
    module = importlib.import_module(dotted(path).removesuffix(".__init__"))
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
