"""The store: one file per cell, whole or not there, found again by its key."""

import json
import math

import pytest

from bayesdag.bench.cells import Cell, Store
from bayesdag.errors import FileFormatError


def cell(**changes) -> Cell:
    given = {"part": "p", "setting": {"d": 10, "units": "raw"}, "method": "a, b", "seed": 3}
    return Cell(**given | changes)


def test_a_cell_comes_back_as_it_was_written(tmp_path):
    store = Store(tmp_path)
    store.write(cell(measures={"shd": 1.5, "rows": [[1, 2]]}, stamp={"commit": "abc"}))
    assert store.read() == [cell(measures={"shd": 1.5, "rows": [[1, 2]]}, stamp={"commit": "abc"})]
    assert store.find(cell()) == store.read()[0]
    assert store.find(cell(seed=4)) is None


def test_an_infinite_measure_stays_one(tmp_path):
    Store(tmp_path).write(cell(measures={"nll": math.inf}))
    (found,) = Store(tmp_path).read()
    assert float(found.measures["nll"]) == math.inf


def test_what_is_written_is_plain_json(tmp_path):
    Store(tmp_path).write(cell(measures={"nll": math.nan}))
    (path,) = tmp_path.rglob("*.json")
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["seed"] == 3


def test_an_interrupted_write_leaves_the_earlier_cell(tmp_path):
    store = Store(tmp_path)
    store.write(cell(measures={"shd": 1.0}))
    with pytest.raises(TypeError):
        store.write(cell(measures={"shd": object()}))
    assert store.read() == [cell(measures={"shd": 1.0})]


def test_two_keys_never_share_a_file(tmp_path):
    store = Store(tmp_path)
    store.write(cell(method="a, b"))
    with pytest.raises(FileFormatError, match="holds another cell"):
        store.write(cell(method="a b"))


def test_a_damaged_cell_is_named_with_the_remedy(tmp_path):
    store = Store(tmp_path)
    store.write(cell())
    (path,) = tmp_path.rglob("*.json")
    path.write_text(path.read_text()[:20])
    with pytest.raises(FileFormatError, match=r"3\.json is not a cell.*remove it"):
        store.read()
