"""Claims of cost in the published comparison, measured: Sinkhorn's sweeps, DiBS' particles."""

import time

import jax
import numpy as np
from jaxtyping import Float

from bayesdag.baselines.likelihood import gradient_context
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
    """Seconds per step of DiBS with so many particles, once compiled."""
    source = Synthetic(
        num_variables=d, edges_per_node=1, mechanism="signed_linear", num_train=200, num_test=0
    )(seed)
    method = DiBS(num_particles=num_particles, num_graphs=16, num_acyclicity_graphs=4)
    kernel = method._kernel(method._embedding(method.prior))
    free = Constraints.free(source.train.names)
    context = gradient_context(source.train, free, kernel.mechanism)
    state = kernel.start(jax.random.key(seed), d)
    schedule = loop.Schedule(2 * num_steps, 1, 1)
    key = jax.random.key(seed)
    loop.run(key, kernel, state, context, schedule, until=1)  # compiles
    started = time.perf_counter()
    loop.run(key, kernel, state, context, schedule, until=num_steps)
    return {"step_seconds": (time.perf_counter() - started) / num_steps}
