"""The loop on the host: what is kept, that interruptions change nothing, and the stop at NaN."""

from typing import NamedTuple

import numpy as np
import pytest

from bayesdag.errors import DivergenceError
from bayesdag.runs import host_loop
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.runs.loop import Schedule
from bayesdag.runs.memory_journal import MemoryJournal
from bayesdag.runs.recording import MonitorGroup

SCHEDULE = Schedule(num_warmup=5, num_samples=4, thinning=3)


class HostWalk(NamedTuple):
    """Two random walks; the energy of the second is not finite once a number is passed."""

    size: float = 1.0
    breaks_above: float = np.inf

    @property
    def inputs(self):
        return np.array(self.size)

    def step(self, rng, state):
        state = state + self.size * np.array([rng.normal(), 1.0])
        return state, {"energy": self.energy(state)}

    def keep(self, state):
        return {"x": state}

    def energy(self, state):
        return np.where((np.arange(2) == 1) & (state > self.breaks_above), np.nan, state)


def walk(key, kernel=None, schedule=SCHEDULE, **more):
    return host_loop.run(key, kernel or HostWalk(), np.zeros(2), schedule, **more)


def test_every_third_state_after_the_warm_up_is_kept(key):
    drawn = walk(key).draws["x"]
    assert drawn[:, 1].tolist() == [8, 11, 14, 17]
    single = walk(key, schedule=Schedule(0, 17, 1)).draws["x"]
    np.testing.assert_array_equal(drawn, single[[7, 10, 13, 16]])


def test_a_run_that_stops_on_the_way_goes_on_to_the_same_draws(key, tmp_path):
    whole = walk(key)
    for stop in (3, 9, 16):
        path = tmp_path / f"{stop}.partial"
        walk(key, monitor=MonitorGroup((Checkpoint(path, {}, every=0.0),)), until=stop)
        resumed = walk(key, monitor=MonitorGroup((Checkpoint(path, {}, every=0.0),)))
        np.testing.assert_array_equal(resumed.draws["x"], whole.draws["x"])


def test_a_longer_run_begins_with_the_draws_of_the_shorter_one(key):
    journal = MemoryJournal()
    walk(key, monitor=MonitorGroup((journal,)))
    again = MemoryJournal(journal.kept())
    longer = walk(key, schedule=Schedule(5, 7, 3), monitor=MonitorGroup((again,)))
    np.testing.assert_array_equal(
        longer.draws["x"], walk(key, schedule=Schedule(5, 7, 3)).draws["x"]
    )


def test_what_another_kernel_left_is_not_resumed(key, tmp_path):
    path = tmp_path / "walk.partial"
    walk(key, HostWalk(2.0), monitor=MonitorGroup((Checkpoint(path, {}, every=0.0),)), until=9)
    found = walk(key, monitor=MonitorGroup((Checkpoint(path, {}, every=0.0),)))
    np.testing.assert_array_equal(found.draws["x"], walk(key).draws["x"])


def test_an_energy_that_is_not_finite_stops_the_run_with_step_and_chain(key):
    with pytest.raises(DivergenceError, match="step 6, chain 1"):
        walk(key, HostWalk(breaks_above=6.5))
