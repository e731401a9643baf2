"""The tables in README are those of what is stored."""

import importlib.util
from pathlib import Path

import pytest

from bayesdag.bench import Cell, Store

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("readme_table", ROOT / "docs/readme_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_shows_what_is_stored(page):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert page.written(text, Store(page.CELLS).read()) == text, "python docs/readme_table.py"


def test_readme_shows_the_certainty_that_was_measured(page):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = page.CERTAINTY.read_text(encoding="utf-8")
    assert page.with_certainty(text, measured) == text, "python docs/readme_table.py"
    shown = page.certainty(measured)
    for data in ("feedback", "measurement error", "selection"):
        assert f"| {data} | 0." in shown


def test_rivals_stand_beside_our_methods(page):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split(page.BEGIN)[1].split(page.END)[0]
    for name in ("auto", "cam", "dibs", "GES (causal-learn)", "SCORE", "empty"):
        assert f"| {name} |" in shown


def test_means_are_over_data_sets_and_classes_have_no_distance_between_graphs(page):
    def cell(method, seed, **measures):
        setting = {"functions": "nonlinear", "d": 10}
        return Cell("x", setting, method, seed, measures=measures | {"cpu": 2.0})

    cells = [
        cell("ours", 0, expected_shd=1.0, expected_cpdag_shd=3.0),
        cell("ours", 1, expected_shd=2.0, expected_cpdag_shd=4.0),
        cell("class", 0, expected_cpdag_shd=1.0),
    ]
    _, _, first, second = page.table(cells).splitlines()
    assert first == "| class | – | 1.0 | – | 2 | 1 |"
    assert second == "| ours | 1.0 | 3.0 | – | 2 | 1 |"  # seed 1 has one method only
    _, _, first, second = page.table(
        [*cells, cell("class", 1, expected_cpdag_shd=2.0)]
    ).splitlines()
    assert first == "| class | – | 1.5 | – | 2 | 2 |"
    assert second == "| ours | 1.5 | 3.5 | – | 2 | 2 |"


def test_methods_with_several_data_sets_are_compared_on_all_of_them(page):
    def cells(method, num):
        return [
            Cell("x", {"functions": kind, "d": 10}, method, seed, measures=measures)
            for seed in range(num)
            for kind in ("linear", "nonlinear")
            for measures in [{"expected_cpdag_shd": float(seed), "cpu": 1.0}]
        ]

    both = page.tables([*cells("fast", 3), *cells("expensive", 1)])
    several, everything = both.split("All:")
    assert "| fast | – | 1.0 | 1.0 | 1 | 6 |" in several
    assert "expensive" not in several
    assert "| fast | – | 0.0 | 0.0 | 1 | 2 |" in everything
    assert "| expensive | – | 0.0 | 0.0 | 1 | 2 |" in everything
    assert "All:" not in page.tables([*cells("fast", 1), *cells("expensive", 1)])


def test_a_row_is_of_the_commit_that_measured_most_of_it(page):
    def cell(seed, commit, kind):
        setting, measures = {"functions": kind, "d": 10}, {"expected_cpdag_shd": float(seed)}
        return Cell("x", setting, "ours", seed, measures=measures | {"cpu": 1.0},
                    stamp={"commit": commit})  # fmt: skip

    kinds = ("linear", "nonlinear")
    some = [cell(seed, "new", kind) for seed in (2, 3) for kind in kinds]
    found = page.tables([*some, *(cell(9, "old", kind) for kind in kinds)])
    assert "| ours | – | 2.5 | 2.5 | 1 | 4 |" in found


def test_methods_that_were_lost_everywhere_are_shown(page):
    setting = {"functions": "linear", "d": 10}
    found = Cell("x", setting, "fast", 0, measures={"expected_cpdag_shd": 1.0, "cpu": 1.0})
    lost = [
        Cell("x", setting, method, seed, "out of time", error="stopped after 1800 s")
        for method, seed in (("slow", 0), ("fast", 1))
    ]
    *_, last = page.tables([found, *lost]).splitlines()
    assert last == "| slow | out of time | – | – | – | 0 |"
    assert "| fast | – | – | 1.0 | 1 | 1 |" in page.tables([found, *lost])
