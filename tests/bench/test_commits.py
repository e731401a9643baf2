"""One commit speaks for each row of results, and earlier ones never replace later ones."""

import subprocess
from pathlib import Path

import pytest

from bayesdag.bench import commits, stamps
from bayesdag.bench.cells import Cell
from bayesdag.bench.commits import joined, of_one_commit
from bayesdag.bench.store import PACKED, Store, Taken, merge, read_pack, write_pack

RESULTS = Path(__file__).parents[2] / "experiments/results"
HISTORY = {"early": 0, "late": 1}


@pytest.fixture
def history(monkeypatch):
    """Two commits; all others are of no history."""
    monkeypatch.setattr(commits, "place_in_history", lambda commit: HISTORY.get(commit, -1))


def cells(commit, *seeds, status="done", **stamp):
    stamp = {"commit": commit} | stamp
    return [Cell("p", {"d": 5}, "m", seed, status, stamp=stamp) for seed in seeds]


def said(found):
    return sorted((cell.origin[0], cell.seed) for cell in found)


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.glob(f"*{PACKED}")))
def test_no_row_of_a_stored_table_mixes_commits(name):
    for some in read_pack(RESULTS / name).values():
        origins = {}
        for cell in some:
            assert origins.setdefault(cell.row, cell.origin) == cell.origin, cell.key


def test_the_commit_that_measured_most_of_a_row_speaks_for_it(history):
    found = of_one_commit([*cells("early", 1, 2, 3), *cells("late", 3, 4)])
    assert said(found) == [("early", 1), ("early", 2), ("early", 3)]


def test_of_commits_that_measured_as_many_the_latest_speaks(history):
    for earlier in ("early", "gone"):
        some = [*cells(earlier, 1, 2), *cells("late", 2, 3)]
        assert said(of_one_commit(some)) == [("late", 2), ("late", 3)]
        assert said(of_one_commit(some[::-1])) == [("late", 2), ("late", 3)]


def test_lost_cells_and_changed_files_do_not_outweigh_results(history):
    lost = cells("late", 1, 2, status="out of time")
    assert said(of_one_commit([*cells("early", 1), *lost])) == [("early", 1)]
    found = of_one_commit([*cells("late", 1, changed=True), *cells("late", 2)])
    assert said(found) == [("late", 2)]


def test_an_earlier_commit_never_replaces_a_row_even_with_more_cells(history):
    assert said(joined(cells("late", 1), cells("early", 1, 2, 3))) == [("late", 1)]
    assert said(joined(cells("early", 1), cells("gone", 1, 2, 3))) == [("early", 1)]


def test_a_later_commit_replaces_a_row_as_a_whole_or_not_at_all(history):
    before = cells("early", 1, 2)
    assert said(joined(before, cells("late", 2))) == [("early", 1), ("early", 2)]
    assert said(joined(before, cells("late", 2, 3))) == [("late", 2), ("late", 3)]


def test_a_store_says_what_it_took_left_and_dropped(history, tmp_path):
    store, given = Store(tmp_path / "s"), tmp_path / "given.jsonl.gz"
    for cell in cells("early", 1, 2):
        store.write(cell)
    store.pack()
    write_pack(given, {"s": cells("late", 2)})
    assert merge(given, tmp_path) == {"s": Taken(0, 1, 0)}
    write_pack(given, {"s": cells("late", 2, 3)})
    assert merge(given, tmp_path) == {"s": Taken(2, 0, 1)}
    write_pack(given, {"s": cells("early", 1, 2, 3)})
    assert merge(given, tmp_path) == {"s": Taken(0, 3, 0)}
    assert said(store.read()) == [("late", 2), ("late", 3)]


def test_part_of_a_row_measured_anew_waits_until_it_is_as_long(history, tmp_path):
    store = Store(tmp_path / "s")
    for cell in cells("early", 1, 2):
        store.write(cell)
    store.pack()
    store.write(cells("late", 1)[0])
    assert said(store.read()) == [("early", 1), ("early", 2)]
    assert said(store.unheard()) == [("late", 1)]
    assert store.find(cells("late", 1)[0]).origin[0] == "late"  # a run goes on after it
    store.write(cells("late", 2)[0])
    assert said(store.read()) == [("late", 1), ("late", 2)]
    store.pack()
    assert store.unheard() == []


def test_history_knows_which_commit_is_the_later():
    def commit(name):
        command = ["git", "rev-parse", name]
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None

    now, before = commit("HEAD"), commit("HEAD~1")
    if before is None:
        pytest.skip("a copy without history")
    places = [stamps.place_in_history(name) for name in ("0" * 40, before, now)]
    assert places == sorted(set(places))
    assert places[0] == -1
