"""Monitors of benchmarked runs: they take the time, or set the start."""

import time
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int8

from bayesdag.runs import loop
from bayesdag.sgmcmc import dagspace
from bayesdag.types import Pytree

_APART = 0.05  # between neighbouring potentials at the start


class RunClock:
    """Time to the first step, least time per step, and Sinkhorn iterations."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._chunks: list[tuple[int, float, float]] = []
        self._iterations: list[np.ndarray] = []

    def chunk(self, step: int, progress: loop.RunState) -> None:
        """Note the time after a chunk of steps."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self._chunks.append((step, wall, cpu))
        if "iterations" in progress.stats:
            self._iterations.append(np.ravel(progress.stats["iterations"]))

    def measures(self) -> dict[str, float]:
        """Nothing where the method reported no steps.

        The least time per step over the chunks: other work on the machine then matters least.
        """
        if not self._chunks:
            return {}
        steps, wall, cpu = (np.diff(column) for column in zip(*self._chunks, strict=True))
        found = {"steps": float(self._chunks[-1][0]), "compile_seconds": self._chunks[0][1]}
        if len(steps):
            found |= {"step_seconds": float((wall / steps).min())}
            found |= {"step_cpu": float((cpu / steps).min())}
        if self._iterations:
            found["sinkhorn_iterations"] = float(np.median(np.concatenate(self._iterations)))
        return found


class StartAt:
    """Moves the chains to these graphs before their first step."""

    def __init__(self, graphs: list[Int8[np.ndarray, "d d"]]) -> None:
        pairs = [dagspace.coordinates(graph) for graph in graphs]
        self._masks = np.stack([mask for mask, _ in pairs]).astype(np.float32)
        ranks = np.stack([potentials for _, potentials in pairs])
        self._potentials = _APART * (ranks - ranks.mean(axis=1, keepdims=True))

    def __call__(self, progress: loop.RunState) -> loop.RunState:
        """The beginning, elsewhere."""
        state: Pytree = progress.state
        position = np.broadcast_to(self._potentials[:, None], state.potentials.position.shape)
        state = state._replace(potentials=state.potentials._replace(position=position))
        if hasattr(state, "masks"):
            state = state._replace(masks=np.broadcast_to(self._masks[:, None], state.masks.shape))
        return progress._replace(state=state)


@dataclass(frozen=True)
class Watch:
    """A monitor that takes the time and may set the start."""

    clock: RunClock
    start: StartAt | None = None

    def resume(self, template: Pytree) -> Pytree | None:
        """The start, where one is set."""
        return None if self.start is None else self.start(template)

    def chunk(self, step: int, total: int, state: Pytree, stats: dict[str, float]) -> None:
        """Hand the time on."""
        del total, stats
        self.clock.chunk(step, state)
