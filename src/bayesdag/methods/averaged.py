"""Would another model, or another training, have said the same? The average over methods.

Every model grows sure of what comes closest to the data under its own assumptions, and where
none is right, weighing them by their evidence leaves one of them. Counted alike, they are sure
only of what all of them are sure of.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.posterior import Posterior, merge
from bayesdag.runs.checkpoint import recorder_of
from bayesdag.scores.neural import NeuralScore
from bayesdag.types import Key, Method, Monitor


@dataclass(frozen=True)
class Averaged:
    """Posteriors of several methods, put together: sure where all of them are.

    They must describe functions and noise alike, as `collapsed` does with different settings
    of one score. The chains of a method follow one another in the result; different methods
    are not expected to agree, so that chains are not judged by whether they do.

    Attributes:
        methods: whose posteriors are put together; each counts the same. By default learned
            functions, trained twice: on other parts of the rows, from other starts.
    """

    supported_constraints: ClassVar[frozenset[str]] = Collapsed.supported_constraints
    supports_interventions: ClassVar[bool] = Collapsed.supports_interventions
    PRESETS: ClassVar[dict[str, "Averaged"]]

    methods: tuple[Method, ...] = (
        Collapsed.PRESETS["neural"],
        dataclasses.replace(Collapsed.PRESETS["neural"], score=NeuralScore(seed=1)),
    )

    def __post_init__(self) -> None:
        if len(self.methods) < 2:
            raise InputError(f"an average takes two methods or more, not {len(self.methods)}")

    def min_rows(self, d: int) -> int:
        """What the most demanding of them needs."""
        return max(method.min_rows(d) for method in self.methods)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """All draws of all methods; each method counts the same."""
        found, recorder = [], recorder_of(monitor)
        keys = jax.random.split(key, len(self.methods))
        for number, (own, method) in enumerate(zip(keys, self.methods, strict=True), start=1):
            recorder.report(f"model {number} of {len(self.methods)}")
            scope = recorder.child(f"model {number}")
            found.append(method(own, data, knowledge, scope))
        self._refuse_different(found)
        return dataclasses.replace(merge.chained(found), provenance=self._words(found))

    @staticmethod
    def _refuse_different(found: list[Posterior]) -> None:
        for other in found[1:]:
            if other.model != found[0].model or other.graphs.shape != found[0].graphs.shape:
                raise InputError(
                    "the methods describe functions and noise differently, or have different "
                    "numbers of chains and draws; average methods that differ in their score's "
                    "settings only"
                )

    def _words(self, found: list[Posterior]) -> dict[str, Any]:
        told = [posterior.provenance for posterior in found]
        models = "; ".join(dict.fromkeys(str(one["model"]) for one in told))
        note = (
            f"the average of {len(found)} posteriors, each of another method with the same data; "
            "whether the chains of one method have mixed is not judged"
        )
        kept = {name: told[0][name] for name in ("prior", "temperature")}
        return {"model": models, **kept, "independent": True, "notes": [note]}


_QUICK = Collapsed.PRESETS["quick"]
Averaged.PRESETS = {
    "quick": Averaged((_QUICK, dataclasses.replace(_QUICK, hottest=2 * _QUICK.hottest))),
}

build = Averaged
