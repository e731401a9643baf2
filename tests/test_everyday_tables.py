"""The page of everyday tables: what its lines say."""

import importlib.util
from pathlib import Path

import pytest

from tests.toys import toy_frame

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("everyday", DOCS / "everyday_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_line_counts_sure_arrows_and_names_the_worst_into_age(program):
    edges = [["a", "b", 0.99], ["b", "Age", 0.4], ["c", "age", 0.2], ["a", "c", 0.5]]
    given = {"edges": edges, "cpu": 3.2, "columns": [300, 4], "kinds": {"binary": 4}, "notes": []}
    line = program.row("toy", given)
    assert line == "| toy | 300 × 4 | 4 binary | 3 | 1 | a → b | b → Age 0.40 | nothing |"


def test_a_failure_is_shown_in_its_place(program):
    assert "not finished" in program.row("toy", {"failed": "not finished after 5 s"})


def test_rows_of_tables_without_a_result_stay(program):
    old = program.table({name: {"failed": "slow"} for name in ("b", "a")})
    new = program.table({"b": {"failed": "slower"}, "c": {"failed": "slow"}}, f"\n{old}\n")
    lines = new.splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["a", "b", "c"]
    assert "slower" in lines[3]
    assert lines[:3] == old.splitlines()[:3]


def test_a_table_is_fitted_by_the_command(program, tmp_path):
    toy_frame().to_csv(tmp_path / "toy.csv", index=False)
    found = program.fitted(tmp_path / "toy.csv", minutes=1.0, limit=200.0)
    assert found["columns"] == [300, 4]
    assert {(a, b) for a, b, _ in found["edges"]} > {("rain", "soil")}
    assert found["cpu"] > 0


def test_the_page_has_a_place_for_the_lines(program):
    page = program.PAGE.read_text(encoding="utf-8")
    assert page.index(program.BEGIN) < page.index(program.END)
