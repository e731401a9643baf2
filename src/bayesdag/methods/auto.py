"""Automatic choice of a method: looks at the data, chooses, and states the reason."""

import dataclasses
from dataclasses import dataclass
from math import ceil, inf
from typing import ClassVar, cast

import numpy as np

from bayesdag.data import Dataset
from bayesdag.data.linearity import Linearity, linearity
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods import _kinds, _kinds_in_time
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.posterior import Posterior
from bayesdag.runs import durations
from bayesdag.runs.devices import on_cpu
from bayesdag.runs.recording import recorder_of
from bayesdag.types import ExactDependence, Key, Monitor, Recorder

DEFAULT_MINUTES = 5.0  # on a CPU
TYPICAL_ROWS = 1000


@dataclass(frozen=True)
class Auto:
    """Exact or collapsed, by the number of variables; learned functions where data are nonlinear.

    The result names the method that was chosen and the check that decided.

    Attributes:
        max_exact: variables up to which every graph is added up.
        minutes: that a fit may take by its announced estimate for two cores. No clock decides,
            so that equal fits give equal results: where networks would take longer, sums of
            curves stand in, and where these would, straight lines. Where there are levels or
            counts, networks are left out, then searches, then rows. None: 5 on a CPU, without
            limit on an accelerator, which computes scores of measurements alone.
        num_fits: fits that share the minutes: one for each completion of a table with gaps, and for
            each case of what is computed from what.
        max_nonlinear_on_gpu: variables up to which an accelerator trains networks.
        num_samples: draws per chain of the method that is chosen; None: its own number.
        exact: the method for few variables and linear data.
        collapsed: the method for many variables and linear data.
        nonlinear: the method for data that do not look linear.
        additive: the method for data that do not look linear, where `nonlinear` takes too long.
    """

    supported_constraints = Exact.supported_constraints & Collapsed.supported_constraints
    supports_interventions = True
    exact_dependence = ExactDependence.AVERAGED
    PRESETS: ClassVar[dict[str, "Auto"]]

    max_exact: int = 10
    minutes: float | None = None
    num_fits: int = 1
    max_nonlinear_on_gpu: int = 100
    num_samples: int | None = None
    exact: Exact = Exact(coarsened=True)
    collapsed: Collapsed = Collapsed()
    nonlinear: Collapsed = Collapsed.PRESETS["neural"]
    additive: Collapsed = Collapsed.PRESETS["additive"]

    def __post_init__(self) -> None:
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"minutes is {self.minutes:g}; it must be above 0")

    def sharing(self, num_fits: int) -> "Auto":
        """The same in a part of the time, where it is fitted so many times."""
        return dataclasses.replace(self, num_fits=num_fits * self.num_fits)

    def in_time(self, data: Dataset) -> tuple[Dataset, list[str]]:
        """The rows that are fitted in the time allowed, and what is left out, in words."""
        suited, notes = _kinds.with_score_for(self.collapsed, data)
        if not notes:
            return data, []
        most = self._most_minutes_of_kinds()
        _, data, _, omitted = _kinds_in_time.bounded(
            cast(Collapsed, suited), data, most, self.num_fits
        )
        return data, omitted

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
        suited, notes = _kinds.with_score_for(self.collapsed, data)
        if notes:
            most = self._most_minutes_of_kinds()
            chosen, data, expected, omitted = _kinds_in_time.bounded(
                cast(Collapsed, suited), data, most, self.num_fits
            )
            notes = [f"chosen: collapsed; {notes[0]}", *omitted]
            durations.announce_duration(monitor, expected, data.num_rows, data.num_variables)
        else:
            found = _recalled_linearity(recorder_of(monitor), data)
            chosen, notes = self.choose(data.num_variables, found, data.num_rows)
            durations.announce(monitor, chosen, data.num_rows, data.num_variables)
        if self.num_samples is not None:
            chosen = dataclasses.replace(chosen, num_samples=self.num_samples)
        result = chosen(key, data, knowledge, monitor)
        return dataclasses.replace(
            result, provenance=_kinds.stated(result.provenance, chosen, notes)
        )

    def choose(
        self, d: int, found: Linearity, num_rows: int = TYPICAL_ROWS
    ) -> tuple[Exact | Collapsed, list[str]]:
        """A method for d variables, and why it was chosen, in words."""
        if found.nonlinear:
            return self._choose_nonlinear(d, found, num_rows)
        few = (
            f"{d} variables are {'few' if d <= self.max_exact else 'too many to add up all graphs'}"
        )
        if d <= self.max_exact:
            return self.exact, [f"chosen: exact, because {few} and {found.describe()}"]
        return self.collapsed, [f"chosen: collapsed, because {few}; {found.describe()}"]

    def _choose_nonlinear(
        self, d: int, found: Linearity, num_rows: int
    ) -> tuple[Collapsed, list[str]]:
        """The richest functions that fit the time, and what is left out."""
        functions = type(self.nonlinear.score).__module__.rpartition(".")[2]
        needed = self._minutes_of(self.nonlinear, d, num_rows) * self.num_fits
        most = self._most_minutes()
        if needed <= most and (on_cpu() or d <= self.max_nonlinear_on_gpu):
            why = f"chosen: collapsed with {functions} functions, because {found.describe()}"
            return self.nonlinear, [why]
        late = f"networks would take about {ceil(needed)} minutes (allowed: {most:.3g})"
        if not on_cpu() and d > self.max_nonlinear_on_gpu:
            late = f"networks are trained for up to {self.max_nonlinear_on_gpu} variables"
        longer = (
            f"to learn them: --minutes {ceil(needed)}, or method 'collapsed' with preset "
            f"'{functions}'"
        )
        if self._minutes_of(self.additive, d, num_rows) * self.num_fits <= most:
            return self.additive, [
                f"chosen: collapsed with sums of curves, because {found.describe()}, and {late}",
                "left out: parents whose effects depend on one another, and noise that is not "
                "Gaussian; where these matter, edges may be missing or turned around, and "
                f"probabilities near 0 and 1 are too sure; {longer}",
            ]
        return self.collapsed, [
            f"chosen: collapsed with linear functions, although {found.describe()}: {late}",
            "directions and effects may be wrong where curves matter, and missing edges may be "
            f"nonlinear ones; {longer}",
        ]

    def _most_minutes(self) -> float:
        if self.minutes is not None:
            return self.minutes
        return DEFAULT_MINUTES if on_cpu() else inf

    def _most_minutes_of_kinds(self) -> float:
        """The same on every machine: an accelerator does not compute these scores."""
        return DEFAULT_MINUTES if self.minutes is None else self.minutes

    @staticmethod
    def _minutes_of(method: Collapsed, d: int, num_rows: int) -> float:
        """By experience with fits of this size, on two cores: the same on every machine."""
        return method.expected_duration(num_rows, d).seconds / 60


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
        nonlinear=dataclasses.replace(
            _QUICK, score=Collapsed.PRESETS["neural"].score, max_rounds=1
        ),
        additive=dataclasses.replace(_QUICK, score=Collapsed.PRESETS["additive"].score),
    )
}

build = Auto
