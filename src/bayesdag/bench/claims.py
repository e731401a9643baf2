"""Claims of cost in the published comparison, measured: Sinkhorn's sweeps, DiBS' particles."""

import jax
import numpy as np
from jaxtyping import Float

from bayesdag.baselines.dibs import SteinKernel
from bayesdag.baselines.likelihood import gradient_context
from bayesdag.bench.runners import timed
from bayesdag.data import Dataset
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.methods.dibs import DiBS
from bayesdag.runs import loop
from bayesdag.types import PlainData

TOLERANCE = 1e-3  # of row sums, as in the paper
MOST = 20_000  # sweeps


def sinkhorn_sweeps(
    seed: int, d: int, temperature: float, full_rank: bool, deviation: float
) -> PlainData:
    """Sweeps from a cold start until every row and column sums to one.

    Scores are p oᵀ with o = 1 … d and p of this deviation, or a full matrix of the same
    deviation as those, with Gumbel noise as BCD Nets and DDS add it.
    """
    rng = np.random.default_rng(seed)
    scores = np.outer(deviation * rng.normal(size=d), np.arange(1, d + 1))
    if full_rank:
        scores = scores.std() * rng.normal(size=(d, d)) + rng.gumbel(size=(d, d))
    return {"sweeps": float(count_sweeps(scores / temperature)), "size": float(np.std(scores))}


def count_sweeps(scores: Float[np.ndarray, "d d"]) -> int:
    """Sweeps of rows and columns until all sums are one within the tolerance, or the most."""
    columns = np.zeros(len(scores))
    for sweep in range(1, MOST + 1):
        rows = np.logaddexp.reduce(scores - columns, axis=1)
        columns = np.logaddexp.reduce(scores - rows[:, None], axis=0)
        sums = np.exp(scores - rows[:, None] - columns).sum(axis=1)
        if np.abs(sums - 1).max() < TOLERANCE:
            return sweep
    return MOST


def particle_seconds(seed: int, d: int, num_particles: int, num_steps: int) -> PlainData:
    """CPU and wall seconds per step of linear DiBS with so many particles, once compiled.

    `kernel_cpu` is that of Stein's directions alone, the part in which every particle sees every
    other; all else is done particle by particle.
    """
    method = DiBS(num_particles=num_particles, num_graphs=16, num_acyclicity_graphs=4)
    kernel = method._kernel(method._embedding(method.prior))
    state = kernel.start(jax.random.key(seed), d)
    stein, given = jax.jit(kernel._stein), (state.latent, state.params)

    def directions() -> None:
        for _ in range(num_steps):
            jax.block_until_ready(stein(*given, *given))

    directions()  # compiles
    alone = timed(directions)["cpu"] / num_steps
    return {**_step_seconds(kernel, _rows(seed, d, "signed_linear", 200), seed, num_steps),
            "kernel_cpu": alone}  # fmt: skip


def preset_seconds(seed: int, preset: str, d: int, num_rows: int, num_steps: int) -> PlainData:
    """CPU and wall seconds per step of a preset of DiBS, and CPU hours of all its steps."""
    method = DiBS.PRESETS[preset]
    kernel = method._kernel(method._embedding(method.prior))
    found = _step_seconds(kernel, _rows(seed, d, "mlp", num_rows), seed, num_steps)
    return {**found, "cpu_hours": found["step_cpu"] * method.num_steps / 3600}


def _rows(seed: int, d: int, mechanism: str, num_rows: int) -> Dataset:
    source = Synthetic(
        num_variables=d, edges_per_node=1, mechanism=mechanism, num_train=num_rows, num_test=0
    )
    return source(seed).train


def _step_seconds(kernel: SteinKernel, data: Dataset, seed: int, num_steps: int) -> PlainData:
    """CPU and wall seconds per step, once compiled."""
    context = gradient_context(data, Constraints.free(data.names), kernel.mechanism)
    key, state = jax.random.key(seed), kernel.start(jax.random.key(seed), data.num_variables)
    schedule = loop.Schedule(2 * num_steps, 1, 1)

    def steps(num: int) -> None:
        loop.run(key, kernel, state, context, schedule, until=num)

    steps(1)  # compiles
    spent = timed(lambda: steps(num_steps))
    return {"step_cpu": spent["cpu"] / num_steps, "step_seconds": spent["seconds"] / num_steps}
