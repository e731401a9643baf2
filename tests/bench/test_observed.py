"""The table that results read: counted from cells of generated data."""

from pathlib import Path

import numpy as np
import pytest

from bayesdag.bench.cells import Cell
from bayesdag.bench.judging import CURVE
from bayesdag.bench.observed import observe
from bayesdag.bench.store import Store
from bayesdag.errors import InputError
from bayesdag.posterior import observed_reliability
from bayesdag.posterior.observed_reliability import ANY_ROWS

RESULTS = Path(__file__).parents[2] / "experiments" / "results"

METHOD = {"plugin": "methods/collapsed", "score": {"plugin": "scores/bge"}}


def cell(seed=1, data="rounded", misfit=0.1, sure=(4, 3), **changes) -> Cell:
    """A cell with `sure` edges above .95, how many of them true, and two true ones above .5."""
    curve = np.zeros((len(CURVE) - 1, 3))
    curve[-1, [0, 2]] = sure
    curve[3, [0, 2]] = curve[4, [0, 2]] = 1
    given = {
        "part": "development",
        "setting": {"data": data, "rows": 1000},
        "method": "collapsed, BGe",
        "seed": seed,
        "measures": {"curve": curve.tolist(), "misfit": misfit},
        "stamp": {"commit": "abc", "changed": False, "settings": {"method": METHOD}},
    }
    return Cell(**given | changes)


def test_edges_are_counted_by_model_misfit_and_rows():
    found = observe([cell(1), cell(2, sure=(6, 5)), cell(3, misfit=0.3)], "a command")
    alike, worse = (entry for entry in found.entries if entry.rows != ANY_ROWS)
    assert (alike.model, alike.misfit, alike.rows, alike.datasets) == ("scores/bge", 2, 1, 2)
    assert alike.sure[:2] == (10, 8)
    assert alike.likely[:2] == (4, 4)
    assert 0 < alike.sure.low < 0.8 < alike.sure.high < 1
    assert worse.misfit == 3
    assert found.origin["command"] == "a command"
    assert found.origin["commits"] == ["abc"]
    assert found.origin["cells"] == 3


def test_the_table_that_comes_with_the_package_is_counted_from_the_stored_cells():
    """Written again by the command that it names, with --tables-only --reliability-table."""
    shipped = observed_reliability.shipped()
    command = str(shipped.origin["command"])
    suites = command.split()[2].split(",")
    cells = [cell for name in suites for cell in Store(RESULTS / name).read()]
    assert observe(cells, command).to_json() == observed_reliability.TABLE.read_text()


def test_both_halves_of_the_families_count_and_tables_of_several_kinds():
    kinds = cell(setting={"functions": "lines", "rows": 1000})
    found = observe([cell(), cell(1000, data="selection"), kinds], "")
    assert found.origin["families"] == ["lines", "rounded", "selection"]


def test_counts_of_all_numbers_of_rows_stand_beside_those_of_each():
    few = cell(2, setting={"data": "rounded", "rows": 200}, sure=(6, 6))
    found = observe([cell(), few], "")
    sure = {entry.rows: entry.sure[:2] for entry in found.entries}
    assert sure == {0: (6, 6), 1: (4, 3), ANY_ROWS: (10, 9)}


@pytest.mark.parametrize(
    "other",
    [
        cell(data="light tunnel"),
        cell(method="random_order"),
        cell(misfit=None),
        cell(status="failed", measures={}),
        cell(method="base rate", measures={"curve": [[1, 1, 1]] * 6}),
    ],
)
def test_nothing_but_fits_of_generated_data_counts(other):
    assert observe([cell(), other], "").origin["cells"] == 1
    with pytest.raises(InputError, match="no cell of generated data"):
        observe([other], "")
