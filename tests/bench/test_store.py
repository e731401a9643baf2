"""The store: one file per cell, whole or not there, found again by its key."""

import json
import math

import pytest

from bayesdag.bench.cells import Cell
from bayesdag.bench.store import Store, Taken, merge, write_pack
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


def test_packed_cells_are_found_and_give_the_same_bytes_whatever_way_they_came(tmp_path):
    one, other = Store(tmp_path / "one" / "s"), Store(tmp_path / "other" / "s")
    cells = [
        Cell("p", {"d": d}, "m", seed, measures={"x": math.inf}) for d in (5, 10) for seed in (1, 2)
    ]
    for cell in cells:
        one.write(cell)
    one.pack()
    for cell in reversed(cells):
        other.write(cell)
        other.pack()
    assert not one.root.exists()
    assert one.packed.read_bytes() == other.packed.read_bytes()
    assert [cell.key for cell in one.read()] == [cell.key for cell in other.read()]
    assert one.find(Cell("p", {"d": 5}, "m", 2)).measures == {"x": "inf"}
    assert one.find(Cell("p", {"d": 5}, "m", 3)) is None


def test_a_loose_cell_stands_in_place_of_a_packed_one(tmp_path):
    store = Store(tmp_path / "s")
    store.write(Cell("p", {}, "m", 1, measures={"x": 1}))
    store.pack()
    store.write(Cell("p", {}, "m", 1, measures={"x": 2}))
    assert [cell.measures for cell in store.read()] == [{"x": 2}]
    store.pack()
    assert [cell.measures for cell in store.read()] == [{"x": 2}]


def test_stores_of_other_machines_are_merged_and_a_lost_cell_replaces_nothing(tmp_path):
    store, theirs = Store(tmp_path / "out" / "s"), tmp_path / "cells.jsonl.gz"
    store.write(Cell("p", {}, "m", 1, measures={"x": 1}))
    store.write(Cell("p", {}, "m", 2, "failed", error="no"))
    new = [
        Cell("p", {}, "m", 1, "out of time", error="stopped"),
        Cell("p", {}, "m", 2, measures={"x": 2}),
        Cell("p", {}, "m", 3, measures={"x": 3}),
    ]
    write_pack(theirs, {"s": new, "t": new[1:2]})
    assert merge(theirs, tmp_path / "out") == {"s": Taken(2, 1, 0), "t": Taken(1, 0, 0)}
    assert [cell.measures for cell in store.read()] == [{"x": 1}, {"x": 2}, {"x": 3}]
    again = merge(tmp_path / "out", tmp_path / "again")
    assert again == {"s": Taken(3, 0, 0), "t": Taken(1, 0, 0)}
    with pytest.raises(FileFormatError, match="neither a file of packed cells nor a folder"):
        merge(tmp_path / "nothing", tmp_path / "out")
    theirs.write_bytes(b"no gzip")
    with pytest.raises(FileFormatError, match="holds no packed cells"):
        merge(theirs, tmp_path / "out")
