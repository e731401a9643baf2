"""BDeu: the exact evidence of tables of probabilities, for columns that all have levels.

Each configuration of the parents has probabilities of its own, integrated out under a Dirichlet
prior; Markov equivalent graphs get the same score.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Shaped

from bayesdag.data import Dataset
from bayesdag.data.kinds import DISCRETE
from bayesdag.errors import InputError
from bayesdag.model.scm import SCM
from bayesdag.scores._mixed import contingency, parameter_draws
from bayesdag.scores._mixed.families import FamilyModels
from bayesdag.scores._mixed.features import columns_of
from bayesdag.types import Key, Params, ParentSets


@dataclass(frozen=True)
class BDeu:
    """Dirichlet-multinomial evidence of binary, ordinal and categorical columns.

    Rows where a node was set by an experimenter do not count for that node.

    Attributes:
        ess: equivalent sample size: rows that the prior is worth, spread evenly over the cells
            of every family's table.
    """

    takes_kinds: ClassVar[frozenset[str]] = DISCRETE

    ess: float = 1.0

    def __post_init__(self) -> None:
        if not self.ess > 0:
            raise InputError(f"ess is {self.ess:g}; a prior is worth more than 0 rows")

    def describe(self) -> str:
        """The score and its prior, in words."""
        return f"BDeu, equivalent sample size {self.ess:g}"

    def prepare(self, data: Dataset) -> FamilyModels:
        """Different rows of codes and how often each occurs."""
        wrong = [
            f"{name} ({kind.name})"
            for name, kind in zip(data.names, data.kinds, strict=True)
            if not kind.is_discrete
        ]
        if wrong:
            raise InputError(
                f"score 'bdeu' takes columns with levels only, and {', '.join(wrong)} has none; "
                "use score 'mixed'"
            )
        columns = columns_of(data)
        rows = contingency.level_rows(columns.codes, columns.observed, columns.num_levels)
        return FamilyModels(
            columns, rows, self.ess, largest_table=np.inf, additive_tables=False, networks=False
        )

    def log_evidence(
        self, stats: FamilyModels, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log P(codes of the node | codes of its parents), for m parent sets."""
        return contingency.log_evidence(stats.rows, node, parents, self.ess)

    def scm(self, data: Dataset) -> SCM:
        """Tables of probabilities."""
        return parameter_draws.scm_of(data)

    def draw(self, key: Key, stats: FamilyModels, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """Probabilities of every table from their Dirichlet posteriors."""
        return parameter_draws.draw(key, stats, graphs)


build = BDeu
