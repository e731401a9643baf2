"""Names of columns are data: shown whole, never obeyed, never a reason to fail."""

import csv
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

from bayesdag import fit
from bayesdag.cli import main, output

NAMES = (
    "glucose [mg/dl]",
    "[/h]",
    "a name of more than eighty characters, which nobody has to read but which nobody may cut",
    "line\nbreak",
    "\x1b[31m\u202ered",
)
SHOWN = (*NAMES[:3], r"line\nbreak", r"\x1b[31m\u202ered")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table of odd names and its result."""
    path = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(300, 5)) @ (np.eye(5) + np.triu(rng.normal(size=(5, 5)), 1))
    table = pd.DataFrame(mixed, columns=list(NAMES))
    table.to_csv(path / "odd.csv", index=False)
    fit(table, "exact", num_samples=20).save(path / "odd.nc")
    return path


class Screen(io.StringIO):
    """A terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def run(monkeypatch, folder, *arguments, columns="60", screen=False):
    """What a command writes to a pipe or on a terminal of so many columns."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "argv", ["bayesdag", *map(str, arguments)])
    out = Screen() if screen else io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    return out.getvalue()


def unstyled(text: str) -> str:
    """The text without our own bold letters; anything else that a terminal obeys stays."""
    return text.replace("\x1b[1m", "").replace("\x1b[0m", "")


COMMANDS = [
    ["show", "odd.nc"],
    ["show", "odd.nc", "--data", "odd.csv"],
    ["show", "odd.nc", "--variable", "[/h]"],
    ["show", "odd.nc", "--paths"],
    ["show", "odd.nc", "--blanket"],
    ["adjust", "odd.nc", "--cause", "[/h]", "--outcome", "glucose [mg/dl]"],
    ["adjust", "odd.nc", "--cause", "[/h]", "--outcome", "glucose [mg/dl]", "--for", NAMES[4]],
    ["effect", "odd.nc", "--cause", "[/h]", "--outcome", "\x1b[31m\u202ered"],
    ["experiment", "odd.nc"],
    ["fit", "odd.csv", "--method", "exact", "--out", "again.nc"],
    ["export", "odd.nc", "--out", "odd.csv.csv", "--force"],
]
# Twenty draws say little about experiments, and the command says so.
few_draws = pytest.mark.filterwarnings("ignore:20 draws are too few")
every_command = pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)


@every_command
@few_draws
@pytest.mark.parametrize("screen", [False, True])
def test_nothing_from_the_data_commands_a_terminal(monkeypatch, folder, arguments, screen):
    text = run(monkeypatch, folder, *arguments, screen=screen)
    assert all(line.isprintable() for line in unstyled(text).split("\n"))


@every_command
@few_draws
def test_json_is_valid_json_with_the_names_as_they_are(monkeypatch, folder, arguments):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    read = json.loads(run(monkeypatch, folder, *arguments, "--json"), parse_constant=refuse)
    if "--variable" in arguments:
        assert {row["source"] for row in read["into"]} == set(NAMES) - {"[/h]"}
        assert {row["target"] for row in read["out_of"]} == set(NAMES) - {"[/h]"}


def test_names_are_whole_in_a_pipe_and_wrapped_on_a_terminal(monkeypatch, folder):
    piped = run(monkeypatch, folder, "show", "odd.nc")
    assert all(name in piped for name in SHOWN)
    assert "…" not in piped
    assert not [line for line in piped.split("\n") if line != line.rstrip()]
    narrow = run(monkeypatch, folder, "show", "odd.nc", columns="40", screen=True)
    assert "…" not in narrow
    lines = unstyled(narrow).split("\n")
    assert "glucose" in unstyled(narrow)
    assert max(map(cell_len, lines)) <= 40


def test_a_csv_table_of_edges_opens_as_text(monkeypatch, folder):
    run(monkeypatch, folder, "export", "odd.nc", "--out", "edges.csv", "--threshold", "0")
    with (folder / "edges.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert {name for row in rows[1:] for name in row[:2]} <= set(NAMES)


def test_numbers_that_do_not_exist_are_null(capsys):
    output.print_json({"a": float("nan"), "b": [np.float64("inf"), np.int64(3)], "c": (1, None)})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 3], "c": [1, None]}
