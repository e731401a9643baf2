"""Gaussian regressions of measurements, from sums of products that families share."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.scores._mixed import gaussian
from bayesdag.scores._mixed.contingency import configurations
from bayesdag.scores._mixed.features import MixedClass, MixedColumns, Scale
from bayesdag.scores._mixed.gaussian import Regression


@dataclass(frozen=True, eq=False)
class GaussianRegressions:
    """Gaussian regressions of the columns of one data set, in any of its rows.

    Attributes:
        columns: features of the data.
    """

    columns: MixedColumns
    _moments: dict[tuple, np.ndarray] = field(default_factory=dict, repr=False)

    def additive(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        t: float,
        seen: Bool[np.ndarray, " n"],
    ) -> Regression:
        """Gaussian regressions on features that add up."""
        table = self.columns.tables[scale]
        gram = self._gram(seen, scale)
        chosen = [self.columns.additive_features(scale, kind, one) for one in parents]
        width = max(len(one) for one in chosen)
        index = np.full((len(chosen), width), table.padding)
        for row, one in enumerate(chosen):
            index[row, : len(one)] = one
        target = int(table.lines[node][0])
        m = len(parents)
        return gaussian.regress(
            gram[index[:, :, None], index[:, None, :]],
            gram[index, target],
            np.full(m, gram[target, target]),
            np.full(m, gram[0, 0]),
            parents.sum(axis=1),
            t,
        )

    def by_level(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        t: float,
        seen: Bool[np.ndarray, " n"],
    ) -> Regression:
        """A Gaussian regression on lines in every configuration, with a variance of its own."""
        number = np.flatnonzero(parents & self.columns.is_number)
        grams = self._grams_by_level(seen, scale, parents & self.columns.is_level)
        place = np.cumsum(self.columns.is_number)  # of each line after the constant
        index = np.concatenate([[0], place[number]]).astype(int)
        target = int(place[node])
        m = len(grams)
        return gaussian.regress(
            grams[:, index[:, None], index[None, :]],
            grams[:, index, target],
            grams[:, target, target],
            grams[:, 0, 0],
            np.full(m, len(number)),
            t,
        )

    def _gram(self, seen: Bool[np.ndarray, " n"], scale: Scale) -> Float[np.ndarray, "q q"]:
        """Sums of products of all features over the rows that count."""

        def compute() -> np.ndarray:
            read = self.columns.tables[scale].values[seen]
            return read.T @ read

        return self._kept((scale, seen.tobytes()), compute)

    def _grams_by_level(
        self, seen: Bool[np.ndarray, " n"], scale: Scale, levels: Bool[np.ndarray, " d"]
    ) -> Float[np.ndarray, "c q q"]:
        """The same of the constant and all lines of numbers, in every configuration."""
        columns = self.columns

        def compute() -> np.ndarray:
            members = np.flatnonzero(levels)
            number, size = configurations(columns.codes, columns.num_levels, members)
            table = columns.tables[scale]
            lines = [table.lines[j][0] for j in np.flatnonzero(columns.is_number)]
            read, number = table.values[seen][:, [0, *lines]], number[seen]
            grams = np.zeros((size, read.shape[1], read.shape[1]))
            for cell in np.unique(number).tolist():
                inside = read[number == cell]
                grams[cell] = inside.T @ inside
            return grams

        return self._kept((scale, seen.tobytes(), levels.tobytes()), compute)

    def _kept(self, key: tuple, compute: Callable[[], np.ndarray]) -> np.ndarray:
        if key not in self._moments:
            self._moments[key] = compute()
        return self._moments[key]
