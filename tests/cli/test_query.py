"""The commands that ask a result, in this process: starting one costs more than answering."""

import json

import networkx
import numpy as np
import pytest

from bayesdag import fit, read
from tests.cli.conftest import answer
from tests.toys import toy_frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and two results."""
    path = tmp_path_factory.mktemp("questions")
    toy_frame().to_csv(path / "toy.csv", index=False)
    toy_frame(seed=1).to_csv(path / "other.csv", index=False)
    for seed in (0, 1):
        fit(toy_frame(), "exact", seed=seed, num_samples=20).save(path / f"seed{seed}.nc")
    return path


@pytest.fixture
def bayesdag(folder, command_in):
    """Runs a command in the folder; returns exit code, stdout and stderr."""
    return command_in(folder)


def test_show_tells_errors_and_the_state_of_the_chains(bayesdag):
    shown = json.loads(answer(bayesdag, "show", "seed0.nc", "--json", "--data", "toy.csv"))
    assert all(edge["error"] >= 0 for edge in shown["edges"])
    assert shown["diagnostics"]["num_chains"] == 1
    assert {v["variable"] for v in shown["check"]["variables"]} == {"rain", "soil", "crop", "price"}
    text = answer(bayesdag, "show", "seed0.nc", "--data", "toy.csv")
    assert "independent draws" in text
    assert "Misfit of each variable in nats per row" in text


def test_what_certainty_is_worth_is_said_once_and_with_the_fit(bayesdag, folder):
    # Counts are those of evidence that counts less where rows contradict the model, as by default.
    fit(toy_frame(), "exact", num_samples=20, coarsened=True).save(folder / "coarsened.nc")
    shown = json.loads(answer(bayesdag, "show", "coarsened.nc", "--json"))
    assert "95 %" in shown["check"]["reliability"]
    text = answer(bayesdag, "show", "coarsened.nc")
    assert text.count("reliability: ") == 1
    assert text.index("fit: ") < text.index("reliability: ") < text.index("Most probable edges")


def test_whether_the_model_fits_stands_above_the_edges(bayesdag, folder):
    rng = np.random.default_rng(0)
    table = toy_frame(200)
    table["crop"] += np.std(table["crop"]) * rng.choice([-1.5, 1.5], 200)
    fit(table, "exact", num_samples=50).save(folder / "two_peaks.nc")
    for name, words in (
        ("seed0.nc", "fit: nothing contradicts the model"),
        ("two_peaks.nc", "fit: the model does not fit crop"),
    ):
        text = answer(bayesdag, "show", name)
        assert text.startswith(words)
        assert ("do not trust" in text) == ("does not" in words)
        assert text.count("fit: ") == 1
        shown = json.loads(answer(bayesdag, "show", name, "--json"))
        assert shown["check"]["passed"] == ("nothing" in words)
        assert {v["variable"]: v["verdict"] for v in shown["check"]["variables"]}["crop"]


def test_a_table_is_checked_with_its_interventions_or_not_at_all(bayesdag, folder):
    table = toy_frame(100)
    table.assign(set=["soil"] * 20 + [""] * 80).to_csv(folder / "set.csv", index=False)
    fit(read(folder / "set.csv", interventions="set"), "exact", num_samples=20).save(
        folder / "set.nc"
    )
    table.to_csv(folder / "unset.csv", index=False)
    arguments = ["show", "set.nc", "--json", "--data"]
    shown = json.loads(answer(bayesdag, *arguments, "set.csv", "--interventions", "set"))
    rows = {v["variable"]: v["num_rows"] for v in shown["check"]["variables"]}
    assert rows == {"rain": 100, "soil": 80, "crop": 100, "price": 100}
    code, out, err = bayesdag(*arguments, "unset.csv")
    assert (code, out) == (2, "")
    assert "pass the table it was fitted to with the same interventions" in err


def test_effect_has_a_table_and_json(bayesdag):
    arguments = ["effect", "seed0.nc", "--cause", "rain", "--outcome", "crop"]
    text = answer(bayesdag, *arguments, "--values", "40", "60", "--prob", "0.8")
    assert "rain from 40 to 60" in text
    assert "80% HDI, low" in text
    found = json.loads(answer(bayesdag, *arguments, "--given", "soil=2", "--json"))
    rain = toy_frame()["rain"]
    assert found["values"] == pytest.approx(rain.mean() + rain.std(ddof=0) * np.array([-1, 1]))
    assert found["hdi_prob"] == 0.95
    assert found["given"] == {"soil": 2}
    assert found["hdi_low"] <= found["mean"] <= found["hdi_high"]


@pytest.mark.filterwarnings("ignore:20 draws are too few")
def test_experiment_has_a_table_and_json(bayesdag):
    text = answer(bayesdag, "experiment", "seed0.nc")
    assert "(only observe)" in text
    assert "fraction removed: of the entropy of the graph" in text
    arguments = ["--edge", "rain", "soil", "--candidate", "rain", "--cost", "rain=2", "--json"]
    ranked = json.loads(answer(bayesdag, "experiment", "seed0.nc", *arguments))
    assert {row["set"]: row["cost"] for row in ranked} == {"rain": 2, "(only observe)": 1}
    assert all(row["low"] <= row["gain"] <= row["high"] for row in ranked)
    effect = ["--effect", "rain", "crop", "--candidate", "crop", "--json"]
    assert len(json.loads(answer(bayesdag, "experiment", "seed0.nc", *effect))) == 2


def test_export_writes_what_other_programs_read(bayesdag, folder):
    written = json.loads(answer(bayesdag, "export", "seed0.nc", "--out", "toy.gml", "--json"))
    graph = networkx.read_gml(folder / "toy.gml")
    assert set(graph.nodes) == {"rain", "soil", "crop", "price"}
    assert graph.number_of_edges() == written["edges"]
    assert "Written to toy.dot" in answer(bayesdag, "export", "seed0.nc", "--out", "toy.dot")


def test_runs_are_merged_and_extended(bayesdag):
    both = answer(bayesdag, "merge", "seed0.nc", "seed1.nc", "--out", "both.nc", "--json")
    assert json.loads(both)["provenance"]["seed"] == [0, 1]
    assert "Do the chains agree?" in answer(bayesdag, "show", "both.nc")
    more = ["--out", "long.nc", "--num-samples", 10, "--json"]
    longer = json.loads(answer(bayesdag, "extend", "seed0.nc", "toy.csv", *more))
    assert longer["diagnostics"]["num_draws"] == 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("effect seed0.nc --cause rian --outcome crop", "did you mean 'rain'"),
        (
            "effect seed0.nc --cause rain --outcome crop --given x",
            "--given takes name=number or name=label",
        ),
        (
            "effect seed0.nc --cause rain --outcome crop --prob 2",
            "--prob is 2; it must lie",
        ),
        (
            "effect seed0.nc --cause rain --outcome crop --num-rows 0",
            "Invalid value for '--num-rows'",
        ),
        (
            "effect seed0.nc --cause rain --outcome crop --values 0 1e99",
            "'rain' cannot be 1e+99, which is too far from the data",
        ),
        ("experiment seed0.nc --num-rows 0", "value for '--num-rows'"),
        ("experiment seed0.nc --cost rain=cheap", "--cost takes name=number"),
        ("experiment seed0.nc --candidate fog", "no column is called 'fog'"),
        ("export seed0.nc --out x.pdf", "no format is called 'pdf'"),
        ("merge seed0.nc seed0.nc --out x.nc", "seed 0 occurs"),
        ("merge seed0.nc --out x.nc", "two or more"),
        ("show seed0.nc --interventions x", "name it with --data"),
        ("show seed0.nc --data other.csv", "these are not the data of this posterior"),
        ("show toy.csv", "not a whole bayesdag result"),
        ("show seed0.nc --top -1", "--top"),
        ("show seed0.nc --variable fog", "no column is called 'fog'"),
        ("show seed0.nc --paths --data toy.csv", "--data checks the whole model"),
        ("adjust seed0.nc --cause rain --outcome rain", "both 'rain'"),
        ("adjust seed0.nc --cause rain --outcome crop --for crop", "cannot hold"),
        ("extend seed0.nc toy.csv --out x.nc --num-samples -3", "--num-samples"),
        (f"fit toy.csv --out x.nc --seed {2**70}", "seed is 1180591620717411303424"),
        ("fit toy.csv --out x.nc --seed -1", "seed is -1"),
        ("fit toy.csv --out x.nc --set seed=3", "no setting 'seed'"),
        ("fit toy.csv --out x.nc --set preset=quick", "use --preset quick"),
        ("fit toy.csv --out x.nc --set max_exact=99999999999", "too large"),
        ("fit toy.csv --out x.nc --method collapsed --set hottest=nan", "finite"),
        ("effect seed0.nc --cause rain --outcome crop --prob 2", "--prob is 2"),
        ("effect seed0.nc --cause rain --outcome crop --prob nan", "--prob is nan"),
        ("effect seed0.nc --cause rain --outcome crop --num-rows 0", "--num-rows"),
        ("effect seed0.nc --cause rain --outcome crop --values 0 1e400", "two values of 'rain'"),
        ("effect seed0.nc --cause rain --outcome crop --values 0 1e300", "too far from the data"),
        ("effect seed0.nc --cause rain --outcome crop --values 0 nan", "two values of 'rain'"),
        ("effect seed0.nc --cause rain --outcome crop --given soil=inf", "a finite number"),
        ("effect seed0.nc --cause rain --outcome crop --given soil=1e200", "too far"),
        ("experiment seed0.nc --num-rows 0", "--num-rows"),
        ("experiment seed0.nc --cost rain=1e400", "a finite number"),
        ("export seed0.nc --out x.csv --threshold 5", "threshold is 5"),
        ("export seed0.nc --out x.csv --threshold nan", "threshold is nan"),
        ("methods magic", "no method is called 'magic'"),
    ],
)
def test_refusals_are_words_with_exit_code_two(bayesdag, folder, arguments, words):
    before = set(folder.iterdir())
    code, out, err = bayesdag(*arguments.split())
    assert code == 2
    assert words in err
    assert "Traceback" not in err
    assert out == ""
    assert set(folder.iterdir()) == before
