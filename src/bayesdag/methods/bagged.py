"""The bagged posterior: the average over bootstrap samples of the rows.

A misspecified model grows certain of whatever comes closest to the data, and other rows from
the same source may have made it as certain of something else. The bagged posterior (Huggins
and Miller, 2023, "Reproducible model selection using bagged posteriors") mixes the posteriors
of bootstrap samples of the rows, so that it is no more certain than that allows.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods import _mixture
from bayesdag.methods._mixture import Member
from bayesdag.methods.collapsed import Collapsed
from bayesdag.posterior import Posterior
from bayesdag.random import generator, split
from bayesdag.types import Duration, Key, Method, Monitor, Timed


@dataclass(frozen=True)
class Bagged(_mixture.OfOneMethod):
    """Posteriors of bootstrap samples of the rows, averaged: slower, and less certain.

    The chains of one bag follow those of another in the result, and are judged by whether they
    agree with each other. Bags are samples of different rows and need not agree.

    Attributes:
        method: fitted to each bag.
        num_bags: bootstrap samples.
    """

    PRESETS: ClassVar[dict[str, "Bagged"]]

    method: Method = Collapsed()
    num_bags: int = 10

    def __post_init__(self) -> None:
        if self.num_bags < 2:
            raise InputError(f"num_bags is {self.num_bags}; it must be 2 or more")

    @property
    def takes_kinds(self) -> frozenset[str]:  # read from here by `bayesdag methods`
        """Those of the method inside; by default all."""
        return super().takes_kinds

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
        """All draws of all bags; each bag has the same weight."""
        note = (
            f"the average of {self.num_bags} posteriors, each of a bootstrap sample of the rows; "
            "chains are compared within each bag"
        )
        together = _mixture.fit(list(self._bags(key, data)), knowledge, monitor, note)
        return dataclasses.replace(together, summary=data.summary())

    def _bags(self, key: Key, data: Dataset) -> Iterator[Member]:
        for number, own in enumerate(split(key, self.num_bags), start=1):
            key_rows, key_fit = split(own)
            rows = generator(key_rows).integers(data.num_rows, size=data.num_rows)
            name = f"bag {number} of {self.num_bags}"
            yield Member(name, key_fit, self.method, data.with_rows(rows))


Bagged.PRESETS = {
    "quick": Bagged(Collapsed.PRESETS["quick"], num_bags=2),
    "neural": Bagged(Collapsed.PRESETS["neural"], num_bags=5),
}

build = Bagged
