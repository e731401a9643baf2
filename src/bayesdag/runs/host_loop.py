"""Runs a step of numpy many times: warm-up, thinning, and checkpoints.

The counterpart of `loop` for steps that take less time than their compilation would. The random
numbers of a step depend on the key and on the number of the step alone, so that a run can be
resumed anywhere and ends in the same bytes.
"""

import time
from typing import Protocol, runtime_checkable

import numpy as np

from bayesdag.random import generator_of_step
from bayesdag.runs.loop import RunState, Schedule, next_length, refuse_broken, summary
from bayesdag.runs.packing import fingerprint
from bayesdag.runs.recording import recorder_of
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Key, Monitor, Pytree, Recorder


@runtime_checkable
class HostKernel(Protocol):
    """Kernel of a run on the host; states, draws and statistics are trees of numpy arrays."""

    @property
    def inputs(self) -> Pytree:
        """Arrays that decide its steps, beside the state and the random numbers."""
        ...

    def step(self, rng: np.random.Generator, state: Pytree) -> tuple[Pytree, dict]:
        """The next state, and statistics of it with a trailing chain axis.

        The old state may be used up. `energy` must be among the statistics: a value that is not
        finite stops the run.
        """
        ...

    def keep(self, state: Pytree) -> Pytree:
        """The draw a state stands for."""
        ...

    def energy(self, state: Pytree) -> np.ndarray:
        """Of each chain."""
        ...


def run(
    key: Key,
    kernel: HostKernel,
    state: Pytree,
    schedule: Schedule,
    monitor: Monitor | Recorder | None = None,
    until: int | None = None,
) -> RunState:
    """The finished run; `draws` hold what was kept, leading dimension num_samples.

    Args:
        key: of the run.
        kernel: the step.
        state: where it starts; it is used up.
        schedule: how long.
        monitor: called after every chunk; asked first whether there is a run to resume.
        until: a step to stop at before the end.
    """
    total = schedule.total if until is None else min(until, schedule.total)
    recorder = recorder_of(monitor)
    progress = _begin(key, kernel, state, schedule)
    resumed = recorder.resume(progress)
    if resumed is not None and np.array_equal(resumed.origin, progress.origin):
        progress = map_leaves(lambda like, x: np.array(x, like.dtype), progress, resumed)
    length = 1
    while (done := int(progress.step)) < total:
        started = time.monotonic()
        stop = min(done + length, total)
        for step in range(done, stop):
            progress = _advance(key, kernel, progress, schedule, step)
        refuse_broken(progress)
        recorder.chunk(stop, total, progress, summary(progress.stats))
        length = next_length(stop - done, time.monotonic() - started)
    return progress


def _advance(
    key: Key, kernel: HostKernel, progress: RunState, schedule: Schedule, step: int
) -> RunState:
    """Progress after one more step; the draw of a block is that of its last step."""
    state, stats = kernel.step(generator_of_step(key, step), progress.state)
    slot, rest = divmod(step - schedule.num_warmup, schedule.thinning)
    if slot >= 0 and rest == schedule.thinning - 1:

        def write(buffer: np.ndarray, x: np.ndarray) -> None:
            buffer[slot] = x

        map_leaves(write, progress.draws, kernel.keep(state))
    fresh = ~np.isfinite(stats["energy"]) & (progress.broken < 0)
    broken = np.where(fresh, step, progress.broken)
    return RunState(np.array(step + 1), state, progress.draws, stats, broken, progress.origin)


def _begin(key: Key, kernel: HostKernel, state: Pytree, schedule: Schedule) -> RunState:
    """An empty buffer in the shape of what the kernel keeps."""

    def room(x: np.ndarray) -> np.ndarray:
        return np.zeros((schedule.num_samples, *x.shape), x.dtype)

    draws = map_leaves(room, kernel.keep(state))
    energy = kernel.energy(state)
    origin = fingerprint(key, state, kernel.inputs, schedule.num_warmup, schedule.thinning)
    origin = np.frombuffer(bytes.fromhex(origin), dtype=np.uint8)
    return RunState(
        np.array(0), state, draws, {"energy": energy}, np.full(energy.shape, -1), origin
    )
