"""The command with a column that says where rows come from, in this process."""

import json

import numpy as np
import pytest

from tests.cli.conftest import answer
from tests.toys import toy_frame

FIT = ("fit", "cells.csv", "--method", "exact", "--set", "num_samples=30")


@pytest.fixture
def bayesdag(tmp_path, command_in):
    """Runs a command in a folder with a table; returns exit code, stdout and stderr."""
    frame = toy_frame(200).drop(columns="price")
    frame["soil"] += 3.0 * (np.arange(200) % 2)
    frame["condition"] = np.where(np.arange(200) % 2, "drug", "control")
    frame["plate"] = np.arange(200) // 100
    frame.to_csv(tmp_path / "cells.csv", index=False)
    frame.drop(columns="plate").to_csv(tmp_path / "one.csv", index=False)
    return command_in(tmp_path)


def test_a_result_says_what_environments_act_on_wherever_it_is_shown(bayesdag):
    columns = ("--environment", "condition=control", "--environment", "plate")
    text = answer(bayesdag, *FIT, *columns, "--out", "cells.nc")
    assert "What environments act on, compared with the reference" in text
    assert "environments: condition, 2 of them, each compared with control" in text
    # Everything else knows the environments from the result.
    again = answer(bayesdag, "show", "cells.nc", "--data", "cells.csv", "--json")
    shown = json.loads(again)
    first = shown["environment_targets"][0]
    assert (first["environment"], first["label"], first["target"]) == ("condition", "drug", "soil")
    assert first["probability"] > 0.99
    assert {edge["source"] for edge in shown["edges"]} == {"rain", "soil", "crop"}
    assert [c["column"] for c in shown["provenance"]["environments"]] == ["condition", "plate"]
    longer = ("extend", "cells.nc", "cells.csv", "--out", "longer.nc", "--num-samples", 10)
    assert "What environments act on" in answer(bayesdag, *longer)
    into = answer(bayesdag, "show", "cells.nc", "--variable", "soil")
    assert "condition=drug" in into
    found = json.loads(
        answer(
            bayesdag,
            "effect",
            "cells.nc",
            "--cause",
            "condition=drug",
            "--outcome",
            "soil",
            "--json",
        )
    )
    assert found["mean"] == pytest.approx(3, abs=0.5)


def test_the_same_command_finds_its_result_and_another_reference_does_not(bayesdag):
    arguments = (*FIT[:1], "one.csv", *FIT[2:], "--out", "one.nc", "--environment")
    first = answer(bayesdag, *arguments, "condition")
    assert answer(bayesdag, *arguments, "condition").splitlines()[-1] == first.splitlines()[-1]
    code, _, err = bayesdag(*arguments, "condition=drug")
    assert code == 2
    assert "one.nc" in err


@pytest.mark.parametrize(
    ("named", "words"),
    [("site", "no column of the data"), ("condition=heat", "no row has the environment")],
)
def test_an_environment_that_is_not_there_is_refused(bayesdag, named, words):
    code, _, err = bayesdag(*FIT, "--out", "x.nc", "--environment", named)
    assert code == 2
    assert words in err
    assert "Traceback" not in err
