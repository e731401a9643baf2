"""Checkpoints: what is kept, when it is handed back, and when it is refused."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.errors import FileFormatError
from bayesdag.runs.checkpoint import Checkpoint, MonitorGroup
from bayesdag.runs.progress import ProgressReport
from bayesdag.types import Monitor


class State(NamedTuple):
    step: jax.Array
    key: jax.Array
    draws: dict


def state(step: int) -> State:
    return State(jnp.asarray(step), jax.random.key(step), {"x": np.arange(3.0) * step})


def test_what_was_kept_comes_back_with_its_structure_and_its_keys(tmp_path):
    keeper = Checkpoint(tmp_path / "run.partial", {"seed": 1})
    assert keeper.resume(state(0)) is None
    keeper.chunk(7, 10, state(7), {})
    found = Checkpoint(tmp_path / "run.partial", {"seed": 1}).resume(state(0))
    assert int(found.step) == 7
    assert (jax.random.bits(found.key) == jax.random.bits(state(7).key)).all()
    np.testing.assert_array_equal(found.draws["x"], state(7).draws["x"])


def test_a_checkpoint_of_other_settings_is_refused_by_the_setting(tmp_path):
    Checkpoint(tmp_path / "a", {"seed": 1, "method": "m"}).chunk(1, 2, state(1), {})
    with pytest.raises(FileFormatError, match="another seed"):
        Checkpoint(tmp_path / "a", {"seed": 2, "method": "m"}).resume(state(0))


def test_a_damaged_checkpoint_is_refused_in_words(tmp_path):
    path = tmp_path / "a"
    Checkpoint(path, {}).chunk(1, 2, state(1), {})
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileFormatError, match="remove it to start afresh"):
        Checkpoint(path, {}).resume(state(0))


def test_states_are_kept_now_and_then_and_at_the_end(tmp_path):
    keeper = Checkpoint(tmp_path / "a", {}, every=3600.0)
    for step in (1, 2, 3):
        keeper.chunk(step, 4, state(step), {})
    assert int(keeper.resume(state(0)).step) == 1
    keeper.chunk(4, 4, state(4), {})
    assert int(keeper.resume(state(0)).step) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_several_monitors_act_as_one(tmp_path, capsys):
    keeper = Checkpoint(tmp_path / "a", {})
    with ProgressReport() as progress:
        both = MonitorGroup((progress, keeper))
        assert isinstance(both, Monitor)
        both.announce("this takes long")
        both.report("search", 7, 10)
        assert "search 7/10 (70%)" in progress.describe()
        both.chunk(1, 2, state(1), {"energy": 3.5, "expected_edges": 2.0})
        assert int(both.resume(state(0)).step) == 1
        assert "sampling 1/2" in progress.describe()
        assert "energy 3.5" in progress.describe()
    assert capsys.readouterr().err == "bayesdag: this takes long\n"
