"""The loop: what is kept, that chunks and interruptions change nothing, and the stop at NaN."""

import hashlib
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.errors import DivergenceError
from bayesdag.runs import loop
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.runs.recording import MonitorGroup

SCHEDULE = loop.Schedule(num_warmup=5, num_samples=4, thinning=3)
TRACES: list[int] = []


class Walk(NamedTuple):
    """Two random walks; the energy of the second is not finite from a step of choice."""

    breaks_at: int = 10**6

    def step(self, key, step, state, context):
        TRACES.append(1)
        state = state + context * jax.random.normal(key, (2,))
        broken = (step >= self.breaks_at) & (jnp.arange(2) == 1)
        return state, {"energy": jnp.where(broken, jnp.nan, state)}

    def keep(self, key, state, context):
        return {"x": state}


class Chunks:
    """A monitor that notes every chunk and never resumes."""

    def __init__(self):
        self.stops = []

    def resume(self, template):
        return None

    def chunk(self, step, total, state, stats):
        self.stops.append((step, total, stats))


def walk(key, kernel=None, schedule=SCHEDULE, monitor=None, **more):
    kernel = Walk() if kernel is None else kernel
    return loop.run(key, kernel, jnp.zeros(2), jnp.ones(()), schedule, monitor, **more)


def kept(path):
    return MonitorGroup((Checkpoint(path, {}, every=0.0),))


def test_every_third_state_after_the_warm_up_is_kept(key):
    path, state = [], jnp.zeros(2)
    for step in range(SCHEDULE.total):
        state, _ = Walk().step(loop._keys(key, jnp.asarray(step))[0], step, state, jnp.ones(()))
        path.append(state)
    wanted = jnp.stack(path)[jnp.array([7, 10, 13, 16])]
    np.testing.assert_allclose(walk(key).draws["x"], wanted, rtol=1e-6)


def test_memory_is_what_is_kept_however_long_the_run_is(key):
    longer = loop.Schedule(num_warmup=500, num_samples=4, thinning=100)
    assert walk(key, schedule=longer).draws["x"].shape == (4, 2)


def test_chunks_of_any_length_share_compiled_code_and_an_answer(key):
    whole = walk(key)
    TRACES.clear()
    pieces = Chunks()
    again = walk(key, monitor=pieces)
    assert not TRACES, "the second run should find compiled code"
    np.testing.assert_array_equal(whole.draws["x"], again.draws["x"])
    assert pieces.stops[0][0] == 1
    assert pieces.stops[-1][:2] == (SCHEDULE.total, SCHEDULE.total)
    assert set(pieces.stops[-1][2]) == {"energy"}


def test_a_start_whose_type_gives_way_is_compiled_no_more_often(key):
    def stops(start):
        TRACES.clear()
        loop.run(key, Walk(breaks_at=999), start, jnp.ones(()), SCHEDULE, Chunks())
        return len(TRACES)

    given_way = jnp.full(2, 0.0)
    assert given_way.weak_type
    loop.advance.compiled.clear_cache()  # pyright: ignore[reportFunctionMemberAccess]
    loop._step.compiled.clear_cache()  # pyright: ignore[reportFunctionMemberAccess]
    assert stops(given_way) == 1
    assert stops(jnp.zeros(2)) == 0


def test_a_run_goes_on_from_its_checkpoint_as_if_it_had_not_stopped(key, tmp_path):
    whole = walk(key)
    walk(key, monitor=kept(tmp_path / "run"), until=9)
    resumed = walk(key, monitor=kept(tmp_path / "run"))
    np.testing.assert_array_equal(whole.draws["x"], resumed.draws["x"])


def test_chains_of_other_inputs_are_not_resumed(key, tmp_path):
    walk(key, monitor=kept(tmp_path / "run"), until=9)
    other = jax.random.fold_in(key, 1)
    np.testing.assert_array_equal(
        walk(other, monitor=kept(tmp_path / "run")).draws["x"], walk(other).draws["x"]
    )


def test_a_non_finite_energy_stops_the_run_by_step_and_chain(key):
    with pytest.raises(DivergenceError, match="non-finite energy at step 6, chain 1"):
        walk(key, Walk(breaks_at=6))


def test_the_last_checkpoint_is_from_before_the_break(key, tmp_path):
    keeper = kept(tmp_path / "run")
    with pytest.raises(DivergenceError):
        walk(key, Walk(breaks_at=6), monitor=keeper)
    assert int(keeper.resume(walk(key)).step) <= 6


LONG_WALK = """
import sys, time, pathlib, numpy, jax, jax.numpy as jnp
from bayesdag.runs import loop
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.runs.recording import MonitorGroup
from tests.runs.test_loop import Walk

class Slow:
    def resume(self, template):
        return None
    def chunk(self, step, total, state, stats):
        pathlib.Path(sys.argv[1], "began").touch()
        time.sleep(0.01)

folder = pathlib.Path(sys.argv[1])
keeper = Checkpoint(folder / "partial", {}, every=0.0)
loop.next_length = lambda length, seconds: 2
done = loop.run(jax.random.key(3), Walk(), jnp.zeros(2), jnp.ones(()), loop.Schedule(50, 25, 2),
                MonitorGroup((keeper, Slow())))
numpy.save(folder / "draws.npy", done.draws["x"])
"""


def test_a_killed_process_ends_in_the_same_file(tmp_path, seed):
    """Kill -9 at a random moment of the run, then the same command again."""

    def start(folder):
        folder.mkdir(exist_ok=True)
        return subprocess.Popen([sys.executable, "-c", LONG_WALK, str(folder)])

    undisturbed = start(tmp_path / "whole")
    killed = start(tmp_path / "killed")
    while not (tmp_path / "killed" / "began").exists() and killed.poll() is None:
        time.sleep(0.01)
    time.sleep(np.random.default_rng(seed).uniform(0.0, 0.3))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "draws.npy").exists(), "killed too late to be a test"
    assert start(tmp_path / "killed").wait() == 0
    assert undisturbed.wait() == 0
    hashes = {
        hashlib.sha256((tmp_path / name / "draws.npy").read_bytes()).hexdigest()
        for name in ("whole", "killed")
    }
    assert len(hashes) == 1
