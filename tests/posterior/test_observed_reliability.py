"""What results say of their certainty: counts looked up by misfit, rows and model."""

import json

import numpy as np
import pytest

from bayesdag.data import Dataset
from bayesdag.errors import FileFormatError
from bayesdag.fitting import fit
from bayesdag.methods.exact import Exact
from bayesdag.posterior import observed_reliability as observed
from bayesdag.posterior.check_result import FEWEST_ROWS, Check, VariableCheck, from_summary
from bayesdag.posterior.observed_reliability import (
    EdgeCount,
    ObservedReliability,
    ReliabilityEntry,
)

SMALL = ObservedReliability(
    (
        ReliabilityEntry(
            "scores/bge", 2, 1, 14, EdgeCount(73, 52, 0.6, 0.8), EdgeCount(40, 20, 0.35, 0.65)
        ),
        ReliabilityEntry("scores/bge", 0, 0, 3, EdgeCount(2, 2, 0.3, 1.0), EdgeCount(0, 0, 0, 1)),
    ),
    {"command": "bayesdag bench broken_worlds", "commits": ["abc"]},
)


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """The small table in place of the one that comes with the package."""
    path = tmp_path / "table.json"
    path.write_text(SMALL.to_json())
    monkeypatch.setattr(observed, "TABLE", path)
    observed.shipped.cache_clear()
    yield path
    observed.shipped.cache_clear()


def check(misfit: float, model: str = "scores/bge", num_rows: int = 1000) -> Check:
    """Two variables, of which one has all the misfit."""
    variables = (VariableCheck("a", 500, 2 * misfit + 0.01), VariableCheck("b", 500))
    return Check(variables, True, True, True, model, num_rows)


def test_a_misfit_that_was_met_before_is_judged_by_what_happened_then(shipped):
    found = check(0.1)
    assert found.misfit == pytest.approx(0.1)
    assert found.lines()[-1] == (
        "reliability: On generated data with a misfit like this (0.05 to 0.2 nats per row and "
        "variable, 500 to 2000 rows), edges said to be at least 95 % probable were right in 71 % "
        "(52 of 73; 95 % interval 60 % to 80 %), those said to be 50 to 95 % probable in 50 % "
        "(20 of 40; 95 % interval 35 % to 65 %)."
    )
    assert found.summary()["reliability"] in found.lines()[-1]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (check(0.5), "has not been measured: no generated data with a misfit like this (0.2 or "),
        (check(0.1, num_rows=2000), "(0.05 to 0.2 nats per row and variable, 2000 or more rows)"),
        (check(0.1, model="scores/neural"), "were fitted by this model"),
        (check(0.0, num_rows=499), "too few edges were said to be at least 95 % probable to judge"),
        (Check((VariableCheck("a", 3),), True, True, True, "scores/bge", 3), "too few rows to"),
    ],
)
def test_what_was_never_measured_is_said_to_be_unknown(shipped, found, words):
    assert words in found.reliability


def test_too_few_edges_with_so_many_rows_are_judged_by_those_with_any(shipped):
    every = ReliabilityEntry(
        "scores/bge", 0, observed.ANY_ROWS, 9, EdgeCount(20, 18, 0.7, 0.97), EdgeCount(0, 0, 0, 1)
    )
    found = ObservedReliability((*SMALL.entries, every)).sentence("scores/bge", 0.0, 100)
    assert (
        "any number of rows), edges said to be at least 95 % probable were right in 90 %" in found
    )


def test_a_result_of_unknown_origin_claims_nothing(shipped):
    assert [line for line in check(0.1, model="").lines() if "reliability" in line] == []


def test_a_check_keeps_what_it_needs_to_say_it_again(shipped):
    told = json.loads(json.dumps(check(0.1).summary()))
    assert from_summary(told) == check(0.1)
    del told["model"], told["num_rows"]  # a file of an earlier version
    assert from_summary(told).model == ""
    assert from_summary({**told, "model": 3, "num_rows": "many"}).num_rows == 0


def test_variables_that_were_not_checked_do_not_dilute_the_misfit():
    few = VariableCheck("c", FEWEST_ROWS - 1)
    found = check(0.1)
    more = Check((*found.variables, few), True, True, True)
    assert more.misfit == found.misfit


def test_a_fit_says_what_its_certainty_is_worth(shipped):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = x + 0.3 * x**2 + 0.3 * rng.normal(size=600)
    posterior = fit(Dataset(np.c_[x, y], ("x", "y")), Exact(num_samples=20, coarsened=True))
    assert posterior.checked.model == "scores/bge"
    assert posterior.checked.num_rows == 600
    assert any(line.startswith("reliability: ") for line in posterior.describe())


def test_methods_that_share_a_posterior_share_what_was_observed():
    bge = {"plugin": "scores/bge", "alpha_mu": 1.0}
    for method in ("exact", "collapsed"):
        assert observed.model_of({"plugin": f"methods/{method}", "score": bge}) == "scores/bge"
    assert observed.model_of({"plugin": "methods/bayesdag"}) == "methods/bayesdag"
    assert observed.model_of(None) == ""


def test_a_table_comes_back_as_it_was_written(shipped):
    found = observed.read(shipped)
    assert found.entries == SMALL.entries
    assert found.origin == SMALL.origin


def test_a_table_of_another_version_or_a_damaged_one_is_refused(shipped):
    other = shipped.read_text().replace("0.2]", "0.3]")
    for text in (other, shipped.read_text()[:50], "[]"):
        shipped.write_text(text)
        with pytest.raises(FileFormatError, match="is no table of observed reliability"):
            observed.read(shipped)


def test_without_a_table_nothing_is_claimed(shipped):
    shipped.unlink()
    observed.shipped.cache_clear()
    assert "has not been measured" in check(0.1).reliability


def test_the_table_of_the_package_can_be_read():
    assert all(entry.datasets > 0 for entry in observed.shipped().entries)
