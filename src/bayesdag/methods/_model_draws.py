"""Draws of orders, graphs and functions under one noise model, before they are put together."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.orders.noise_averaging import NoiseModel
from bayesdag.orders.pipeline import Sampled
from bayesdag.orders.search import Found
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Params, PlainData


class Given(NamedTuple):
    """What all noise models are fitted to.

    Attributes:
        data: the rows.
        knowledge: about edges.
        stats: of the rows, for the score.
        power: to which the evidence is raised, where the rows contradict the model or one another.
    """

    data: Dataset
    knowledge: Constraints
    stats: Any
    power: float = 1.0


class ModelDraws(NamedTuple):
    """Draws under one noise model, and what is said of them.

    Attributes:
        model: the noise model.
        drawn: orders and graphs.
        params: of the functions on each graph.
        log_joint: of each draw, under this model.
        weights: of each draw; 1 on average.
        found: results of independent searches, the best one first, for other noise models.
        report: for the provenance.
        notes: in words.
        missing_edges: that the tables leave out, expected.
        power: to which the evidence was raised.
    """

    model: NoiseModel
    drawn: Sampled
    params: Params
    log_joint: Float[np.ndarray, " s"]
    weights: Float[np.ndarray, " s"]
    found: tuple[Found, ...]
    report: PlainData
    notes: list[str]
    missing_edges: float
    power: float

    @property
    def num_thinned(self) -> int:
        """Draws of each chain that are left of every other one."""
        return -(-self.model.num_samples // 2)

    def thinned(self, num_chains: int) -> "ModelDraws":
        """Every other draw of each chain."""

        def every_other(leaf: Any) -> np.ndarray:
            chains = np.asarray(leaf).reshape(num_chains, -1, *np.shape(leaf)[1:])[:, ::2]
            return chains.reshape(-1, *chains.shape[2:])

        kept = self.drawn._replace(graphs=every_other(self.drawn.graphs))
        return self._replace(
            model=self.model._replace(num_samples=self.num_thinned),
            drawn=kept,
            params=map_leaves(every_other, self.params),
            log_joint=every_other(self.log_joint),
            weights=every_other(self.weights),
        )
