"""Automatic choice of a method: looks at the data, chooses, and states the reason."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from bayesdag.data import Dataset
from bayesdag.data.linearity import Linearity, linearity
from bayesdag.knowledge import Constraints
from bayesdag.methods import _kinds
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.posterior import Posterior
from bayesdag.runs import durations
from bayesdag.runs.checkpoint import recorder_of
from bayesdag.sgmcmc.chains import on_cpu
from bayesdag.types import ExactDependence, Key, Monitor, Recorder


@dataclass(frozen=True)
class Auto:
    """Exact or collapsed, by the number of variables; learned functions for few curved ones.

    The result names the method that was chosen and the check that decided.

    Attributes:
        max_exact: variables up to which every graph is added up.
        max_curved: variables up to which functions are learned where data are curved: networks
            for every set of parents that is looked at take minutes at ten variables and a
            quarter of an hour at twenty.
        max_curved_on_gpu: the same where an accelerator trains them: three minutes at a hundred.
        num_samples: draws per chain of the method that is chosen; None: its own number.
        exact: the method for few variables and linear data.
        collapsed: the method for many variables and linear data.
        curved: the method for few variables and data that do not look linear.
    """

    supported_constraints = Exact.supported_constraints & Collapsed.supported_constraints
    supports_interventions = True
    exact_dependence = ExactDependence.AVERAGED
    PRESETS: ClassVar[dict[str, "Auto"]]

    max_exact: int = 10
    max_curved: int = 20
    max_curved_on_gpu: int = 100
    num_samples: int | None = None
    exact: Exact = Exact()
    collapsed: Collapsed = Collapsed()
    curved: Collapsed = Collapsed.PRESETS["neural"]

    @property
    def takes_kinds(self) -> frozenset[str]:
        """All that a score has a model for: it is chosen by the columns."""
        return _kinds.kinds_of_scores()

    def min_rows(self, d: int) -> int:
        """Rows that either method needs."""
        return max(self.exact.min_rows(d), self.collapsed.min_rows(d))

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """The posterior of the method that suits the data."""
        chosen, notes = self._choose_for(data, recorder_of(monitor))
        if self.num_samples is not None:
            chosen = dataclasses.replace(chosen, num_samples=self.num_samples)
        durations.announce(monitor, chosen, data.num_rows, data.num_variables)
        result = chosen(key, data, knowledge, monitor)
        return dataclasses.replace(
            result, provenance=_kinds.stated(result.provenance, chosen, notes)
        )

    def _choose_for(self, data: Dataset, recorder: Recorder) -> tuple[Exact | Collapsed, list[str]]:
        """A method for these data; where columns are not measured, one with a model for them."""
        suited, notes = _kinds.with_score_for(self.collapsed, data)
        if notes:
            return cast(Collapsed, suited), [f"chosen: collapsed; {notes[0]}"]
        return self.choose(data.num_variables, _recalled_linearity(recorder, data))

    def choose(self, d: int, found: Linearity) -> tuple[Exact | Collapsed, list[str]]:
        """A method for d variables, and why it was chosen, in words."""
        if found.curved:
            return self._choose_curved(d, found)
        few = (
            f"{d} variables are {'few' if d <= self.max_exact else 'too many to add up all graphs'}"
        )
        if d <= self.max_exact:
            return self.exact, [f"chosen: exact, because {few} and {found.describe()}"]
        return self.collapsed, [f"chosen: collapsed, because {few}; {found.describe()}"]

    def _choose_curved(self, d: int, found: Linearity) -> tuple[Collapsed, list[str]]:
        functions = type(self.curved.score).__module__.rpartition(".")[2]
        if d <= (self.max_curved if on_cpu() else self.max_curved_on_gpu):
            why = f"chosen: collapsed with {functions} functions, because {found.describe()}"
            return self.curved, [why]
        return self.collapsed, [
            f"chosen: collapsed with linear functions, although {found.describe()}: to learn "
            f"functions of {d} variables takes long",
            "directions and effects may be wrong where curves matter, and missing edges may be "
            f"curved ones; method 'collapsed' with preset '{functions}' learns the functions",
        ]


def _recalled_linearity(recorder: Recorder, data: Dataset) -> Linearity:
    """The test of the data, recorded: with hundreds of columns it takes minutes."""

    def tested() -> dict[str, np.ndarray]:
        found = linearity(data)
        return {"p_value": found.p_value, "gain": found.gain}

    return Linearity(**recorder.recall("linearity", tested), names=data.names)


_QUICK = Collapsed.PRESETS["quick"]
Auto.PRESETS = {
    "quick": Auto(
        collapsed=_QUICK,
        curved=dataclasses.replace(_QUICK, score=Collapsed.PRESETS["neural"].score, max_rounds=1),
    )
}

build = Auto
