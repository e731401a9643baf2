"""Data sets with a truth: rows to learn from, rows to be judged on, and the graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int8, Shaped

from bayesdag.data import Dataset
from bayesdag.datasets._streams import stream
from bayesdag.datasets._truth import Truth
from bayesdag.errors import InputError


@dataclass(frozen=True, eq=False)
class Interventional:
    """Rows in which one variable was set by an experimenter.

    Attributes:
        target: index of the variable that was set.
        data: the rows, with the target's cells marked as set.
    """

    target: int
    data: Dataset

    @property
    def values(self) -> Float[np.ndarray, " n"]:
        """The value each row's target was set to."""
        return self.data.values[:, self.target]


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A data set with its truth.

    Attributes:
        train: rows to learn from.
        graph: the true graph (for measurements, the one experts agree on).
        test: fresh rows in the units of `train`, or None: of the same distribution, or of
            conditions that were held out.
        interventional: one set of rows for each variable that was set.
        truth: the generating model where it is known; None for measurements.
        unknown: True where the truth of an entry is not known and must not be scored; None:
            all of it is known.
        environment: where each training row comes from, or None.
        description: one line for people.
        provenance: plain data that says where the rows come from.
    """

    train: Dataset
    graph: Int8[np.ndarray, "d d"]
    test: Dataset | None = None
    interventional: tuple[Interventional, ...] = ()
    truth: Truth | None = None
    unknown: Bool[np.ndarray, "d d"] | None = None
    environment: Shaped[np.ndarray, " n"] | None = None
    description: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)

    def sample(
        self,
        num_rows: int,
        seed: int,
        do: Mapping[int | str, float | int | np.ndarray] | None = None,
    ) -> Dataset:
        """Fresh rows of the true model, with variables set to given values.

        The same seed gives the same individuals whatever `do` says, so the difference of two
        such samples is the effect in each individual.

        Args:
            num_rows: number of rows.
            seed: chooses the individuals.
            do: value, or one value a row, for each variable (index or name) that is set.
        """
        if self.truth is None:
            raise InputError(
                "the functions behind these measurements are not known, so no new rows can be "
                "drawn; use a generated data set (synthetic, example)"
            )
        targets = {self._index(variable): value for variable, value in (do or {}).items()}
        return set_rows(self.truth, stream(seed, "sample"), num_rows, targets, self.train)

    def _index(self, variable: int | str) -> int:
        names = self.train.names
        if isinstance(variable, str):
            if variable not in names:
                raise InputError(
                    f"no variable is called {variable!r}; there are: {', '.join(names)}"
                )
            return names.index(variable)
        if not 0 <= variable < len(names):
            raise InputError(
                f"variable {variable} does not exist; they run from 0 to {len(names) - 1}"
            )
        return int(variable)


def set_rows(
    truth: Truth,
    rng: np.random.Generator,
    num_rows: int,
    do: Mapping[int, float | int | np.ndarray],
    like: Dataset,
) -> Dataset:
    """Rows of `truth` under `do`, named and scaled like another table, set cells marked."""
    values = truth.sample(rng, num_rows, do)
    mask = np.zeros(values.shape, dtype=bool)
    mask[:, list(do)] = True
    return Dataset(values, like.names, mask if do else None, like.scaling)
