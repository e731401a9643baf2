"""What a method is given: values, names, which cells were set, and the units it works in.

`read` is the border: it takes what people have (a DataFrame, an array, a CSV or Parquet
file), refuses what no method could use, and warns of what a careful analyst would ask about.
A `Dataset` made directly is only checked for its form.
"""

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data import dependence, sortability, validation
from bayesdag.data.dependence import Dependences
from bayesdag.data.scaling import Scaling, frozen
from bayesdag.errors import InputError, did_you_mean


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of measurements, immutable down to its arrays.

    Attributes:
        values: rows in original units.
        names: one name a column.
        interventions: True where a cell was *set* by an experimenter, so that its value
            says nothing of how the variable comes about; None when nothing was set.
        scaling: to engine units and back; standardised over all rows unless given.
    """

    values: Float[np.ndarray, "n d"]
    names: tuple[str, ...]
    interventions: Bool[np.ndarray, "n d"] | None = None
    scaling: Scaling = field(default=None)  # pyright: ignore[reportAssignmentType]
    # Whether `read` has warned of these data already: nobody wants to be told twice.
    is_checked: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        validation.refuse_bad_form(self.values, self.names, self.interventions)
        object.__setattr__(self, "values", frozen(self.values, np.float64))
        object.__setattr__(self, "names", tuple(self.names))
        if self.interventions is not None:
            object.__setattr__(self, "interventions", frozen(self.interventions, np.bool_))
        if self.scaling is None:
            object.__setattr__(self, "scaling", Scaling.of(self.values))

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
        """Columns that determine one another, up to rounding."""
        return dependence.find(self.values, self.names, self.observed)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of shape, names, values and mask; the scaling is not part of it."""
        digest = hashlib.sha256(repr((self.values.shape, self.names)).encode())
        digest.update(self.values.astype("<f8").tobytes())
        if self.interventions is not None and self.interventions.any():
            digest.update(self.interventions.tobytes())
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """What a result keeps of its data: numbers a column, never the rows."""
        statistics = {
            "mean": self.values.mean(axis=0),
            "sd": self.values.std(axis=0),
            "min": self.values.min(axis=0),
            "max": self.values.max(axis=0),
            "num_distinct": np.array([np.unique(column).size for column in self.values.T]),
            "skewness": validation.skewness(self.values),
            "r_squared": sortability.r_squared(self.values),
            "num_set": (~self.observed).sum(axis=0),
        }
        return {
            "num_rows": self.num_rows,
            "num_variables": self.num_variables,
            "num_rows_with_interventions": int((~self.observed).any(axis=1).sum()),
            "sortability": _words(self, statistics["sd"], statistics["r_squared"]),
            "columns": {
                name: {key: numbers[j].item() for key, numbers in statistics.items()}
                for j, name in enumerate(self.names)
            },
        }


def read(source: object, *, interventions: object = None, scaling: str | None = None) -> Dataset:
    """The table in `source`, checked; refusals and warnings name the column and the remedy.

    Args:
        source: a DataFrame, a 2-D array (columns are called x0, x1, …), the path of a CSV
            or Parquet file, or a Dataset.
        interventions: which cells were set by an experimenter: True/False (or 0/1) in the
            shape of the table, or one entry a row with the names of the variables set
            (none for an observational row, several separated by ";" or ","); as an array,
            a DataFrame, a list, the path of a CSV file, or the name of a column in `source`.
        scaling: "standardise" (the default), "centre" or "none". A Dataset keeps its own
            unless another is named.
    """
    if not isinstance(source, Dataset):
        data = _parse(source, interventions)
    elif interventions is not None:
        data = replace(source, interventions=_mask(interventions, source.names, source.num_rows))
    else:
        data = source
    if not data.is_checked or interventions is not None:
        validation.check(data.values, data.names, data.interventions)
        validation.warn_of_dependences(data.dependences)
    if scaling is not None:
        data = replace(data, scaling=Scaling.of(data.values, scaling))
    object.__setattr__(data, "is_checked", True)
    return data


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
    standardised = bool(np.allclose(deviation / data.scaling.scale, 1.0, rtol=0.2))
    return sortability.describe(deviation, explained, data.names, standardised=standardised)


def _parse(source: object, interventions: object) -> Dataset:
    """The table as it is written in the sources."""
    from bayesdag.data import numeric, tables

    table = tables.frame(source)
    if isinstance(interventions, str) and interventions in table.columns:
        interventions, table = table[interventions], table.drop(columns=interventions)
    names = tuple(table.columns)
    validation.refuse_bad_names(names)
    values = numeric.numbers(table)
    if interventions is None:
        return Dataset(values, names)
    return Dataset(values, names, _mask(interventions, names, len(values)))


def _mask(interventions: object, names: tuple[str, ...], num_rows: int) -> np.ndarray:
    from bayesdag.data import intervention_mask, tables

    if isinstance(interventions, str) and not os.path.exists(interventions):
        raise InputError(
            f"interventions={interventions!r} is neither a column of the data "
            f"({did_you_mean(interventions, names)}) nor a file; check the name"
        )
    if isinstance(interventions, str | os.PathLike):
        interventions = tables.frame(interventions, keep_blank_rows=True)
    return intervention_mask.mask(interventions, names, num_rows)
