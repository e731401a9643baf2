"""Evidence of one node given parents of any kinds, with the function in one direction.

Tables of probabilities where all columns have levels, regressions elsewhere, and networks where
these leave something unexplained; the evidence is the mean over all of them.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.scores._mixed import contingency
from bayesdag.scores._mixed.components import TABLE, Component, log_prior
from bayesdag.scores._mixed.contingency import LevelRows
from bayesdag.scores._mixed.features import MixedClass, MixedColumns
from bayesdag.scores._mixed.gaussian import Regression
from bayesdag.scores._mixed.networks import NetworkFits
from bayesdag.scores._mixed.newton import Mode
from bayesdag.scores._mixed.regressions import MixedRegressions

LARGEST_TABLE = 4096  # configurations of parents up to which a node of levels has a table


@dataclass(frozen=True, eq=False)
class FamilyModels:
    """Components of every family of one data set, and their evidence.

    Attributes:
        columns: features of the data.
        rows: different rows of levels.
        ess: rows that the prior of a table is worth.
        largest_table: configurations of parents up to which a node of levels has a table.
        additive_tables: whether effects of several parents with levels may also add up, in
            logits: a table of many cells has more parameters than rows can tell.
        networks: whether networks are trained where simpler functions leave something.
    """

    columns: MixedColumns
    rows: LevelRows
    ess: float
    largest_table: float = LARGEST_TABLE
    additive_tables: bool = True
    networks: bool = True
    _known: dict[tuple[int, bytes, int], np.ndarray] = field(default_factory=dict, repr=False)

    @cached_property
    def regressions(self) -> MixedRegressions:
        """Lines, curves, quadratic functions and functions by level."""
        return MixedRegressions(self.columns, self.additive_tables)

    @cached_property
    def network_fits(self) -> NetworkFits:
        """Networks, each trained when it is needed first."""
        return NetworkFits(self.regressions)

    def log_evidence(
        self, node: int, parents: Bool[np.ndarray, "m d"], among: int | None = None
    ) -> Float[np.ndarray, " m"]:
        """Log mean over the components of each family.

        Args:
            among: the column whose observed rows count; by default those of the node.
        """
        _, values = self.components(node, parents, among)
        return np.logaddexp.reduce(values, axis=1)

    def has_table(self, node: int, parents: Bool[np.ndarray, "m d"]) -> Bool[np.ndarray, " m"]:
        """Families of levels only, unless their table would be too large."""
        columns = self.columns
        if not columns.is_level[node]:
            return np.zeros(len(parents), dtype=bool)
        size = np.where(parents, np.maximum(columns.num_levels, 1.0), 1.0).prod(axis=1)
        return ~(parents & columns.is_number).any(axis=1) & (size <= self.largest_table)

    def components(
        self, node: int, parents: Bool[np.ndarray, "m d"], among: int | None = None
    ) -> tuple[list[Component], Float[np.ndarray, "m c"]]:
        """Models of the families, and the log evidence of each with its prior weight.

        Classes are equally probable, and so are the hyperparameters of each. -inf where a family
        does not have a component, because a simpler one is the same.
        """
        among = node if among is None else among
        keys = [(node, chosen.tobytes(), among) for chosen in parents]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            for k, values in zip(new, self._compute(node, parents[new], among), strict=True):
                self._known[keys[k]] = values
        labels = self.regressions.labels(node)
        found = np.array([self._known[key] for key in keys]).reshape(len(keys), len(labels))
        return labels, found

    def _compute(
        self, node: int, parents: Bool[np.ndarray, "m d"], among: int
    ) -> Float[np.ndarray, "m c"]:
        """Log evidence of every component with its prior weight."""
        labels = self.regressions.labels(node)
        values = np.full((len(parents), len(labels)), -np.inf)
        number = {label: c for c, label in enumerate(labels)}
        tabular = self.has_table(node, parents)
        if tabular.any():
            found = contingency.log_evidence(self.rows, node, parents[tabular], self.ess, among)
            values[tabular, number[TABLE]] = found
        seen = self.columns.observed[:, among]
        for label, rows, found in self.regressions.fitted(node, parents, tabular, seen):
            values[rows, number[label]] = found
        if self.networks:
            best = [labels[c] for c in np.argmax(values, axis=1)]
            for label, row, found in self.network_fits.fitted(node, parents, best, seen):
                values[row, number[label]] = found
        return values + log_prior(labels, values)

    def modes(
        self, node: int, parents: Bool[np.ndarray, " d"], component: Component
    ) -> Mode | Regression:
        """The posterior of the parameters of one family under one component.

        Of a Gaussian family by level: one regression for each configuration.
        """
        if component.kind == MixedClass.NETWORK:
            return self.network_fits.modes(node, parents, component)
        return self.regressions.modes(node, parents, component)
