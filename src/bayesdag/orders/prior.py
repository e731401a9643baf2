"""The structure prior as the order chains see it: one penalty table per component."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag.types import Array

# Components this many nats below the best one are left out of the tables.
NEGLIGIBLE = 15.0


class Components(NamedTuple):
    """A mixture of in-degree penalties.

    Attributes:
        log_weight: of each component, less its normaliser.
        penalty: log prior of a node with k parents, one row per component.
    """

    log_weight: Float[np.ndarray, " c"]
    penalty: Float[np.ndarray, "c d"]

    def of_each(self, graphs: Shaped[Array, "s d d"]) -> Float[np.ndarray, "s c"]:
        """Log prior of every graph under every component."""
        num_parents = (np.asarray(graphs) != 0).sum(axis=1)
        return self.log_weight + self.penalty[:, num_parents].sum(axis=2).T

    def log_prob(self, graphs: Shaped[Array, "s d d"]) -> Float[np.ndarray, " s"]:
        """Log prior of every graph, the component summed out."""
        return np.logaddexp.reduce(self.of_each(graphs), axis=1)

    def near(self, graph: Shaped[Array, "d d"]) -> "Components":
        """The components that graphs like this one leave possible."""
        value = self.of_each(np.asarray(graph)[None])[0]
        kept = value > value.max() - NEGLIGIBLE
        return Components(self.log_weight[kept], self.penalty[kept])

    def best(self, graph: Shaped[Array, "d d"]) -> int:
        """The component under which the graph is most probable."""
        return int(np.argmax(self.of_each(np.asarray(graph)[None])[0]))

    def most_common(self, component: Int[np.ndarray, " s"]) -> Float[np.ndarray, " d"]:
        """Penalty of the component that was drawn most often."""
        return self.penalty[np.bincount(component, minlength=len(self.penalty)).argmax()]
