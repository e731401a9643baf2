"""Fits that keep their state, and are extended: as if all draws had been asked for at once."""

import dataclasses

import pytest
from typer.testing import CliRunner

from bayesdag import extend, fit, load
from bayesdag.cli import app
from bayesdag.methods.auto import Auto
from bayesdag.scores._neural import crossfit
from tests.interrupted import NEURAL, ONE_NOISE_MODEL, curved_frame
from tests.toys import toy_frame

METHODS = {"neural": NEURAL, "auto": Auto(num_samples=30, curved=ONE_NOISE_MODEL)}


@pytest.mark.parametrize("name", ["neural", pytest.param("auto", marks=pytest.mark.slow)])
def test_an_extended_neural_fit_is_a_longer_one_and_trains_nothing_again(
    name, tmp_path, monkeypatch
):
    short = fit(curved_frame(), METHODS[name], seed=3, keep_state=True)
    short.save(tmp_path / "short.nc")
    batches, train = [], crossfit.networks
    monkeypatch.setattr(crossfit, "networks", lambda *a: batches.append(1) or train(*a))
    longer = extend(load(tmp_path / "short.nc"), curved_frame(), 12)
    recalled = len(batches)
    method = dataclasses.replace(METHODS[name], num_samples=42)
    whole = fit(curved_frame(), method, seed=3, keep_state=True)
    assert longer.num_draws == 42
    assert recalled < len(batches) - recalled  # new graphs among the new draws, no more
    longer.save(tmp_path / "longer.nc")
    whole.save(tmp_path / "whole.nc")
    assert (tmp_path / "longer.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()


def test_auto_hands_the_number_of_draws_on_and_is_extended_on_the_command_line(tmp_path):
    toy_frame().to_csv(tmp_path / "t.csv", index=False)
    table, short, longer = (str(tmp_path / name) for name in ("t.csv", "short.nc", "longer.nc"))
    runner = CliRunner()
    words = ["fit", table, "--out", short, "--keep-state", "--set", "num_samples=20"]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    assert load(short).num_draws == 20
    done = runner.invoke(app, ["extend", short, table, "--out", longer, "--num-samples", "15"])
    assert done.exit_code == 0, done.output
    assert load(longer).num_draws == 35
    whole = fit(toy_frame(), "auto", num_samples=35)
    assert (load(longer).graphs == whole.graphs).all()


def test_auto_is_extended_without_having_been_told_a_number_of_draws():
    short = fit(toy_frame(), "auto")
    longer = extend(short, toy_frame(), 7)
    assert longer.num_draws == short.num_draws + 7
