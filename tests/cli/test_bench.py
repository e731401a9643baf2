"""`bayesdag bench`, as a user types it."""

import json

from bayesdag.bench import Cell, Store, write_pack
from tests.cli.conftest import answer


def test_bench_lists_the_suites(tmp_path, command_in):
    shown = answer(command_in(tmp_path), "bench")
    assert "nonlinear" in shown
    assert "Nonlinear data: who finds the graph" in shown


def test_bench_refuses_unknown_suites_and_methods_and_writes_nothing(tmp_path, command_in):
    command = command_in(tmp_path)
    code, _, stderr = command("bench", "linaer")
    assert code == 2
    assert "no suite is called 'linaer'; there are: ablations, " in stderr
    code, _, stderr = command("bench", "linear", "--methods", "exakt", "--out", "x")
    assert code == 2
    assert "no method is called 'exakt'; did you mean 'exact'?" in stderr
    assert list(tmp_path.rglob("*.json")) == []


def test_bench_runs_what_is_missing_and_writes_the_tables(tmp_path, command_in):
    command = command_in(tmp_path)
    arguments = ("bench", "speed", "--part", "start", "--out", "found")
    assert "bayesdag --help, seed 900: seconds" in answer(command, *arguments)
    page = (tmp_path / "found" / "speed.md").read_text()
    assert "| bayesdag --help | 1 |" in page
    assert "seed 900" not in answer(command, *arguments)
    assert (tmp_path / "found" / "speed.md").read_text() == page


def test_bench_reliability_shows_the_cells_of_the_suites_it_collects(tmp_path, command_in):
    curve = [[0.0, 0.0, 0.0]] * 5 + [[10.0, 9.8, 7.0]]
    method = {"plugin": "methods/collapsed", "score": {"plugin": "scores/bge"}}
    for name in ("rounded", "selection"):
        Store(tmp_path / "found" / "broken_worlds").write(
            Cell(
                part="development" if name == "rounded" else "figures",
                setting={"data": name, "rows": 1000, "d": 5, "edges per node": 1},
                method="collapsed, BGe",
                seed=0 if name == "rounded" else 1000,
                measures={"curve": curve, "misfit": 0.1, "log_score": -0.2},
                stamp={"commit": "abc", "settings": {"method": method}},
            )
        )
    arguments = ("bench", "reliability", "--tables-only", "--out", "found")
    answer(command_in(tmp_path), *arguments, "--reliability-table", "table.json")
    page = (tmp_path / "found" / "reliability.md").read_text()
    assert "## Edges with p ≥ .95 by misfit, figures" in page
    assert "| collapsed, BGe | 0.05–0.20 | 1 | 0.70 (0.40–0.89; 7 of 10) |" in page
    assert (tmp_path / "found" / "broken_worlds.md").is_file()
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["origin"]["families"] == ["rounded", "selection"]  # of both halves
    assert table["origin"]["command"] == "bayesdag bench reliability --size quick"
    assert table["entries"][0]["sure"][:2] == [20, 14]


def test_bench_takes_in_cells_of_other_machines_and_says_where_we_stand(tmp_path, command_in):
    cells = [
        Cell("figures", {"data": "selection", "rows": 200}, method, seed, measures=measures)
        for method, shd in (("auto", 1.0), ("cam", 3.0))
        for seed in (1000, 1001, 1002)
        for measures in [{"expected_shd": shd + 0.1 * (seed % 2)}]
    ]
    write_pack(tmp_path / "cells.jsonl.gz", {"broken_worlds": cells})
    arguments = ("bench", "--merge", "cells.jsonl.gz", "--out", "found", "--compare")
    shown = answer(command_in(tmp_path), *arguments)
    assert "broken_worlds: 6 cells taken into found/broken_worlds" in shown
    found = {path.name for path in (tmp_path / "found").iterdir()}
    pages = {"broken_worlds.md", "reliability.md", "comparison.md", "comparison_rows.md"}
    pages.add("coverage.md")
    assert found == {"broken_worlds.jsonl.gz", *pages}
    page = (tmp_path / "found" / "comparison_rows.md").read_text()
    assert "| data selection | auto | E-SHD | 1.03 ± 0.14 (3) | cam (3) | – | – | – |" in page


def test_bench_refuses_seeds_and_clusters_that_mean_nothing(tmp_path, command_in):
    command = command_in(tmp_path)
    code, _, stderr = command("bench", "trivial", "--seeds", "few", "--out", "x")
    assert (code, "write 1003 for one data set, 1000-1004 for five" in stderr) == (2, True)
    code, _, stderr = command("bench", "trivial", "--cluster", "moon://1", "--out", "x")
    assert (code, "no cluster is called 'moon://1'" in stderr) == (2, True)
