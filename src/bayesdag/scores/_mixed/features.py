"""Features of columns of every kind, and which of them each class of functions reads.

Levels enter as indicators, one for each, never as numbers; measurements as a line, or as a curve
that may bend at some quantiles; counts likewise by their logarithm; ordered levels as a line of
their codes, or as indicators.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.data import Dataset
from bayesdag.data.kinds import Kind
from bayesdag.scores._mixed.contingency import configurations
from bayesdag.scores._neural.normal_scores import NormalScores, normal_scores

KNOTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles of a variable at which its curve may bend
# Configurations of parents with levels that may have functions of their own.
MOST_CONFIGURATIONS = 48


class MixedClass(IntEnum):
    """What a function of parents of several kinds may be; equally probable where they differ."""

    LINES = 0
    CURVES = 1
    BY_LEVEL = 2
    QUADRATIC = 3
    NETWORK = 4


class Scale(IntEnum):
    """Whether measurements are taken as they are or by their normal scores."""

    RAW = 0
    SCORES = 1


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of all columns on one scale.

    Attributes:
        values: 1 in the first column, zeros in the last, for padding.
        lines: numbers of the features of each column where functions are lines.
        curves: the same where they are curves.
        knots: of each column that is a number; zeros for others.
    """

    values: Float[np.ndarray, "n q"]
    lines: tuple[Int[np.ndarray, " _"], ...]
    curves: tuple[Int[np.ndarray, " _"], ...]
    knots: Float[np.ndarray, "d m"]

    @property
    def padding(self) -> int:
        """Number of the feature that is zero."""
        return self.values.shape[1] - 1


@dataclass(frozen=True, eq=False)
class MixedColumns:
    """Columns of a data set, as the families of mixed kinds read them.

    Attributes:
        kinds: of every column.
        is_level: whether a column has levels.
        is_number: whether it is a measurement or a count.
        contexts: indicators of environments.
        num_levels: K of every column; 0 without levels.
        codes: 0 … K-1; 0 in columns without levels.
        counts: of columns of counts; 0 in others.
        numbers: measurements in engine units, counts by their standardised logarithm.
        observed: False where an experimenter set the cell.
        centre: codes are centre + unit times engine units for levels, and numbers are
            (log(1 + count) - centre) / unit for counts.
        unit: see `centre`.
        margins: normal scores of measurements that are not normal.
        tables: features on both scales; one table where no column has normal scores.
    """

    kinds: tuple[Kind, ...]
    is_level: Bool[np.ndarray, " d"]
    is_number: Bool[np.ndarray, " d"]
    contexts: Bool[np.ndarray, " d"]
    num_levels: Int[np.ndarray, " d"]
    codes: Int[np.ndarray, "n d"]
    counts: Float[np.ndarray, "n d"]
    numbers: Float[np.ndarray, "n d"]
    observed: Bool[np.ndarray, "n d"]
    centre: Float[np.ndarray, " d"]
    unit: Float[np.ndarray, " d"]
    margins: NormalScores
    tables: tuple[FeatureTable, ...]

    def group(self, j: int) -> str:
        """Levels, counts or continuous: what decides about the likelihood of a column."""
        return "levels" if self.is_level[j] else self.kinds[j].name

    @property
    def rank(self) -> Int[np.ndarray, " d"]:
        """0 for measurements, 1 for counts, 2 for levels."""
        return np.where(self.is_level, 2, [int(kind.name == "count") for kind in self.kinds])

    def num_configurations(self, parents: Bool[np.ndarray, " d"]) -> int:
        """Of those parents that have levels."""
        return int(np.prod(self.num_levels[parents & self.is_level].astype(float)))

    def classes(self, parents: Bool[np.ndarray, " d"]) -> list[MixedClass]:
        """Classes of functions of these parents that differ from one another.

        Quadratic ones are meant for levels: measurements that are normal given a level make
        the logits of the levels quadratic. Networks are added where these leave something.
        """
        found = [MixedClass.LINES]
        ordered = any(self.kinds[j].name == "ordinal" for j in np.flatnonzero(parents))
        if ordered or (parents & self.is_number).any():
            found.append(MixedClass.CURVES)
        has_levels = (parents & self.is_level).any()
        if has_levels and self.num_configurations(parents) <= MOST_CONFIGURATIONS:
            found.append(MixedClass.BY_LEVEL)
        if (parents & self.is_number).any():
            found.append(MixedClass.QUADRATIC)
        return found

    def additive_features(
        self, scale: Scale, kind: MixedClass, parents: Bool[np.ndarray, " d"]
    ) -> Int[np.ndarray, " p"]:
        """The constant, then the features of all parents."""
        table = self.tables[scale]
        read = table.curves if kind == MixedClass.CURVES else table.lines
        return np.concatenate([[0], *(read[j] for j in np.flatnonzero(parents))]).astype(int)

    @cached_property
    def value_codes(self) -> Int[np.ndarray, "n d"]:
        """Numbers of the different values of every column, by which equal rows are found."""
        values = np.where(self.is_level, self.codes, self.numbers)
        return np.stack([np.unique(one, return_inverse=True)[1] for one in values.T], axis=1)

    def design_by_level(
        self, scale: Scale, parents: Bool[np.ndarray, " d"], rows: np.ndarray
    ) -> Float[np.ndarray, "r p"]:
        """Constant and lines of the numbers among the parents, once in every configuration.

        Of some rows. The first column is 1 everywhere; the configurations' own constants follow.
        """
        table = self.tables[scale]
        number, size = configurations(
            self.codes[rows], self.num_levels, np.flatnonzero(parents & self.is_level)
        )
        inside = (number[:, None] == np.arange(size)).astype(float)
        lines = [table.lines[j][0] for j in np.flatnonzero(parents & self.is_number)]
        read = table.values[rows][:, [0, *lines]]
        each = (inside[:, :, None] * read[:, None, :]).reshape(len(read), -1)
        return np.concatenate([np.ones((len(read), 1)), each], axis=1)

    def products(
        self, scale: Scale, parents: Bool[np.ndarray, " d"], rows: np.ndarray
    ) -> Float[np.ndarray, "r p"]:
        """Squares of the numbers among the parents, and products of each two."""
        table = self.tables[scale]
        lines = [table.lines[j][0] for j in np.flatnonzero(parents & self.is_number)]
        first, second = np.triu_indices(len(lines))
        read = table.values[rows][:, lines]
        return read[:, first] * read[:, second]


def columns_of(data: Dataset, seed: int = 0) -> MixedColumns:
    """Features of a data set."""
    kinds, n, d = data.kinds, data.num_rows, data.num_variables
    is_level = np.array([kind.is_discrete for kind in kinds])
    is_count = np.array([kind.name == "count" for kind in kinds])
    num_levels = np.array([len(kind.levels) for kind in kinds]) * is_level
    codes = np.where(is_level, np.round(data.values), 0).astype(np.int64)
    counts = np.where(is_count, data.values, 0.0)
    centre = np.where(is_level, data.scaling.shift, 0.0)
    unit = np.where(is_level, data.scaling.scale, 1.0)
    logs = np.log1p(counts)
    centre = np.where(is_count, logs.mean(axis=0), centre)
    unit = np.where(is_count, np.maximum(logs.std(axis=0), 1e-3), unit)
    numbers = np.where(is_count, (logs - centre) / unit, data.scaled)
    numbers = np.where(is_level, 0.0, numbers)
    measured = np.where(is_level | is_count, 0.0, data.scaled)  # a constant has no scores
    rng = np.random.default_rng(seed)
    margins = normal_scores(rng, _spread_out(rng, measured), data.observed)
    tables = [_table(kinds, numbers, codes, num_levels)]
    if len(margins.warped):
        warped = numbers.copy()
        warped[:, margins.warped] = margins.values
        tables.append(_table(kinds, warped, codes, num_levels))
    assert numbers.shape == (n, d)
    return MixedColumns(
        kinds=kinds,
        is_level=is_level,
        is_number=~is_level,
        contexts=data.contexts,
        num_levels=num_levels,
        codes=codes,
        counts=counts,
        numbers=numbers,
        observed=np.asarray(data.observed),
        centre=centre,
        unit=unit,
        margins=margins,
        tables=tuple(tables),
    )


def _spread_out(
    rng: np.random.Generator, values: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "n d"]:
    """Measurements that were rounded, evenly within their rounding: they have a density."""
    result = values.copy()
    for j, column in enumerate(values.T):
        different = np.unique(column)
        if 2 < len(different) < len(column):
            result[:, j] += np.diff(different).min() * rng.uniform(-0.5, 0.5, len(column))
    return result


def _table(
    kinds: tuple[Kind, ...],
    numbers: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, "n d"],
    num_levels: Int[np.ndarray, " d"],
) -> FeatureTable:
    n, d = numbers.shape
    pieces, start = [np.ones((n, 1))], 1
    lines: list[np.ndarray] = []
    curves: list[np.ndarray] = []
    knots = np.zeros((d, len(KNOTS)))
    for j, kind in enumerate(kinds):
        if kind.is_discrete:
            block = (codes[:, [j]] == np.arange(num_levels[j])).astype(float)
            if kind.name == "ordinal":
                line = ordinal_line(int(num_levels[j]))[codes[:, j]][:, None]
                block = np.concatenate([block, line], axis=1)
        else:
            z = numbers[:, [j]]
            knots[j] = np.quantile(z, KNOTS)
            block = np.concatenate([z, np.maximum(z - knots[j], 0.0)], axis=1)
        own = start + np.arange(block.shape[1])
        if kind.name == "ordinal":
            lines.append(own[-1:])
            curves.append(own[:-1])
        else:
            lines.append(own if kind.is_discrete else own[:1])
            curves.append(own)
        pieces.append(block)
        start += block.shape[1]
    pieces.append(np.zeros((n, 1)))
    return FeatureTable(np.concatenate(pieces, axis=1), tuple(lines), tuple(curves), knots)


def ordinal_line(num_levels: int) -> Float[np.ndarray, " k"]:
    """Codes of ordered levels as a line: centred, of unit variance if all were as frequent."""
    codes = np.arange(num_levels)
    return (codes - (num_levels - 1) / 2) / np.sqrt((num_levels**2 - 1) / 12)
