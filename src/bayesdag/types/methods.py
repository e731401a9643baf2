"""Protocols of methods: from data and knowledge to a posterior."""

from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bayesdag.types.arrays import Key
from bayesdag.types.monitors import Monitor

# What a score or a method takes that says nothing else: its attribute `takes_kinds` names the
# kinds of columns (`data.kinds`) whose values it does not mistake for measurements.
MEASUREMENTS = frozenset({"continuous"})


class ExactDependence(Enum):
    """Treatment of columns that determine one another.

    Results are averaged over which column is computed from which; or ignored, by what claims
    nothing about causes; or such data are refused.
    """

    AVERAGED = "averaged"
    IGNORED = "ignored"
    REFUSED = "refused"


def kinds_taken(plugin: object) -> frozenset[str]:
    """Kinds of columns that a score or a method has a model for."""
    return getattr(plugin, "takes_kinds", MEASUREMENTS)


@runtime_checkable
class Method(Protocol):
    """Turns data and knowledge into a Posterior; a frozen dataclass of its settings.

    `supported_constraints` names the kinds of knowledge the method obeys by construction, out of
    "required", "forbidden", "beliefs" and "environments"; others are refused before it starts.
    `supports_interventions` says whether it drops the likelihood of cells that were set.
    """

    @property
    def supported_constraints(self) -> frozenset[str]:
        """Kinds of knowledge that the method obeys."""
        ...

    @property
    def supports_interventions(self) -> bool:
        """Whether cells that were set leave the likelihood."""
        ...

    @property
    def exact_dependence(self) -> ExactDependence:
        """Treatment of columns that determine one another."""
        ...

    def min_rows(self, d: int) -> int:
        """Fewest rows the method can work with."""
        ...

    def __call__(self, key: Key, data: Any, knowledge: Any, monitor: Monitor | None) -> Any:
        """The posterior; `knowledge` is bound to the data's columns (`Constraints`)."""
        ...


@runtime_checkable
class SamplingMethod(Method, Protocol):
    """A method whose number of draws is a setting; None leaves it to another method."""

    @property
    def num_samples(self) -> int | None:
        """Draws of each chain."""
        ...


class Duration(NamedTuple):
    """Typical duration of a fit.

    Attributes:
        seconds: on two cores, or on one accelerator.
        faster: what would make it faster, in words.
        on_accelerator: whether an accelerator does the work.
    """

    seconds: float
    faster: tuple[str, ...]
    on_accelerator: bool = False


@runtime_checkable
class Timed(Protocol):
    """A method that knows how long it takes."""

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Typical duration of a fit of so many rows and variables."""
        ...
