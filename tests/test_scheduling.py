"""Groups of tests that one worker runs: a module, or a method."""

import pytest

from tests.scheduling import LONGEST_FIRST, group, rank


def test_a_module_is_one_group():
    assert group("tests/exact/test_dp.py::test_a[3-x]") == "tests/exact/test_dp.py"
    assert group("tests/exact/test_dp.py::test_b") == "tests/exact/test_dp.py"


@pytest.mark.parametrize(
    "test",
    [
        "test_methods.py::test_settings_are_fields_of_the_method[bayesdag]",
        "test_methods.py::test_knowledge_is_obeyed[all of them-bayesdag]",
        "test_posteriors.py::test_exports[in memory-bayesdag]",
    ],
)
def test_all_contracts_of_a_method_are_one_group(test):
    assert group(f"tests/contracts/{test}") == "method bayesdag"


def test_what_takes_longest_begins_first(request):
    assert rank("tests/exact/test_dp.py::test_a") == len(LONGEST_FIRST)
    assert rank("tests/cli/test_fit.py::test_a") < rank("tests/exact/test_dp.py::test_a")
    root = request.config.rootpath
    assert [start for start in LONGEST_FIRST if not (root / start).exists()] == []
