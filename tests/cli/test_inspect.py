"""`bayesdag inspect`: every column in a line, whatever it holds, and nothing is fitted."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.toys import toy_frame


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A folder with a table as people have them."""
    rng = np.random.default_rng(0)
    frame = toy_frame().assign(
        id=[f"p{i}" for i in range(300)],
        number=np.random.default_rng(1).permutation(300),
        colour=rng.choice(["red", "green", "blue"], 300),
        visits=rng.poisson(1, 300),
        rare=np.where(np.arange(300) < 2, "a", "b"),
    )
    frame.loc[:29, "soil"] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    return tmp_path


def test_every_column_is_shown_with_kind_reason_gaps_and_advice(table, command):
    code, shown, _ = command("inspect", "table.csv")
    assert code == 0
    lines = {line.split()[0]: line for line in shown.splitlines() if line.split()}
    assert "continuous" in lines["soil"]
    assert "10.0%" in lines["soil"]
    assert "imputed" in lines["soil"]
    assert "categorical" in lines["colour"]
    assert "3 levels" in lines["colour"]
    assert "count" in lines["visits"]
    assert "█" in lines["visits"]
    assert "refused" in lines["id"]
    assert "'number' holds another whole number in every row" in shown
    assert "'rare' in fewer than 5 rows: a" in shown
    assert "a fit would refuse this table: column 'id'" in shown


def test_what_is_prepared_and_declared_counts(table, command):
    (table / "kinds.yaml").write_text("colour: [red, green, blue]\n")
    options = ("--drop", "id,number", "--kinds", "kinds.yaml", "--json")
    found = json.loads(command("inspect", "table.csv", *options)[1])
    columns = {column["name"]: column for column in found["columns"]}
    assert "id" not in columns
    assert columns["colour"]["kind"] == "ordinal"
    assert columns["colour"]["levels"] == ["red", "green", "blue"]
    assert columns["soil"]["missing_fraction"] == pytest.approx(0.1)
    assert found["refusal"] == ""
    assert found["num_rows"] == 300


def test_a_wrong_option_is_refused(table, command):
    code, _, stderr = command("inspect", "table.csv", "--drop", "idd")
    assert code == 2
    assert "drop names 'idd'" in stderr


def test_nothing_heavy_is_imported(table):
    """JAX alone takes longer to start than a look at a table may take."""
    program = (
        "import sys; from bayesdag.data import inspection; inspection.inspect('table.csv');"
        "sys.exit(bool({'jax', 'arviz_base', 'xarray', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=table, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("always::bayesdag.errors.BayesdagWarning")
def test_fit_takes_the_same_options(table, command):
    options = ("--drop", "id,number,rare", "--kinds", "kinds.yaml", "--out", "r.nc")
    (table / "kinds.yaml").write_text("visits: continuous\ncolour: [red, green, blue]\n")
    code, _, stderr = command("fit", "table.csv", *options, "--method", "empty")
    assert code == 2
    assert "column 'colour' is ordinal (red, green, blue), and method 'empty'" in stderr
    code, _, stderr = command(
        "fit", "table.csv", "--drop", "id,number,colour", "--out", "r.nc", "--method", "empty"
    )
    assert code == 0, stderr
    assert "method 'empty' takes 'visits' (count), 'rare' (binary) for measurements" in stderr
    assert stderr.count("cells are missing") == 1
    shown = json.loads(command("show", "r.nc", "--data", "table.csv", "--json")[1])
    assert shown["provenance"]["imputation"]["num_completions"] == 3


HOSTILE = {
    "words among numbers": (["3.5", "low", "2.5"], "among numbers"),
    "nothing": ([None] * 3, "has no value in any row"),
    "one level": (["x"] * 3, "is always 'x'"),
    "dates": (["2020-01-01", "2020-01-02", "2020-01-03"], "looks like a date"),
    "a unit": (["$1.50", "$2.25", "$3.00"], "numbers with a unit"),
}


@pytest.mark.parametrize(("cells", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_column_that_cannot_be_used_is_shown_with_what_to_do(tmp_path, command, cells, words):
    frame = toy_frame().assign(column=np.resize(np.array(cells, dtype=object), 300))
    frame.to_csv(tmp_path / "hostile.csv", index=False)
    code, shown, _ = command("inspect", str(tmp_path / "hostile.csv"), "--json")
    assert code == 0
    assert words in json.loads(shown)["refusal"]


def test_names_in_any_script_and_a_hundred_thousand_labels_are_no_trouble(tmp_path, command):
    rows = 100_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"größe": rng.normal(size=rows), "温度 😀": rng.normal(size=rows)})
    frame.assign(key=[f"k{i}" for i in range(rows)]).to_csv(tmp_path / "wide.csv", index=False)
    found = json.loads(command("inspect", str(tmp_path / "wide.csv"), "--json")[1])
    assert [column["kind"] for column in found["columns"]] == ["continuous"] * 2 + ["refused"]
    assert "an identifier or free text" in found["refusal"]


def test_names_without_rows_and_names_given_twice_are_refused_in_words(tmp_path, command):
    (tmp_path / "empty.csv").write_text("a,b,c\n")
    code, _, said = command("inspect", str(tmp_path / "empty.csv"))
    assert code == 2
    assert "no rows" in said
    (tmp_path / "twice.csv").write_text("a,a,b\n" + "1,2,3\n2,3,5\n4,1,2\n" * 10)
    _, shown, _ = command("inspect", str(tmp_path / "twice.csv"))
    assert "both called 'a'" in shown


def test_columns_that_nothing_acts_on_are_named(table, command):
    pd.read_csv("table.csv").drop(columns="id").assign(
        Age=np.random.default_rng(2).normal(40, 9, 300)
    ).to_csv("ages.csv", index=False)
    code, shown, _ = command("inspect", "ages.csv")
    assert code == 0
    assert "Age: a fit takes it to have no causes" in shown


def test_a_column_with_an_infinite_cell_does_not_stop_the_others(table, command):
    frame = pd.read_csv("table.csv").drop(columns="id")
    frame["number"] = frame["number"].astype(float)
    frame.loc[3, "number"] = np.inf
    frame.to_csv("infinite.csv", index=False)
    code, shown, _ = command("inspect", "infinite.csv")
    assert code == 0
    assert "column 'number' holds inf in row 4" in shown
    assert "categorical" in shown


@pytest.mark.parametrize(("size", "steps"), [(1e30, 0.0), (-1e15, 1e-15), (9e69, 0.05)])
def test_numbers_of_any_size_have_a_distribution(size, steps, tmp_path, command):
    rows = [f"{k % 7 + k / 300},{size * (1 - k % 11 * steps)!r}" for k in range(200)]
    (tmp_path / "huge.csv").write_text("\n".join(["small,huge", *rows]))
    code, shown, said = command("inspect", str(tmp_path / "huge.csv"))
    assert code == 0, said
    assert "█" in next(line for line in shown.splitlines() if line.startswith("huge"))
