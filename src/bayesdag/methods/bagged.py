"""Would other rows of the same kind have said the same? The posterior, averaged over them.

A model that is not quite right grows sure of whatever comes closest to the data, and other
rows of the same source may have made it as sure of something else. The bagged posterior (Huggins
and Miller, 2023, "Reproducible model selection using bagged posteriors") puts together the
posteriors of bootstrap samples of the rows, so that it is no surer than that allows.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.posterior import Posterior, merge
from bayesdag.posterior.diagnostics import member
from bayesdag.random import generator
from bayesdag.types import Duration, ExactDependence, Key, Method, Monitor, StatusReporter, Timed


@dataclass(frozen=True)
class Bagged:
    """Posteriors of bootstrap samples of the rows, put together: slower, and less sure.

    The chains of a bag follow one another in the result, and are judged by whether they agree
    with each other. Bags are samples of different rows and need not agree.

    Attributes:
        method: whose posteriors are put together.
        num_bags: bootstrap samples.
    """

    supported_constraints: ClassVar[frozenset[str]] = Collapsed.supported_constraints
    supports_interventions: ClassVar[bool] = Collapsed.supports_interventions
    exact_dependence: ClassVar[ExactDependence] = Collapsed.exact_dependence
    PRESETS: ClassVar[dict[str, "Bagged"]]

    method: Method = Collapsed()
    num_bags: int = 10

    def __post_init__(self) -> None:
        if self.num_bags < 2:
            raise InputError(f"num_bags is {self.num_bags}; it must be 2 or more")

    def min_rows(self, d: int) -> int:
        """What the method in the bags needs; a bag has as many rows as the data."""
        return self.method.min_rows(d)

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """So many times that of the method in the bags."""
        if not isinstance(self.method, Timed):
            return Duration(0.0, ())
        one = self.method.expected_duration(num_rows, num_variables)
        return one._replace(
            seconds=one.seconds * self.num_bags, faster=("fewer bags (num_bags)", *one.faster)
        )

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """All draws of all bags; each bag counts the same."""
        found = []
        for number, own in enumerate(jax.random.split(key, self.num_bags), start=1):
            if isinstance(
                monitor, StatusReporter
            ):  # no more: the state of a bag is none of the whole's
                monitor.report(f"bag {number} of {self.num_bags}")
            key_rows, key_fit = jax.random.split(own)
            rows = generator(key_rows).integers(data.num_rows, size=data.num_rows)
            found.append(self.method(key_fit, _resampled(data, rows), knowledge, None))
        together = merge.chained(found)
        words = self._words(found)
        return dataclasses.replace(together, summary=data.summary(), provenance=words)

    def _words(self, found: list[Posterior]) -> dict[str, Any]:
        kept = {name: found[0].provenance[name] for name in ("model", "prior", "temperature")}
        note = (
            f"the average of {self.num_bags} posteriors, each of a bootstrap sample of the rows; "
            "chains are compared within each bag"
        )
        members = [
            member(f"bag {number}", posterior.num_chains, posterior.provenance)
            for number, posterior in enumerate(found, start=1)
        ]
        return {**kept, "members": members, "notes": [note]}


def _resampled(data: Dataset, rows: np.ndarray) -> Dataset:
    """These rows of the data, in the units of all."""
    set_cells = data.interventions
    return dataclasses.replace(
        data,
        values=data.values[rows],
        interventions=None if set_cells is None else set_cells[rows],
    )


Bagged.PRESETS = {
    "quick": Bagged(Collapsed.PRESETS["quick"], num_bags=2),
    "neural": Bagged(Collapsed.PRESETS["neural"], num_bags=5),
}

build = Bagged
