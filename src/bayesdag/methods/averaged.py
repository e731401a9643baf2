"""The average over methods: certain only where all of them are.

Every model grows certain of what comes closest to the data under its own assumptions, and
where none is right, weighting the models by their evidence leaves one of them. With equal
weights the average is certain only of what all of them are certain of.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods import _mixture
from bayesdag.methods._mixture import Member
from bayesdag.methods.collapsed import Collapsed
from bayesdag.posterior import Posterior
from bayesdag.random import split
from bayesdag.scores.neural import NeuralScore
from bayesdag.types import Duration, ExactDependence, Key, Method, Monitor, Timed, kinds_taken


@dataclass(frozen=True)
class Averaged:
    """Posteriors of several methods, averaged: certain only where all of them are.

    They must describe functions and noise alike, as `collapsed` does with different settings
    of one score. The chains of one method follow those of another in the result, and are judged
    by whether they agree with each other; different methods need not agree.

    Attributes:
        methods: whose posteriors are averaged, with equal weights. By default neural
            mechanisms, trained twice: on other parts of the rows, from other starts.
    """

    PRESETS: ClassVar[dict[str, "Averaged"]]

    methods: tuple[Method, ...] = (
        Collapsed.PRESETS["neural"],
        dataclasses.replace(Collapsed.PRESETS["neural"], score=NeuralScore(seed=1)),
    )

    def __post_init__(self) -> None:
        if len(self.methods) < 2:
            raise InputError(f"an average takes two methods or more, not {len(self.methods)}")

    @property
    def supported_constraints(self) -> frozenset[str]:
        """Those that all methods support."""
        return _mixture.common_constraints(self.methods)

    @property
    def supports_interventions(self) -> bool:
        """Whether all methods do."""
        return all(method.supports_interventions for method in self.methods)

    @property
    def takes_kinds(self) -> frozenset[str]:
        """Those that all methods take."""
        return frozenset.intersection(*map(kinds_taken, self.methods))

    @property
    def exact_dependence(self) -> ExactDependence:
        """Averaged over where all methods do that; refused where one does not."""
        able = all(method.exact_dependence == ExactDependence.AVERAGED for method in self.methods)
        return ExactDependence.AVERAGED if able else ExactDependence.REFUSED

    def min_rows(self, d: int) -> int:
        """Rows that the most demanding method needs."""
        return max(method.min_rows(d) for method in self.methods)

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Those of all methods, one after the other."""
        timed = [method for method in self.methods if isinstance(method, Timed)]
        found = [method.expected_duration(num_rows, num_variables) for method in timed]
        longest = max(found, default=Duration(0.0, ()))
        return longest._replace(seconds=sum(one.seconds for one in found))

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """All draws of all methods; each method has the same weight."""
        num = len(self.methods)
        members = [
            Member(f"model {number} of {num}", own, method, data)
            for number, (own, method) in enumerate(
                zip(split(key, num), self.methods, strict=True), start=1
            )
        ]
        note = (
            f"the average of {num} posteriors, each of another method with the same data; "
            "chains are compared within each method"
        )
        return _mixture.fit(members, knowledge, monitor, note)


_QUICK = Collapsed.PRESETS["quick"]
Averaged.PRESETS = {
    "quick": Averaged((_QUICK, dataclasses.replace(_QUICK, hottest=2 * _QUICK.hottest))),
}

build = Averaged
