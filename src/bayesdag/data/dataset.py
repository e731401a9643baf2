"""Data as methods get them: values, names, kinds, gaps, intervention mask, and units.

A `Dataset` made directly is only checked for its form; `reading.read` looks at what it holds.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.data import dependence, environments, sortability, validation
from bayesdag.data.dependence import Dependences
from bayesdag.data.environments import Environment
from bayesdag.data.kinds import CONTINUOUS, Kind, label_numbers, refuse_bad_kinds, unscaled
from bayesdag.data.scaling import Scaling, frozen
from bayesdag.errors import InputError


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of measurements, immutable down to its arrays.

    Attributes:
        values: rows in original units; codes 0 … K−1 for columns of levels. A cell that was
            not measured holds a finite placeholder.
        names: one name a column.
        interventions: True where a cell was *set* by an experimenter, so that its value
            says nothing of how the variable comes about; None when nothing was set.
        scaling: to engine units and back; standardised over all rows unless given.
        environment: where rows come from: one label per row, or such labels by column name.
            They are replaced by the `Environment`s they tell, and values, names, interventions
            and scaling get an indicator at the end for each but the reference. An indicator
            counts as set in every row: how many rows come from where is not modelled.
        kinds: what each column holds; all continuous unless given. Codes and counts are not
            scaled. Indicators of environments are binary.
        missing: True where a cell was not measured; None where every cell was.
        preparation: what was done to the table before it was read, as plain data.
    """

    values: Float[np.ndarray, "n d"]
    names: tuple[str, ...]
    interventions: Bool[np.ndarray, "n d"] | None = None
    scaling: Scaling = field(default=None)  # pyright: ignore[reportAssignmentType]
    environment: Any = None
    kinds: tuple[Kind, ...] = field(default=None)  # pyright: ignore[reportAssignmentType]
    missing: Bool[np.ndarray, "n d"] | None = None
    preparation: Mapping[str, Any] = field(default_factory=dict)
    # Whether `read` has warned of these data already: one warning is enough.
    is_checked: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kinds is None:
            indicators = self._indicators_already_there()
            own = (CONTINUOUS,) * (len(self.names) - len(indicators))
            object.__setattr__(self, "kinds", (*own, *indicators))
        self._add_indicators()
        validation.refuse_bad_form(self.values, self.names, self.interventions, self.missing)
        object.__setattr__(self, "values", frozen(self.values, np.float64))
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "kinds", tuple(self.kinds))
        refuse_bad_kinds(self.kinds, self.values, self.names)
        if self.interventions is not None:
            object.__setattr__(self, "interventions", frozen(self.interventions, np.bool_))
        if self.missing is not None:
            found = frozen(self.missing, np.bool_) if np.any(self.missing) else None
            object.__setattr__(self, "missing", found)
        if self.scaling is None:
            object.__setattr__(self, "scaling", self.scaling_called("standardise"))

    def _indicators_already_there(self) -> tuple[Kind, ...]:
        """Kinds of the indicators of environments that are among the columns."""
        if not isinstance(self.environment, tuple):
            return ()
        return tuple(kind for one in self.environment for kind in one.kinds)

    def scaling_called(self, kind: str) -> Scaling:
        """The scaling of this kind for measured cells; codes and counts keep their unit."""
        found = Scaling.of(self.values, kind)
        if self.missing is not None:
            found = Scaling.of_measured(self.values, self.missing, kind)
        kept = unscaled(self.kinds) & ~self.contexts
        if not kept.any():
            return found
        return Scaling(np.where(kept, 0.0, found.shift), np.where(kept, 1.0, found.scale))

    def _add_indicators(self) -> None:
        """Environments from labels; those that are there already stay."""
        given = () if self.environment is None else self.environment
        if isinstance(given, tuple) and all(isinstance(one, Environment) for one in given):
            object.__setattr__(self, "environment", given)
            return
        validation.refuse_bad_form(self.values, self.names, self.interventions, self.missing)
        found, indicators = environments.encode(given, len(self.values))
        mask = np.zeros(self.values.shape, bool)
        mask = mask if self.interventions is None else self.interventions
        whole: dict[str, Any] = {
            "values": np.hstack([self.values, indicators]),
            "names": (*self.names, *(name for one in found for name in one.names)),
            "interventions": np.hstack([mask, np.ones(indicators.shape, dtype=bool)]),
            "environment": found,
            "kinds": (*self.kinds, *(kind for one in found for kind in one.kinds)),
        }
        if self.missing is not None:
            measured = np.zeros(indicators.shape, dtype=bool)
            whole["missing"] = np.hstack([self.missing, measured])
        if self.scaling is not None:
            whole["scaling"] = self.scaling.joined(Scaling.of(indicators))
        for name, value in whole.items():
            object.__setattr__(self, name, value)

    @property
    def contexts(self) -> Bool[np.ndarray, " d"]:
        """True for context variables: the indicators of environments, which nothing acts on."""
        num = sum(len(one.others) for one in self.environment)
        return np.arange(self.num_variables) >= self.num_variables - num

    @property
    def num_contexts(self) -> int:
        """Indicators of environments among the columns."""
        return int(self.contexts.sum())

    @property
    def has_interventions(self) -> bool:
        """Whether a cell of a variable was set by an experimenter."""
        return not self.observed[:, ~self.contexts].all()

    @property
    def kinds_present(self) -> frozenset[str]:
        """Names of the kinds of the variables; indicators of environments do not count."""
        own = self.kinds[: self.num_variables - self.num_contexts]
        return frozenset(kind.name for kind in own)

    @property
    def missing_fraction(self) -> Float[np.ndarray, " d"]:
        """Fraction of each column's cells that were not measured."""
        if self.missing is None:
            return np.zeros(self.num_variables)
        return self.missing.mean(axis=0)

    @property
    def num_rows(self) -> int:
        """n."""
        return self.values.shape[0]

    @property
    def num_variables(self) -> int:
        """d."""
        return self.values.shape[1]

    @cached_property
    def scaled(self) -> Float[np.ndarray, "n d"]:
        """The values in engine units."""
        return frozen(self.scaling.apply(self.values), np.float64)

    @cached_property
    def observed(self) -> Bool[np.ndarray, "n d"]:
        """True where nature chose the value: the cells that a likelihood may count."""
        if self.interventions is None:
            return frozen(np.ones(self.values.shape), np.bool_)
        return frozen(~self.interventions, np.bool_)

    @cached_property
    def dependences(self) -> Dependences:
        """Columns that determine one another, up to rounding; levels have no rounding."""
        known = self.observed & ~np.array([kind.is_discrete for kind in self.kinds])
        if self.missing is not None:
            known &= ~self.missing
        return dependence.find(self.values, self.names, known)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all but the scaling; kinds and gaps count only where there are any."""
        digest = hashlib.sha256(repr((self.values.shape, self.names)).encode())
        digest.update(self.values.astype("<f8").tobytes())
        if self.interventions is not None and self.interventions.any():
            digest.update(self.interventions.tobytes())
        if self.environment:
            digest.update(repr(self.environment).encode())
        if self.kinds_present != {"continuous"}:
            digest.update(repr([(kind.name, kind.levels) for kind in self.kinds]).encode())
        if self.missing is not None:
            digest.update(b"missing" + self.missing.tobytes())
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Summary that a result keeps of its data: numbers per column, never the rows."""
        statistics = self._statistics()
        variables = ~self.contexts
        kept: dict[str, Any] = {
            "num_rows": self.num_rows,
            "num_variables": self.num_variables,
            "num_rows_with_interventions": int((~self.observed[:, variables]).any(axis=1).sum()),
            "sortability": _words(self, statistics["sd"], statistics["r_squared"]),
            "columns": {
                name: {key: numbers[j].item() for key, numbers in statistics.items()}
                | self.kinds[j].to_dict()
                for j, name in enumerate(self.names)
            },
        }
        if self.preparation:
            kept["preparation"] = dict(self.preparation)
        if not self.environment:
            return kept
        patterns, counts = environments.patterns(self.values[:, self.contexts])
        return kept | {
            "environments": [one._asdict() | {"others": [*one.others]} for one in self.environment],
            "environment_patterns": patterns.tolist(),
            "environment_counts": counts.tolist(),
        }

    def _statistics(self) -> dict[str, np.ndarray]:
        """Numbers of every column; of measured cells, but for what relates columns."""
        whole = {
            "mean": self.values.mean(axis=0),
            "sd": self.values.std(axis=0),
            "min": self.values.min(axis=0),
            "max": self.values.max(axis=0),
            "num_distinct": np.array([np.unique(column).size for column in self.values.T]),
            "skewness": validation.skewness(self.values),
            "r_squared": sortability.r_squared(self.values),
            "num_set": (~self.observed).sum(axis=0),
            "missing_fraction": self.missing_fraction,
        }
        if self.missing is None:
            return whole
        parts = [x[~gap] for x, gap in zip(self.values.T, self.missing.T, strict=True)]
        return whole | {
            "mean": np.array([part.mean() for part in parts]),
            "sd": np.array([part.std() for part in parts]),
            "skewness": np.array([validation.skewness(part[:, None])[0] for part in parts]),
        }

    def complete_rows(self) -> "Dataset":
        """The rows in which every cell was measured, to be shown; a fit takes all of them."""
        if self.missing is None:
            return self
        whole = ~self.missing.any(axis=1)
        if whole.sum() < 2:
            raise InputError("fewer than two rows have all their cells; there are none to show")
        return replace(self.with_rows(np.flatnonzero(whole)), missing=None)

    def with_rows(self, rows: Int[np.ndarray, " r"]) -> "Dataset":
        """The rows of these numbers, in the units of all."""
        return replace(
            self,
            values=self.values[rows],
            interventions=None if self.interventions is None else self.interventions[rows],
            missing=None if self.missing is None else self.missing[rows],
        )

    def as_numbers(self, columns: Collection[str], why: str) -> "Dataset":
        """The same table for a method that has no model for what some columns hold.

        Codes of these columns become the numbers of their labels, or stay 0 and 1 where the
        labels are text; they are standardised. `why` is kept as their reason.
        """
        changed = np.array([name in columns for name in self.names])
        if not changed.any():
            return self
        values, kinds = np.array(self.values), list(self.kinds)
        for j in np.flatnonzero(changed).tolist():
            numbers = label_numbers(self.kinds[j])
            if numbers is not None:
                values[:, j] = numbers[values[:, j].astype(int)]
            if numbers is not None or not kinds[j].is_discrete:
                kinds[j] = Kind("continuous", (), why)
        usual = self.preparation.get("scaling", "standardise")
        missing = np.zeros(values.shape, bool) if self.missing is None else self.missing
        scaling = Scaling.of_measured(values, missing, usual)
        shift = np.where(changed, scaling.shift, self.scaling.shift)
        scale = np.where(changed, scaling.scale, self.scaling.scale)
        scaling = Scaling(shift, scale)
        return replace(self, values=values, kinds=tuple(kinds), scaling=scaling)


def check_rows(data: Dataset, needed: int, method_name: str) -> None:
    """Raises InputError when there are fewer rows than the method needs."""
    if data.num_rows < needed:
        raise InputError(
            f"{method_name} needs at least {needed} rows for {data.num_variables} variables and "
            f"the data have {data.num_rows}; add rows, drop columns or choose another method"
        )


def describe_sortability(data: Dataset) -> str:
    """In words: whether the scales of the columns alone give away their order."""
    return _words(data, data.values.std(axis=0), sortability.r_squared(data.values))


def _words(data: Dataset, deviation: np.ndarray, explained: np.ndarray) -> str:
    own = np.flatnonzero(~data.contexts)
    names = tuple(data.names[j] for j in own)
    deviation, explained = deviation[own], explained[own]
    standardised = bool(np.allclose(deviation / data.scaling.scale[own], 1.0, rtol=0.2))
    return sortability.describe(deviation, explained, names, standardised=standardised)
