"""Checkpoints: what is kept, when it is handed back, and when it is refused."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.errors import FileFormatError, WriteError
from bayesdag.runs import checkpoint, journal
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.runs.memory_journal import MemoryJournal
from bayesdag.runs.packing import fingerprint
from bayesdag.runs.progress import ProgressReport
from bayesdag.runs.recording import MonitorGroup, recorder_of
from bayesdag.types import Monitor, Recorder

SETTINGS = {"seed": 1, "method": "m"}


class State(NamedTuple):
    step: jax.Array
    key: jax.Array
    draws: dict


def state(step: int, num: int = 3) -> State:
    return State(jnp.asarray(step), jax.random.key(step), {"x": np.arange(float(num)) * step})


def eager(path, settings=SETTINGS, **more) -> Checkpoint:
    """A checkpoint that writes at once."""
    return Checkpoint(path, settings, **{"every": 0.0, "results_every": 0.0} | more)


def group(*monitors) -> MonitorGroup:
    return MonitorGroup(monitors)


def refuse():
    raise AssertionError("computed again")


def test_chains_come_back_with_their_structure_and_their_keys(tmp_path):
    path = tmp_path / "run.partial"
    assert group(eager(path)).resume(state(0)) is None
    group(eager(path)).chunk(7, 10, state(7), {})
    found = group(eager(path)).resume(state(0))
    assert int(found.step) == 7
    assert (jax.random.bits(found.key) == jax.random.bits(state(7).key)).all()
    np.testing.assert_array_equal(found.draws["x"], state(7).draws["x"])


def test_a_result_is_computed_once_and_recalled_from_the_file(tmp_path):
    first = group(eager(tmp_path / "a"))
    made = first.recall("families", lambda: {"x": np.arange(4.0), "words": np.array(["é"])})
    again = group(eager(tmp_path / "a")).recall("families", refuse)
    assert list(made) == list(again) == ["x", "words"]
    for name, value in made.items():
        np.testing.assert_array_equal(again[name], value)
        assert again[name].dtype == value.dtype


def test_scopes_keep_their_names_and_their_chains_apart(tmp_path):
    run = group(eager(tmp_path / "a"))
    for k in (1, 2):
        run.child(f"bag {k}").recall("x", lambda k=k: {"x": np.array(k)})
        run.child(f"bag {k}").chunk(k, 9, state(k), {})
    again = group(eager(tmp_path / "a"))
    for k in (1, 2):
        assert int(again.child(f"bag {k}").recall("x", refuse)["x"]) == k
        assert int(again.child(f"bag {k}").resume(state(0)).step) == k
    assert again.resume(state(0)) is None
    with pytest.raises(AssertionError, match="computed again"):
        again.recall("x", refuse)


def test_a_state_on_the_way_to_a_result_is_no_result(tmp_path):
    run = group(eager(tmp_path / "a"))
    run.keep_unfinished("search", lambda: {"order": np.arange(3)})
    again = group(eager(tmp_path / "a"))
    np.testing.assert_array_equal(again.unfinished("search")["order"], np.arange(3))
    with pytest.raises(AssertionError, match="computed again"):
        again.recall("search", refuse)


def test_a_torn_last_record_is_dropped_and_overwritten(tmp_path):
    path = tmp_path / "a"
    run = group(eager(path))
    for name in ("first", "second"):
        run.recall(name, lambda: {"x": np.arange(100.0)})
    whole = path.read_bytes()
    before_second = len(whole) - len(journal.record("second", {"x": np.arange(100.0)}))
    for cut in (before_second + 1, before_second + 19, before_second + 40, len(whole) - 1):
        path.write_bytes(whole[:cut])
        resumed = group(eager(path))
        resumed.recall("first", refuse)
        resumed.recall("second", lambda: {"x": np.arange(100.0)})
        assert path.read_bytes() == whole


def test_a_checkpoint_of_other_settings_is_refused_by_the_setting(tmp_path):
    group(eager(tmp_path / "a")).chunk(1, 2, state(1), {})
    with pytest.raises(FileFormatError, match="another seed"):
        eager(tmp_path / "a", {"seed": 2, "method": "m"}).open()


DAMAGE = {
    "empty": (lambda content: b"", "is empty"),
    "foreign": (lambda content: b"city,inhabitants\nParis,2000000\n", "not a checkpoint"),
    "old": (lambda content: b"PK\x03\x04" + content, "not a checkpoint"),
    "cut off": (lambda content: content[:20], "cut off in its header"),
    "header": (lambda content: flipped(content, 40), "damaged header"),
    "record": (lambda content: flipped(content, -200), "damaged in the record"),
    "length": (lambda content: flipped(content, content.index(b"RECD") + 5), "damaged at byte"),
    "zeros": (lambda content: content + bytes(64), "damaged at byte"),
}


def flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_no_whole_checkpoint_is_refused_in_words(tmp_path, kind):
    damage, words = DAMAGE[kind]
    path = tmp_path / "a"
    run = group(eager(path))
    for name in ("first", "second", "third"):
        run.recall(name, lambda: {"x": np.arange(100.0)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileFormatError, match=f"{words}.*remove it to start afresh"):
        eager(path).open()


def test_chains_of_other_shapes_are_refused_in_words(tmp_path):
    group(eager(tmp_path / "a")).chunk(1, 2, state(1, num=5), {})
    with pytest.raises(FileFormatError, match="chains of other shapes"):
        group(eager(tmp_path / "a")).resume(state(0))


def test_a_folder_and_a_full_disk_are_refused_in_words(tmp_path, monkeypatch):
    with pytest.raises(FileFormatError, match="cannot be read"):
        eager(tmp_path).open()

    def full(*_):
        raise OSError(28, "No space left on device")

    run = group(eager(tmp_path / "a"))
    run.chunk(1, 9, state(1), {})
    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device; make room"):
        run.chunk(2, 9, state(2), {})
    with pytest.raises(WriteError, match="the disk is full"):  # at its first write
        group(eager(tmp_path / "b")).chunk(1, 9, state(1), {})


def test_states_are_kept_now_and_then_and_at_the_end(tmp_path):
    run = group(Checkpoint(tmp_path / "a", SETTINGS, every=3600.0))
    for step in (1, 2, 3):
        run.chunk(step, 4, state(step), {})
    assert int(group(eager(tmp_path / "a")).resume(state(0)).step) == 1
    run.chunk(4, 4, state(4), {})
    assert int(group(eager(tmp_path / "a")).resume(state(0)).step) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_results_wait_for_one_another_and_are_written_at_the_end(tmp_path):
    path = tmp_path / "a"
    file = Checkpoint(path, SETTINGS, results_every=3600.0)
    run = group(file)
    for k in range(20):
        run.recall(f"{k}", lambda k=k: {"x": np.array(k)})
    assert not path.exists()
    assert int(run.recall("7", refuse)["x"]) == 7
    file.flush()
    assert int(group(eager(path)).recall("7", refuse)["x"]) == 7


def test_superseded_states_do_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_MAX_GARBAGE", 10_000)
    path = tmp_path / "a"
    run = group(eager(path))
    run.recall("first", lambda: {"x": np.arange(100.0)})
    sizes = []
    for step in range(1, 60):
        run.chunk(step, 100, state(step, num=200), {})
        sizes.append(path.stat().st_size)
    assert max(sizes) < 20_000
    again = group(eager(path))
    assert int(again.resume(state(0, num=200)).step) == 59
    again.recall("first", refuse)


def test_a_journal_in_memory_hands_a_longer_run_what_it_needs_and_no_more():
    shorter = MemoryJournal()
    run = group(shorter)
    run.recall("used", lambda: {"x": np.arange(3)})
    run.recall("other inputs", lambda: {"x": np.arange(4)})
    run.keep_unfinished("search", lambda: {"x": np.arange(5)})
    run.chunk(1, 2, state(1), {})
    run.chunk(2, 2, state(2), {})
    longer = MemoryJournal(shorter.kept())
    again = group(longer)
    again.recall("used", refuse)
    assert again.unfinished("search") is None
    found = again.resume(state(0, num=5))
    assert int(found.step) == 2
    np.testing.assert_array_equal(found.draws["x"], [0, 2, 4, 0, 0])
    fresh = MemoryJournal()
    group(fresh).recall("used", lambda: {"x": np.arange(3)})
    group(fresh).chunk(2, 2, state(2), {})
    np.testing.assert_array_equal(longer.kept()["journal"], fresh.kept()["journal"])
    assert group(MemoryJournal(shorter.kept())).resume((state(0), state(1))) is None


def test_a_state_of_another_version_is_refused_in_words():
    with pytest.raises(FileFormatError, match="the state in this result"):
        MemoryJournal({"leaf0": np.zeros(3)})


def test_what_one_journal_knows_the_others_learn(tmp_path):
    group(eager(tmp_path / "a")).recall("x", lambda: {"x": np.arange(3)})
    memory = MemoryJournal()
    group(eager(tmp_path / "a"), memory).recall("x", refuse)
    group(memory).recall("x", refuse)


def test_fingerprints_tell_values_shapes_and_types_apart():
    one = np.arange(6.0)
    different = [one, one.reshape(2, 3), one.astype(np.float32), one + 1, jax.random.key(3)]
    assert len({fingerprint(value) for value in different}) == len(different)
    assert fingerprint(one, jax.random.key(3)) == fingerprint(one.copy(), jax.random.key(3))


def test_several_monitors_act_as_one(tmp_path, capsys):
    with ProgressReport() as progress:
        both = MonitorGroup((progress, eager(tmp_path / "a")))
        assert isinstance(both, Monitor)
        assert isinstance(both, Recorder)
        both.announce("this takes long")
        both.report("search", 7, 10)
        assert "search 7/10 (70%)" in progress.describe()
        both.chunk(1, 2, state(1), {"energy": 3.5, "expected_edges": 2.0})
        assert int(both.resume(state(0)).step) == 1
        assert "sampling 1/2" in progress.describe()
        assert "energy 3.5" in progress.describe()
    assert capsys.readouterr().err == "bayesdag: this takes long\n"


def test_whoever_watches_a_method_can_record(tmp_path):
    for monitor in (None, MonitorGroup()):
        assert isinstance(recorder_of(monitor), Recorder)
        assert recorder_of(monitor).recall("x", lambda: {"x": np.array(1)})["x"] == 1

    class Watching:
        steps = []

        def resume(self, template):
            return "kept"

        def chunk(self, step, total, state, stats):
            self.steps.append(step)

    recorder = recorder_of(Watching())
    recorder.child("bag 1").chunk(3, 4, None, {})
    assert Watching.steps == [3]
    assert recorder.resume(None) == "kept"
    assert recorder.child("bag 1").resume(None) is None  # it knows of one run only
