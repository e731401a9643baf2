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
from bayesdag.random import generator
from bayesdag.runs.checkpoint import recorder_of
from bayesdag.types import Key, Method, Monitor


@dataclass(frozen=True)
class Bagged:
    """Posteriors of bootstrap samples of the rows, put together: slower, and less sure.

    The chains of a bag follow one another in the result. They belong to different samples,
    so they are not expected to agree and are not judged by whether they do.

    Attributes:
        method: whose posteriors are put together.
        num_bags: bootstrap samples.
    """

    supported_constraints: ClassVar[frozenset[str]] = Collapsed.supported_constraints
    supports_interventions: ClassVar[bool] = Collapsed.supports_interventions
    PRESETS: ClassVar[dict[str, "Bagged"]]

    method: Method = Collapsed()
    num_bags: int = 10

    def __post_init__(self) -> None:
        if self.num_bags < 2:
            raise InputError(f"num_bags is {self.num_bags}; it must be 2 or more")

    def min_rows(self, d: int) -> int:
        """What the method in the bags needs; a bag has as many rows as the data."""
        return self.method.min_rows(d)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """All draws of all bags; each bag counts the same."""
        found, recorder = [], recorder_of(monitor)
        for number, own in enumerate(jax.random.split(key, self.num_bags), start=1):
            recorder.report(f"bag {number} of {self.num_bags}")
            scope = recorder.child(f"bag {number}")
            key_rows, key_fit = jax.random.split(own)
            rows = generator(key_rows).integers(data.num_rows, size=data.num_rows)
            found.append(self.method(key_fit, _resampled(data, rows), knowledge, scope))
        together = merge.chained(found)
        words = self._words(found[0].provenance)
        return dataclasses.replace(together, summary=data.summary(), provenance=words)

    def _words(self, told: dict[str, Any]) -> dict[str, Any]:
        kept = {name: told[name] for name in ("model", "prior", "temperature")}
        note = (
            f"the average of {self.num_bags} posteriors, each of a bootstrap sample of the rows; "
            "whether the chains in a bag have mixed is not judged"
        )
        return {**kept, "independent": True, "notes": [note]}


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
