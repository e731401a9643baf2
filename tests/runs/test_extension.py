"""Fits that are killed or extended: as if all draws had been asked for at once."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesdag import extend, fit, load
from bayesdag.cli import app
from bayesdag.fitting import running
from bayesdag.methods.auto import Auto
from bayesdag.posterior import Posterior, storage
from bayesdag.posterior.documents import document_of
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.scores._neural import crossfit
from bayesdag.types import Method
from tests.interrupted import NEURAL, ONE_NOISE_MODEL, curved_frame
from tests.toys import toy_frame

METHODS: dict[str, Method] = {
    "neural": NEURAL,
    "auto": Auto(num_samples=30, nonlinear=ONE_NOISE_MODEL),
}
every_method = pytest.mark.parametrize(
    "name", ["neural", pytest.param("auto", marks=pytest.mark.slow)]
)


class Snapshots:
    """A monitor that notes what a kill -9 would leave on the disk, whenever that has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken: list[bytes] = []

    def resume(self, template):
        return None

    def chunk(self, *_):
        self.report()

    def report(self, *_, **__):
        left = self.path.read_bytes() if self.path.exists() else b""
        if left and left != self.taken[-1:]:
            self.taken.append(left)


class Whole(NamedTuple):
    """A fit of 42 draws, the batches of networks it trained, and what kills would leave."""

    posterior: Posterior
    num_batches: int
    snapshots: list[bytes]


class Batches(list):
    """Counts the batches of networks that are trained while it is open."""

    def __enter__(self):
        train = crossfit.networks
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(crossfit, "networks", lambda *a: self.append(1) or train(*a))
        # Everything is kept at once, so that a kill at any moment finds something to resume from.
        everything = partial(Checkpoint, every=0.0, results_every=0.0)
        self.patch.setattr(running, "Checkpoint", everything)
        return self

    def __exit__(self, *_):
        self.patch.undo()


def longer_fit(name: str, **more) -> Posterior:
    method = dataclasses.replace(METHODS[name], num_samples=42)
    return fit(curved_frame(), method, seed=3, keep_state=True, **more)


def saved(posterior: Posterior) -> bytes:
    return storage.to_bytes(document_of(posterior))


def without_state(posterior: Posterior) -> Posterior:
    return dataclasses.replace(posterior, state=None)


_wholes: dict[str, Whole] = {}


def whole(name: str, folder: Path) -> Whole:
    """The fit that others must end in; made once."""
    if name not in _wholes:
        seen = Snapshots(folder / "partial")
        with Batches() as batches:
            found = longer_fit(name, checkpoint=folder / "partial", monitor=seen)
        _wholes[name] = Whole(found, len(batches), seen.taken)
    return _wholes[name]


@every_method
def test_an_extended_neural_fit_is_a_longer_one_and_trains_nothing_again(name, tmp_path):
    expected = whole(name, tmp_path)
    short = fit(curved_frame(), METHODS[name], seed=3, keep_state=True)
    short.save(tmp_path / "short.nc")
    with Batches() as batches:
        longer = extend(load(tmp_path / "short.nc"), curved_frame(), 12)
    assert longer.num_draws == 42
    assert len(batches) < expected.num_batches / 2  # new graphs among the new draws, no more
    assert saved(longer) == saved(expected.posterior)


@every_method
def test_what_a_kill_leaves_is_gone_on_from_and_ends_in_the_same_bytes(name, tmp_path, seed):
    """In this process; `test_interruption` kills processes, which takes longer."""
    expected = whole(name, tmp_path)
    num = len(expected.snapshots)
    moment = np.random.default_rng(seed).integers(num // 3, num)
    (tmp_path / "left").write_bytes(expected.snapshots[moment])
    with Batches() as batches:
        resumed = longer_fit(name, checkpoint=tmp_path / "left")
    assert len(batches) < expected.num_batches
    # The state keeps results in the order in which they were found, or found again.
    assert saved(without_state(resumed)) == saved(without_state(expected.posterior))


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
