"""The page that says what was asked for and what was run."""

from bayesdag.bench import Cell, Part, Suite
from bayesdag.bench.coverage import coverage
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import trials

RUNNERS = {"one": FitRunner("empty"), "two": FitRunner("exact"), "three": FitRunner("cam")}


def line(cells):
    part = Part("sizes", tuple(trials({"d": 5}, None, (1, 2))), RUNNERS)
    return coverage({"suite": Suite("", "", (part,))}, {"suite": cells}).splitlines()[-1]


def cell(method, seed, status="done", part="sizes"):
    return Cell(part, {"d": 5}, method, seed, status)


def test_methods_are_on_all_data_sets_on_some_or_on_none():
    found = line([cell("one", 1), cell("one", 2), cell("two", 1), cell("two", 2, "out of time")])
    assert found == "| suite | sizes | 2 | `one` | `two` (1, 1 lost) | `three` |"


def test_cells_of_other_parts_and_of_methods_that_are_gone_do_not_count():
    found = line([cell("one", 1, part="others"), cell("gone", 3)])
    assert found == "| suite | sizes | 2 | – | – | `one`, `two`, `three` |"


def test_data_sets_that_are_there_on_some_machines_only_are_counted():
    assert line([cell("one", 1), cell("one", 2), cell("one", 3)]).startswith("| suite | sizes | 3")
