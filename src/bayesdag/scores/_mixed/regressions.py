"""Regressions of one node on parents of any kinds: lines, curves, by level, quadratic.

By the kind of the node: logistic or ordered logistic regressions, negative binomial ones, or
Gaussian ones. Every class of functions and every value of a hyperparameter is a component with a
proper density or mass.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.scores._mixed import gaussian, newton
from bayesdag.scores._mixed.contingency import configurations
from bayesdag.scores._mixed.features import MixedClass, MixedColumns, Scale
from bayesdag.scores._mixed.gaussian import PRIOR_SCALES, Regression
from bayesdag.scores._mixed.likelihoods import (
    ONCE,
    MultinomialLogistic,
    NegativeBinomial,
    OrderedLogistic,
    Residuals,
    RowWeights,
)
from bayesdag.scores._mixed.newton import Mode

# Prior deviations of weights on the scale of logits, equally probable.
WEIGHT_SCALES = (1.5, 0.5, 5.0)
CONSTANT_SCALE = 1.77  # of the constant of a level: logits of two levels differ by 2.5
DISPERSIONS = (1.0, 0.3, 4.0, 20.0, 200.0)
_MOST_COLUMNS_BY_LEVEL = 40  # of a design with functions of their own in every configuration
_ROWS_TO_START = 1000  # that say where a mode is, roughly
# Tables in which rows of a family are looked for that come again, and what has to be saved.
LEAST_ROWS_TO_MERGE, MOST_DIFFERENT = 1000, 0.5
_NUMBERS_AT_ONCE = 1_500_000  # in designs of regressions that are fitted together

LevelsOrCounts = MultinomialLogistic | OrderedLogistic | NegativeBinomial


class Component(NamedTuple):
    """One model of a family.

    Attributes:
        scale: of the measurements.
        kind: class of the function; None: a table of probabilities.
        hyper: prior scale; of counts also the dispersion, of ordinal columns also whether the
            regression is an ordered one (1) or not (0).
    """

    scale: Scale
    kind: MixedClass | None
    hyper: tuple[float, ...] = ()


TABLE = Component(Scale.RAW, None)
SIMPLE = tuple(kind for kind in MixedClass if kind != MixedClass.NETWORK)


@dataclass(frozen=True, eq=False)
class MixedRegressions:
    """Regressions of every family of one data set, in any of its rows.

    Attributes:
        columns: features of the data.
        additive_tables: whether effects of several parents with levels may also add up, in
            logits: a table of many cells has more parameters than rows can tell.
    """

    columns: MixedColumns
    additive_tables: bool = True
    _moments: dict[tuple, np.ndarray] = field(default_factory=dict, repr=False)

    def fitted(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        tabular: Bool[np.ndarray, " m"],
        seen: Bool[np.ndarray, " n"],
    ) -> Iterator[tuple[Component, Int[np.ndarray, " m"], Float[np.ndarray, " m"]]]:
        """Components but tables and networks, families, and their log evidence in some rows."""
        classes = [
            self.classes(node, chosen, is_table)
            for chosen, is_table in zip(parents, tabular.tolist(), strict=True)
        ]
        for scale, kind in product(self._scales(node), SIMPLE):
            which = np.array([k for k, own in enumerate(classes) if kind in own], dtype=int)
            if not len(which):
                continue
            slope = self.log_slope(node, scale, seen)
            for hyper, rows, found in self._of_class(node, parents[which], scale, kind, seen):
                yield Component(scale, kind, hyper), which[rows], found + slope

    def log_evidence(
        self, node: int, parents: Bool[np.ndarray, " d"], seen: Bool[np.ndarray, " n"]
    ) -> float:
        """Log mean over the components of one family in some rows."""
        found = self.fitted(node, parents[None], np.zeros(1, dtype=bool), seen)
        pairs = [(label, float(value[0])) for label, _, value in found]
        labels, values = [label for label, _ in pairs], np.array([[value for _, value in pairs]])
        return float(np.logaddexp.reduce(values + log_prior(labels, values), axis=1)[0])

    def log_slope(self, node: int, scale: Scale, seen: Bool[np.ndarray, " n"]) -> float:
        """The Jacobian of normal scores, in some of the rows."""
        if scale != Scale.SCORES:
            return 0.0
        own = int(self.columns.observed[:, node].sum())
        return float(self.columns.margins.log_slope[node]) * int(seen.sum()) / max(own, 1)

    def modes(
        self, node: int, parents: Bool[np.ndarray, " d"], component: Component
    ) -> Mode | Regression:
        """The posterior of the parameters of one family under one component.

        Of a Gaussian family by level: one regression for each configuration.
        """
        scale, kind, hyper = component
        assert kind is not None
        seen = self.columns.observed[:, node]
        if self.columns.group(node) == "continuous":
            if kind == MixedClass.BY_LEVEL:
                return self._by_level(node, parents, scale, hyper[0], seen)
            return self._additive(node, parents[None], scale, kind, hyper[0], seen)
        rows, weights = self._different_rows(node, parents, seen) or (np.flatnonzero(seen), ONCE)
        return self.mode(node, self.design(parents, scale, kind, rows), hyper, rows, weights)

    def mode(
        self,
        node: int,
        design: Float[np.ndarray, "r p"],
        hyper: tuple[float, ...],
        seen: Bool[np.ndarray, " n"] | Int[np.ndarray, " r"],
        weights: RowWeights = ONCE,
    ) -> Mode:
        """The mode of one regression of levels or counts under one hyperparameter."""
        model = self._likelihood(node, design[None], hyper, seen, weights)
        return next(mode for _, mode in _along_scales(model, scales=hyper[:1]))

    def residuals(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        best: Component,
        seen: Bool[np.ndarray, " n"],
    ) -> Residuals:
        """Of measurements as they are: what features explain is taken out of them later."""
        if self.columns.group(node) == "continuous":
            target = self.targets(node, best.scale, seen)
            return Residuals(target, np.ones_like(target))
        assert best.kind is not None
        design = self.design(parents, best.scale, best.kind, seen)[None]
        model = self._likelihood(node, design, best.hyper, seen)
        mode = next(mode for _, mode in _along_scales(model, scales=best.hyper[:1]))
        return model.residuals(mode.theta[0])

    def labels(self, node: int) -> list[Component]:
        """All components that a family of the node may have, tables and networks, too."""
        if self.columns.group(node) == "continuous":
            hypers = [(t,) for t in PRIOR_SCALES]
        else:
            hypers = [(s, *others) for others in self._other_hypers(node) for s in WEIGHT_SCALES]
        found = [Component(*one) for one in product(self._scales(node), MixedClass, hypers)]
        return [TABLE, *found] if self.columns.is_level[node] else found

    def _scales(self, node: int) -> list[Scale]:
        """Measurements on both scales; levels and counts read the values as they are."""
        both = self.columns.group(node) == "continuous" and len(self.columns.tables) > 1
        return [Scale.RAW, Scale.SCORES] if both else [Scale.RAW]

    def classes(
        self, node: int, parents: Bool[np.ndarray, " d"], is_table: bool
    ) -> list[MixedClass]:
        """Classes of regressions; beside a table, those that are more than one of its rows."""
        found = self.columns.classes(parents)
        if is_table:
            additive = self.additive_tables and parents.any()
            return [kind for kind in found if additive and kind != MixedClass.BY_LEVEL]
        if self.columns.group(node) == "continuous":
            return [kind for kind in found if kind != MixedClass.QUADRATIC]
        numbers = 1 + int((parents & self.columns.is_number).sum())
        wide = 1 + self.columns.num_configurations(parents) * numbers > _MOST_COLUMNS_BY_LEVEL
        return [kind for kind in found if not (wide and kind == MixedClass.BY_LEVEL)]

    def _of_class(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        seen: Bool[np.ndarray, " n"],
    ) -> Iterator[tuple[tuple[float, ...], Int[np.ndarray, " r"], Float[np.ndarray, " r"]]]:
        """Hyperparameters, families, and their log evidence, in pieces."""
        every = np.arange(len(parents))
        if self.columns.group(node) != "continuous":
            yield from self._fitted_by_laplace(node, parents, scale, kind, seen)
        elif kind == MixedClass.BY_LEVEL:
            for t, k in product(PRIOR_SCALES, every):
                found = self._by_level(node, parents[k], scale, t, seen).log_evidence.sum()
                yield (t,), every[k : k + 1], np.array([found])
        else:
            for t in PRIOR_SCALES:
                found = self._additive(node, parents, scale, kind, t, seen).log_evidence
                yield (t,), every, found

    def _fitted_by_laplace(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        seen: Bool[np.ndarray, " n"],
    ) -> Iterator[tuple[tuple[float, ...], Int[np.ndarray, " r"], Float[np.ndarray, " r"]]]:
        alike = [self._different_rows(node, chosen, seen) for chosen in parents]
        for k, found in enumerate(alike):
            if found is not None:
                rows, weights = found
                design = self.design(parents[k], scale, kind, rows)[None]
                for hyper, mode in self.laplace(node, design, rows, weights):
                    yield hyper, np.array([k]), mode.log_evidence
        yield from self._fitted_together(
            node, parents, scale, kind, seen, [k for k, one in enumerate(alike) if one is None]
        )

    def _fitted_together(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        seen: Bool[np.ndarray, " n"],
        which: list[int],
    ) -> Iterator[tuple[tuple[float, ...], Int[np.ndarray, " r"], Float[np.ndarray, " r"]]]:
        """Some of the families, many at once, in all rows that count."""
        designs = [self.design(parents[k], scale, kind, seen) for k in which]
        numbers = np.array(which, dtype=int)
        widths = np.array([design.shape[1] for design in designs])
        order = np.argsort(widths, kind="stable")
        while len(order):
            width = widths[order[-1]]
            most = max(1, _NUMBERS_AT_ONCE // max(1, len(designs[0]) * width))
            piece, order = order[-most:], order[:-most]
            padded = np.zeros((len(piece), len(designs[0]), width))
            for row, k in enumerate(piece):
                padded[row, :, : widths[k]] = designs[k]
            for hyper, mode in self.laplace(node, padded, seen):
                yield hyper, numbers[piece], mode.log_evidence

    def _different_rows(
        self, node: int, parents: Bool[np.ndarray, " d"], seen: Bool[np.ndarray, " n"]
    ) -> tuple[Int[np.ndarray, " r"], Float[np.ndarray, " r"]] | None:
        """Rows in which the family differs and how often they occur; None where most differ.

        Codes, and measurements that were rounded, come again and again in long tables.
        """
        rows = np.flatnonzero(seen)
        if len(rows) < LEAST_ROWS_TO_MERGE:
            return None
        labels = self.columns.value_codes
        number = labels[rows, node]
        for j in np.flatnonzero(parents):
            number = number * (labels[:, j].max() + 1) + labels[rows, j]
            # Numbered anew, so that many columns do not overflow.
            number = np.unique(number, return_inverse=True)[1]
        _, first, counts = np.unique(number, return_index=True, return_counts=True)
        if len(first) > MOST_DIFFERENT * len(rows):
            return None
        order = np.argsort(first)
        return rows[first[order]], counts[order].astype(float)

    def laplace(
        self,
        node: int,
        design: Float[np.ndarray, "m r p"],
        seen: Bool[np.ndarray, " n"] | Int[np.ndarray, " r"],
        weights: RowWeights = ONCE,
    ) -> Iterator[tuple[tuple[float, ...], Mode]]:
        """Modes under every hyperparameter; each search starts where the last one ended."""
        start = None
        for others in self._other_hypers(node):
            model = self._likelihood(node, design, (0.0, *others), seen, weights)
            # Modes of counts of another dispersion lie near each other.
            start = _start(model) if start is None or not self._is_count(node) else start
            for hyper, mode in _along_scales(model, start):
                start = mode.theta if hyper == WEIGHT_SCALES[:1] else start
                yield (*hyper, *others), mode

    def _is_count(self, node: int) -> bool:
        return self.columns.group(node) == "count"

    def _other_hypers(self, node: int) -> list[tuple[float, ...]]:
        """Hyperparameters beside the scale of the weights."""
        if self._is_count(node):
            return [(r,) for r in DISPERSIONS]
        return [(1.0,), (0.0,)] if self.columns.kinds[node].name == "ordinal" else [()]

    def _likelihood(
        self,
        node: int,
        design: Float[np.ndarray, "m r p"],
        hyper: tuple[float, ...],
        seen: Bool[np.ndarray, " n"] | Int[np.ndarray, " r"],
        weights: RowWeights = ONCE,
    ) -> LevelsOrCounts:
        """Of levels or counts in some rows."""
        if self._is_count(node):
            return NegativeBinomial(design, self.columns.counts[seen, node], hyper[1], weights)
        codes, k = self.columns.codes[seen, node], int(self.columns.num_levels[node])
        ordered = self.columns.kinds[node].name == "ordinal" and hyper[1] == 1
        return (OrderedLogistic if ordered else MultinomialLogistic)(design, codes, k, weights)

    def design(
        self,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        kind: MixedClass,
        seen: Bool[np.ndarray, " n"] | Int[np.ndarray, " r"],
    ) -> Float[np.ndarray, "r p"]:
        """Features of the parents in the rows that count; the constant first."""
        if kind == MixedClass.BY_LEVEL:
            return self.columns.design_by_level(scale, parents, seen)
        features = self.columns.additive_features(scale, kind, parents)
        rows = np.flatnonzero(seen) if seen.dtype == bool else seen
        read = self.columns.tables[scale].values[rows[:, None], features]
        if kind != MixedClass.QUADRATIC:
            return read
        return np.concatenate([read, self.columns.products(scale, parents, rows)], axis=1)

    def targets(
        self, node: int, scale: Scale, seen: Bool[np.ndarray, " n"]
    ) -> Float[np.ndarray, "r k"]:
        """Indicators of the levels of a column, or its numbers."""
        if self.columns.is_level[node]:
            every = np.arange(int(self.columns.num_levels[node]))
            return (self.columns.codes[seen, node][:, None] == every).astype(float)
        table = self.columns.tables[scale]
        return table.values[seen][:, table.lines[node][:1]]

    def _additive(
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

    def _by_level(
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


def log_prior(
    labels: list[Component], values: Float[np.ndarray, "m c"]
) -> Float[np.ndarray, "m c"]:
    """Classes that a family has are equally probable, and so are the models in each."""
    kinds = np.array([len(MixedClass) if c.kind is None else int(c.kind) for c in labels])
    known = np.isfinite(values)
    num_classes = np.stack([known[:, kinds == k].any(axis=1) for k in np.unique(kinds)]).sum(0)
    each = (known[:, :, None] & (kinds[:, None] == kinds[None, :])[None]).sum(axis=1)
    return -np.log(num_classes)[:, None] - np.log(np.maximum(each, 1))


def _along_scales(
    model: LevelsOrCounts,
    start: Float[np.ndarray, "m q"] | None = None,
    scales: Sequence[float] = WEIGHT_SCALES,
) -> Iterator[tuple[tuple[float], Mode]]:
    """Modes under prior scales of the weights; each search starts where the last one ended."""
    start = _start(model) if start is None else start
    known = None
    for scale in scales:
        mode = newton.laplace(model, _prior(model, scale), start, known)
        start, known = mode.theta, mode.derivatives
        yield (scale,), mode._replace(log_evidence=mode.log_evidence + model.log_constant)


def _prior(model: LevelsOrCounts, scale: float) -> Float[np.ndarray, "q q"]:
    """Precision of the parameters where weights have this scale."""
    precision = np.full(model.design.shape[2], scale**-2)
    precision[0] = CONSTANT_SCALE**-2
    return model.prior(precision)


def _start(model: LevelsOrCounts) -> Float[np.ndarray, "m q"]:
    """Where a search begins: near the mode of every so many of the rows, where there are many."""
    every = model.design.shape[1] // _ROWS_TO_START
    if every < 2:
        return model.start()
    fewer = model.of_rows(slice(None, None, every))
    return newton.laplace(fewer, _prior(fewer, WEIGHT_SCALES[0]), model.start()).theta
