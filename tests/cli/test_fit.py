"""The command, as a user runs it: real files, exit codes, and a real process where it matters."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import answer
from tests.toys import toy_frame


def bayesdag(*arguments, cwd, encoding="utf-8") -> subprocess.CompletedProcess:
    """Run the command in `cwd`; COLUMNS keeps tables from wrapping."""
    command = [sys.executable, "-m", "bayesdag", *map(str, arguments)]
    environment = os.environ | {"COLUMNS": "200", "PYTHONIOENCODING": encoding}
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding=encoding, env=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and its result."""
    path = tmp_path_factory.mktemp("cli")
    toy_frame().to_csv(path / "toy.csv", index=False)
    done = bayesdag("fit", "toy.csv", "--out", "toy.nc", "--method", "exact", cwd=path)
    assert done.returncode == 0, done.stderr
    assert "rain" in done.stdout
    return path


@pytest.fixture
def here(folder, monkeypatch):
    """The same folder, which commands of this process start in."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    return folder


def test_show_prints_the_edges_with_names_and_probabilities(here, command):
    shown = answer(command, "show", "toy.nc")
    assert "source" in shown
    assert "prior:" in shown


def test_show_json_is_json(here, command):
    shown = json.loads(command("show", "toy.nc", "--json")[1])
    assert {"source", "target", "probability"} <= set(shown["edges"][0])
    assert shown["provenance"]["seed"] == 0


def test_the_same_command_writes_the_same_bytes_in_another_process(here, command):
    assert command("fit", "toy.csv", "--out", "again.nc", "--method", "exact")[0] == 0
    assert (here / "again.nc").read_bytes() == (here / "toy.nc").read_bytes()


def test_knowledge_and_settings_reach_the_method(here, command):
    (here / "tiers.yaml").write_text("forbidden: [[rain, soil], [soil, rain]]\n")
    arguments = ["--knowledge", "tiers.yaml", "--set", "num_samples=50", "--out", "k.nc", "--json"]
    shown = json.loads(command("fit", "toy.csv", "--method", "exact", *arguments)[1])
    assert shown["provenance"]["method"]["num_samples"] == 50
    between = [e for e in shown["edges"] if {e["source"], e["target"]} == {"rain", "soil"}]
    assert all(e["probability"] == 0 for e in between)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "missing.csv", "--out", "x.nc"], "missing.csv"),
        (["fit", "holes.csv", "--out", "x.nc"], "too large"),
        (["fit", "toy.csv", "--out", "x.csv"], "must end in .nc"),
        (["fit", "toy.csv", "--out", "nowhere/x.nc"], "no folder"),
        (["fit", "toy.csv", "--out", "x.nc", "--method", "magic"], "no method is called 'magic'"),
        (["fit", "toy.csv", "--out", "x.nc", "--set", "speed"], "name=value"),
        (["fit", "toy.csv", "--out", "x.nc", "--knowledge", "cycle.yaml"], "rain"),
        (["show", "toy.csv"], "not a whole bayesdag result"),
        (["show", "missing.nc"], "no file"),
    ],
)
def test_refusals_are_one_line_with_exit_code_two_and_leave_nothing_behind(
    here, command, arguments, words
):
    holes = toy_frame()
    holes.loc[3, "soil"] = float("inf")
    holes.to_csv(here / "holes.csv", index=False)
    (here / "cycle.yaml").write_text("required: [[rain, soil], [soil, rain]]\n")
    before = set(here.iterdir())
    code, stdout, stderr = command(*arguments)
    assert code == 2
    assert words in stderr
    assert stdout == ""
    assert set(here.iterdir()) == before


@pytest.mark.filterwarnings("ignore:.*cells are missing")
def test_a_truth_is_refused_with_gaps_before_anything_is_fitted(here, command):
    gaps = toy_frame()
    gaps.loc[:29, "soil"] = float("nan")
    gaps.to_csv(here / "gaps.csv", index=False)
    (here / "edges.csv").write_text("cause,effect\nrain,soil\n")
    code, _, stderr = command("fit", "gaps.csv", "--out", "x.nc", "--truth", "edges.csv")
    assert code == 2
    assert "leave --truth out" in stderr
    assert not (here / "x.nc").exists()


def test_a_refusal_of_a_real_process_shows_no_traceback(folder):
    done = bayesdag("show", "missing.nc", cwd=folder)
    assert done.returncode == 2
    assert "missing.nc" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_methods_and_datasets_are_listed(here, command):
    assert "exact" in command("methods")[1]
    assert "sachs" in command("datasets")[1]


def test_the_demonstration_compares_with_the_truth(here, command):
    code, stdout, stderr = command("demo")
    assert code == 0, stderr
    assert "in truth" in stdout
    assert "The truth has" in stdout
    assert (here / "demo.nc").is_file()


def test_help_answers_at_once(folder):
    """Timed against a bare interpreter, because the machine may be busy."""
    start = time.perf_counter()
    assert bayesdag("--help", cwd=folder).returncode == 0
    assert time.perf_counter() - start < 5
    code = "import sys, bayesdag.cli; sys.exit('jax' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_closed_pipe_ends_quietly(folder):
    command = f"{sys.executable} -m bayesdag show toy.nc --json --top 12"
    for reader in ("head -1", "true"):
        done = subprocess.run(
            f"{command} | {reader}", shell=True, cwd=folder, capture_output=True, text=True
        )
        assert done.stderr == ""


@pytest.fixture(scope="module")
def few_rows_of_odd_names(folder):
    """A process that fits a table which asks for a warning, on a terminal with few letters."""
    frame = toy_frame(num_rows=20).rename(columns={"rain": "größe → µ"})
    frame.to_csv(folder / "odd.csv", index=False)
    arguments = ("fit", "odd.csv", "--out", "odd.nc", "--method", "exact", "--quiet")
    return bayesdag(*arguments, cwd=folder, encoding="latin-1")


def test_warnings_of_the_data_are_given_once(few_rows_of_odd_names):
    assert few_rows_of_odd_names.stderr.count("rows are few for") == 1


def test_letters_that_a_terminal_lacks_are_no_traceback(few_rows_of_odd_names):
    assert few_rows_of_odd_names.returncode == 0, few_rows_of_odd_names.stderr
    assert r"größe \u2192 µ" in few_rows_of_odd_names.stdout


def test_a_long_table_says_what_it_leaves_out_and_how_it_is_ranked(here, command):
    """Four independent causes of one effect: nobody doubts any of the arrows."""
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(400, 4))
    effect = causes @ [0.5, 4.0, 1.0, 2.0] + 0.3 * rng.normal(size=400)
    frame = pd.DataFrame(np.column_stack([causes, effect]), columns=list("abcde"))
    frame.to_csv(here / "sure.csv", index=False)
    code, stdout, stderr = command(
        *("fit", "sure.csv", "--out", "sure.nc", "--method", "collapsed", "--preset", "quick"),
        *("--top", "3", "--quiet"),
    )
    assert code == 0, stderr
    assert "and 1 more edge above 0.95" in stdout
    assert "ranked by evidence" in stdout
    shown = json.loads(command("show", "sure.nc", "--json")[1])
    assert shown["num_edges_above_0.95"] == 4
    assert [edge["source"] for edge in shown["edges"][:4]] == ["b", "d", "c", "a"]
    evidence = [edge["evidence"] for edge in shown["edges"][:4]]
    assert evidence == sorted(evidence, reverse=True)
    assert shown["edges"][4]["evidence"] is None
