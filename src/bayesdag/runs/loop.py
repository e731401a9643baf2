"""Runs a compiled step many times: warm-up, thinning, checkpoints, and a stop at NaN.

One compiled function advances any number of steps, so chunks may be of any length and the
answer does not depend on them. Draws are kept in a buffer of fixed size inside the state:
memory is bounded by what is kept, and a checkpoint is the state.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int, UInt8

from bayesdag.errors import DivergenceError
from bayesdag.runs.packing import fingerprint
from bayesdag.runs.recording import recorder_of
from bayesdag.types import Array, Key, Keys, Monitor, Params, Pytree, Recorder
from bayesdag.types.late_imports import compiled, jax, jnp

_SECONDS_PER_CHUNK = 2.0
# On a GPU: trying out kernels of its own for every product takes XLA half of the time to
# compile, for steps that are a tenth faster.
COMPILER = {"xla_gpu_enable_triton_gemm": False}


@runtime_checkable
class Kernel(Protocol):
    """Kernel of a run: hashable, so that equal kernels share compiled code."""

    def step(
        self, key: Key | Keys, step: Array, state: Pytree, context: Pytree
    ) -> tuple[Pytree, dict]:
        """The next state, and statistics of it with a trailing chain axis.

        `energy` must be among them: a value that is not finite stops the run.
        """
        ...

    def keep(self, key: Key | Keys, state: Pytree, context: Pytree) -> Params:
        """The draw a state stands for."""
        ...


@dataclass(frozen=True)
class Schedule:
    """Length of a run and draws to keep, in NumPyro's words.

    Attributes:
        num_warmup: steps before the first draw counts.
        num_samples: draws kept of each chain.
        thinning: steps between two draws.
    """

    num_warmup: int
    num_samples: int
    thinning: int

    @property
    def total(self) -> int:
        """Steps in all."""
        return self.num_warmup + self.num_samples * self.thinning


class RunState(NamedTuple):
    """Everything needed to go on from here.

    Attributes:
        step: steps done.
        state: of the kernel.
        draws: buffer with leading dimension num_samples.
        stats: of the last step.
        broken: for each chain the first step whose energy was not finite, or -1.
        origin: fingerprint of what decides the run, so that it is resumed by no other.
    """

    step: Int[Array, ""]
    state: Pytree
    draws: Params
    stats: dict[str, Array]
    broken: Int[Array, "*chains"]
    origin: UInt8[Array, " bytes"]


def run(
    key: Key | Keys,
    kernel: Kernel,
    state: Pytree,
    context: Pytree,
    schedule: Schedule,
    monitor: Monitor | Recorder | None = None,
    until: int | None = None,
) -> RunState:
    """The finished run; `draws` hold what was kept, leading dimension num_samples.

    Args:
        key: one for the run, or one for each of several data sets.
        kernel: the step.
        state: where it starts.
        context: arrays that the step reads and never changes (the data).
        schedule: how long.
        monitor: called after every chunk; asked first whether there is a run to resume.
        until: a step to stop at before the end, for a trial with the same compiled code.
    """
    total = schedule.total if until is None else min(until, schedule.total)
    recorder = recorder_of(monitor)
    progress = _begin(key, kernel, state, context, schedule)
    resumed = recorder.resume(progress)
    if resumed is not None and np.array_equal(resumed.origin, progress.origin):
        progress = jax.tree.map(lambda like, x: jnp.asarray(x, like.dtype), progress, resumed)
    length = 1
    while (done := int(progress.step)) < total:
        started = time.monotonic()
        stop = min(done + length, total)
        progress = advance(
            key, kernel, progress, context, schedule.num_warmup, schedule.thinning, stop
        )
        refuse_broken(progress)
        recorder.chunk(stop, total, progress, summary(progress.stats))
        length = next_length(stop - done, time.monotonic() - started)
    return progress


@compiled("kernel", donate_argnames="progress", compiler_options=COMPILER)
def advance(
    key: Key | Keys,
    kernel: Kernel,
    progress: RunState,
    context: Pytree,
    num_warmup: Int[Array, ""] | int,
    thinning: Int[Array, ""] | int,
    until: Int[Array, ""] | int,
) -> RunState:
    """Progress at step `until`; compiled once, whatever the numbers of steps."""

    def body(progress: RunState) -> RunState:
        key_step, key_keep = _keys(key, progress.step)
        state, stats = _step(key_step, kernel, progress.step, progress.state, context)
        # The slot of the current block is overwritten until the block's last step: a write
        # each step costs less than the copies a conditional write would cause.
        slot = jnp.maximum(progress.step - num_warmup, 0) // thinning
        draws = jax.tree.map(
            lambda buffer, x: jax.lax.dynamic_update_index_in_dim(buffer, x, slot, 0),
            progress.draws,
            kernel.keep(key_keep, state, context),
        )
        fresh = ~jnp.isfinite(stats["energy"]) & (progress.broken < 0)
        broken = jnp.where(fresh, progress.step, progress.broken)
        return RunState(progress.step + 1, state, draws, stats, broken, progress.origin)

    return jax.lax.while_loop(lambda p: p.step < until, body, progress)


@compiled("kernel")
def _step(key: Key | Keys, kernel: Kernel, step: Array, state: Pytree, context: Pytree) -> Pytree:
    """One step; compiled on its own so that it is traced once, for its shape and for the loop."""
    return kernel.step(key, step, state, context)


def _begin(
    key: Key | Keys, kernel: Kernel, state: Pytree, context: Pytree, schedule: Schedule
) -> RunState:
    """An empty buffer in the shape of what the kernel keeps."""
    # A copy of its own, since `advance` donates it. With its type said aloud: numbers of a type
    # that gives way would get a firm one leaf by leaf, and each step would be compiled anew.
    state = jax.tree.map(lambda x: jnp.array(x, x.dtype), state)
    step = jnp.zeros((), jnp.int32)
    _, stats = jax.eval_shape(
        lambda *given: _step(given[0], kernel, *given[1:]), key, step, state, context
    )
    draw = jax.eval_shape(kernel.keep, key, state, context)
    draws = jax.tree.map(lambda x: jnp.zeros((schedule.num_samples, *x.shape), x.dtype), draw)
    stats = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), stats)
    broken = jnp.full(stats["energy"].shape, -1, jnp.int32)
    origin = fingerprint(key, state, context, schedule.num_warmup, schedule.thinning)
    origin = jnp.asarray(np.frombuffer(bytes.fromhex(origin), dtype=np.uint8))
    return RunState(step, state, draws, stats, broken, origin)


def _keys(key: Key | Keys, step: Array) -> tuple[Key | Keys, Key | Keys]:
    """Two keys of this step, or of this step for every data set."""

    def split(key: Key) -> Keys:
        return jax.random.split(jax.random.fold_in(key, step))

    if key.ndim == 0:
        return split(key)[0], split(key)[1]
    pairs = jax.vmap(split)(key)
    return pairs[:, 0], pairs[:, 1]


def refuse_broken(progress: RunState) -> None:
    """Raise where an energy is not finite; the last checkpoint is from before that."""
    broken = np.asarray(progress.broken)
    if (broken < 0).all():
        return
    first = broken[broken >= 0].min()
    *where, chain = (int(k) for k in np.argwhere(broken == first)[0])
    among = f" of data set {where[0]}" if where and broken.shape[0] > 1 else ""
    raise DivergenceError(
        f"non-finite energy at step {int(first)}, chain {chain}{among}; "
        "standardise the data, or use a smaller step_size in the sampler"
    )


def summary(stats: dict[str, Array]) -> dict[str, float]:
    """Mean of each statistic over the chains."""
    return {name: float(np.mean(value)) for name, value in stats.items()}


def next_length(length: int, seconds: float) -> int:
    """Steps that take about two seconds; at most four times as many as before."""
    wanted = int(length * _SECONDS_PER_CHUNK / max(seconds, 1e-3))
    return max(1, min(wanted, 4 * length))
