"""Reports and figures from the command: what is written, kept, and refused."""

import json

import pytest
from typer.testing import CliRunner

from bayesdag.cli import app
from tests.toys import toy_frame

FIT = ("fit", "toy.csv", "--out", "toy.nc", "--method", "exact", "--set", "num_samples=50")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with a table, its result and its report."""
    path = tmp_path_factory.mktemp("reports")
    toy_frame(120).to_csv(path / "toy.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        done = CliRunner().invoke(app, [*FIT, "--quiet", "--report", "toy.html"])
        assert done.exit_code == 0, done.output
        assert "Written to toy.html" in done.output
    return path


@pytest.fixture
def folder(results, monkeypatch):
    monkeypatch.chdir(results)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return results


def run(*arguments) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return str(done.exception)
    assert done.exit_code in (0, 2), done.output
    return done.output


def test_one_command_leads_from_a_table_to_a_report(folder):
    text = (folder / "toy.html").read_text(encoding="utf-8")
    assert "<h1>toy</h1>" in text
    assert "bayesdag fit toy.csv --out toy.nc --method exact" in text
    assert "carries 120 rows" in text


def test_the_same_command_leaves_the_same_report_and_others_are_not_overwritten(folder):
    before = (folder / "toy.html").stat().st_mtime_ns
    assert "Written to toy.html" in run(*FIT, "--quiet", "--report", "toy.html")
    assert (folder / "toy.html").stat().st_mtime_ns == before
    (folder / "mine.html").write_text("mine")
    assert "is not overwritten" in run(*FIT, "--quiet", "--report", "mine.html")
    assert "is not overwritten" in run("report", "toy.nc", "--out", "mine.html")
    other = [*FIT[:3], "new.nc", *FIT[4:], "--quiet", "--report", "mine.html"]
    assert "is not overwritten" in run(*other)
    assert not (folder / "new.nc").exists()  # refused before the fit
    assert (folder / "mine.html").read_text() == "mine"
    assert "Written to mine.html" in run("report", "toy.nc", "--out", "mine.html", "--force")


def test_a_report_of_a_file_stands_beside_it_and_carries_rows_only_when_they_are_given(folder):
    (folder / "copy.nc").write_bytes((folder / "toy.nc").read_bytes())
    assert "Written to copy.html" in run("report", "copy.nc")
    assert "carries no rows" in (folder / "copy.html").read_text(encoding="utf-8")
    said = run("report", "copy.nc", "--data", "toy.csv", "--rows", 9, "--force", "--json")
    assert json.loads(said)["written"] == "copy.html"
    assert "carries 9 rows" in (folder / "copy.html").read_text(encoding="utf-8")


def test_places_where_no_report_can_go_are_refused_before_the_work(folder):
    assert "ends in .html" in run("report", "toy.nc", "--out", "toy.pdf")
    assert "no folder" in run("report", "toy.nc", "--out", "nowhere/toy.html")
    assert "ends in .html" in run(*FIT[:3], "never.nc", "--report", "toy.txt")
    assert not (folder / "never.nc").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--out", "a.svg"),
        ("--out", "a.pdf", "--threshold", "0.2"),
        ("--out", "a.png", "--kind", "edges"),
        ("--out", "b.svg", "--kind", "effect", "--cause", "rain", "--outcome", "crop"),
    ],
)
def test_figures_are_drawn_the_same_twice(folder, arguments):
    pytest.importorskip("matplotlib")
    assert "Written to" in run("plot", "toy.nc", *arguments)
    first = (folder / arguments[1]).read_bytes()
    assert "is not overwritten" in run("plot", "toy.nc", *arguments)
    assert "Written to" in run("plot", "toy.nc", *arguments, "--force")
    assert (folder / arguments[1]).read_bytes() == first


def test_figures_say_what_they_need(folder):
    assert "needs --cause and --outcome" in run(
        "plot", "toy.nc", "--out", "c.svg", "--kind", "effect"
    )
    assert "means nothing" in run("plot", "toy.nc", "--out", "c.svg", "--cause", "rain")
    assert "--out ends in" in run("plot", "toy.nc", "--out", "c.gif")
    assert "no figure is called" in run("plot", "toy.nc", "--out", "c.svg", "--kind", "pie")
