"""Evidence of one node given parents of any kinds, with the function in one direction.

By the kind of the node: tables of probabilities, logistic or ordered logistic regressions,
negative binomial regressions, or Gaussian ones. Every class of functions and every value of a
hyperparameter is a component with a proper density or mass; the evidence is their mean.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.scores._mixed import contingency, gaussian, newton
from bayesdag.scores._mixed.contingency import LevelRows, configurations
from bayesdag.scores._mixed.features import MixedClass, MixedColumns, Scale
from bayesdag.scores._mixed.gaussian import PRIOR_SCALES, Regression
from bayesdag.scores._mixed.likelihoods import (
    MultinomialLogistic,
    NegativeBinomial,
    OrderedLogistic,
)
from bayesdag.scores._mixed.newton import Mode

# Prior deviations of weights on the scale of logits, equally probable.
WEIGHT_SCALES = (1.5, 0.5, 5.0)
CONSTANT_SCALE = 1.77  # of the constant of a level: logits of two levels differ by 2.5
DISPERSIONS = (1.0, 0.3, 4.0, 20.0, 200.0)
LARGEST_TABLE = 4096  # configurations of parents up to which a node of levels has a table
_MOST_COLUMNS_BY_LEVEL = 40  # of a design with functions of their own in every configuration
_NUMBERS_AT_ONCE = 1_500_000  # in designs of regressions that are fitted together


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


@dataclass(frozen=True, eq=False)
class FamilyModels:
    """Components of every family of one data set, and their evidence.

    Attributes:
        columns: features of the data.
        rows: different rows of levels.
        ess: rows that the prior of a table is worth.
        largest_table: configurations of parents up to which a node of levels has a table.
        additive_tables: whether effects of several parents with levels may also add up, in
            logits: a table of many cells has more parameters than rows can tell.
    """

    columns: MixedColumns
    rows: LevelRows
    ess: float
    largest_table: float = LARGEST_TABLE
    additive_tables: bool = True
    _moments: dict[tuple, tuple] = field(default_factory=dict, repr=False)

    def log_evidence(
        self, node: int, parents: Bool[np.ndarray, "m d"], among: int | None = None
    ) -> Float[np.ndarray, " m"]:
        """Log mean over the components of each family.

        Args:
            among: the column whose observed rows count; by default those of the node.
        """
        _, values = self.components(node, parents, among)
        return np.logaddexp.reduce(values, axis=1)

    def has_table(self, node: int, parents: Bool[np.ndarray, "m d"]) -> Bool[np.ndarray, " m"]:
        """Families of levels only, unless their table would be too large."""
        columns = self.columns
        if not columns.is_level[node]:
            return np.zeros(len(parents), dtype=bool)
        size = np.where(parents, np.maximum(columns.num_levels, 1.0), 1.0).prod(axis=1)
        return ~(parents & columns.is_number).any(axis=1) & (size <= self.largest_table)

    def components(
        self, node: int, parents: Bool[np.ndarray, "m d"], among: int | None = None
    ) -> tuple[list[Component], Float[np.ndarray, "m c"]]:
        """Models of the families, and the log evidence of each with its prior weight.

        Classes are equally probable, and so are the hyperparameters of each. -inf where a family
        does not have a component, because a simpler one is the same.
        """
        among = node if among is None else among
        labels = self._labels(node)
        values = np.full((len(parents), len(labels)), -np.inf)
        number = {label: c for c, label in enumerate(labels)}
        tabular = self.has_table(node, parents)
        if tabular.any():
            found = contingency.log_evidence(self.rows, node, parents[tabular], self.ess, among)
            values[tabular, number[TABLE]] = found
        classes = [
            self._classes(node, chosen, is_table)
            for chosen, is_table in zip(parents, tabular.tolist(), strict=True)
        ]
        for scale, kind in product(self._scales(node), MixedClass):
            which = np.array([k for k, own in enumerate(classes) if kind in own], dtype=int)
            if not len(which):
                continue
            for hyper, rows, found in self._fitted(node, parents[which], scale, kind, among):
                values[which[rows], number[Component(scale, kind, hyper)]] = found
        if not self.columns.is_level[node] and self.columns.group(node) == "continuous":
            seen = self.columns.observed.sum(axis=0)
            slope = self.columns.margins.log_slope[node] * seen[among] / max(seen[node], 1)
            values[:, [label.scale == Scale.SCORES for label in labels]] += slope
        kinds = np.array([len(MixedClass) if c.kind is None else int(c.kind) for c in labels])
        known = np.isfinite(values)
        num_classes = np.stack([known[:, kinds == k].any(axis=1) for k in np.unique(kinds)]).sum(0)
        each = (known[:, :, None] & (kinds[:, None] == kinds[None, :])[None]).sum(axis=1)
        return labels, values - np.log(num_classes)[:, None] - np.log(np.maximum(each, 1))

    def modes(
        self, node: int, parents: Bool[np.ndarray, " d"], component: Component
    ) -> Mode | Regression:
        """The posterior of the parameters of one family under one component.

        Of a Gaussian family by level: one regression for each configuration.
        """
        scale, kind, hyper = component
        assert kind is not None
        if self.columns.group(node) == "continuous":
            if kind == MixedClass.BY_LEVEL:
                return self._by_level(node, parents, scale, hyper[0], node)
            return self._additive(node, parents[None], scale, kind, hyper[0], node)
        design = self._design(parents, scale, kind, node)[None]
        fits = self._laplace(node, design, node)
        return next(mode for own, mode in fits if own == hyper)

    def _labels(self, node: int) -> list[Component]:
        group = self.columns.group(node)
        hypers: list[tuple[float, ...]] = [(t,) for t in PRIOR_SCALES]
        if group == "levels":
            hypers = [(s,) for s in WEIGHT_SCALES]
            if self.columns.kinds[node].name == "ordinal":
                hypers = [(s, ordered) for ordered in (1.0, 0.0) for s in WEIGHT_SCALES]
        elif group == "count":
            hypers = [(s, r) for r in DISPERSIONS for s in WEIGHT_SCALES]
        found = [Component(*one) for one in product(self._scales(node), MixedClass, hypers)]
        return [TABLE, *found] if group == "levels" else found

    def _scales(self, node: int) -> list[Scale]:
        """Measurements on both scales; levels and counts read the values as they are."""
        both = self.columns.group(node) == "continuous" and len(self.columns.tables) > 1
        return [Scale.RAW, Scale.SCORES] if both else [Scale.RAW]

    def _classes(
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

    def _fitted(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        among: int,
    ) -> Iterator[tuple[tuple[float, ...], Int[np.ndarray, " r"], Float[np.ndarray, " r"]]]:
        """Hyperparameters, families, and their log evidence, in pieces."""
        every = np.arange(len(parents))
        if self.columns.group(node) != "continuous":
            yield from self._fitted_by_laplace(node, parents, scale, kind, among)
        elif kind == MixedClass.BY_LEVEL:
            for t, k in product(PRIOR_SCALES, every):
                found = self._by_level(node, parents[k], scale, t, among).log_evidence.sum()
                yield (t,), every[k : k + 1], np.array([found])
        else:
            for t in PRIOR_SCALES:
                found = self._additive(node, parents, scale, kind, t, among).log_evidence
                yield (t,), every, found

    def _fitted_by_laplace(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        among: int,
    ) -> Iterator[tuple[tuple[float, ...], Int[np.ndarray, " r"], Float[np.ndarray, " r"]]]:
        designs = [self._design(chosen, scale, kind, among) for chosen in parents]
        widths = np.array([design.shape[1] for design in designs])
        order = np.argsort(widths, kind="stable")
        while len(order):
            width = widths[order[-1]]
            most = max(1, _NUMBERS_AT_ONCE // max(1, len(designs[0]) * width))
            piece, order = order[-most:], order[:-most]
            padded = np.zeros((len(piece), len(designs[0]), width))
            for row, k in enumerate(piece):
                padded[row, :, : widths[k]] = designs[k]
            for hyper, mode in self._laplace(node, padded, among):
                yield hyper, piece, mode.log_evidence

    def _laplace(
        self, node: int, design: Float[np.ndarray, "m n p"], among: int
    ) -> Iterator[tuple[tuple[float, ...], Mode]]:
        """Modes under every hyperparameter; each search starts where the last one ended."""
        observed = self.columns.observed[:, among]
        codes, k = self.columns.codes[observed, node], int(self.columns.num_levels[node])
        if self.columns.group(node) == "count":
            counts = self.columns.counts[observed, node]
            start = None
            for r in DISPERSIONS:
                model = NegativeBinomial(design, counts, r)
                for hyper, mode in _along_scales(model, start):
                    start = mode.theta if start is None else start
                    yield (*hyper, r), mode
            return
        plain = MultinomialLogistic(design, codes, k)
        if self.columns.kinds[node].name != "ordinal":
            yield from _along_scales(plain)
            return
        for ordered, model in ((1.0, OrderedLogistic(design, codes, k)), (0.0, plain)):
            for hyper, mode in _along_scales(model):
                yield (*hyper, ordered), mode

    def _design(
        self, parents: Bool[np.ndarray, " d"], scale: Scale, kind: MixedClass, among: int
    ) -> Float[np.ndarray, "n p"]:
        """Features of the parents in the rows that count; the constant first."""
        observed = self.columns.observed[:, among]
        if kind == MixedClass.BY_LEVEL:
            return self.columns.design_by_level(scale, parents)[observed]
        features = self.columns.additive_features(scale, kind, parents)
        read = self.columns.tables[scale].values[observed][:, features]
        if kind != MixedClass.QUADRATIC:
            return read
        return np.concatenate([read, self.columns.products(scale, parents)[observed]], axis=1)

    def _additive(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        t: float,
        among: int,
    ) -> Regression:
        """Gaussian regressions on features that add up."""
        table = self.columns.tables[scale]
        gram = self._gram(among, scale)
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
        self, node: int, parents: Bool[np.ndarray, " d"], scale: Scale, t: float, among: int
    ) -> Regression:
        """A Gaussian regression on lines in every configuration, with a variance of its own."""
        number = np.flatnonzero(parents & self.columns.is_number)
        grams = self._grams_by_level(among, scale, parents & self.columns.is_level)
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

    def _gram(self, among: int, scale: Scale) -> Float[np.ndarray, "q q"]:
        """Sums of products of all features over the rows that count."""
        observed = self.columns.observed[:, among]

        def compute() -> np.ndarray:
            read = self.columns.tables[scale].values[observed]
            return read.T @ read

        return self._kept((scale, observed.tobytes()), compute)

    def _grams_by_level(
        self, among: int, scale: Scale, levels: Bool[np.ndarray, " d"]
    ) -> Float[np.ndarray, "c q q"]:
        """The same of the constant and all lines of numbers, in every configuration."""
        columns, observed = self.columns, self.columns.observed[:, among]

        def compute() -> np.ndarray:
            members = np.flatnonzero(levels)
            number, size = configurations(columns.codes, columns.num_levels, members)
            table = columns.tables[scale]
            lines = [table.lines[j][0] for j in np.flatnonzero(columns.is_number)]
            read, number = table.values[observed][:, [0, *lines]], number[observed]
            grams = np.zeros((size, read.shape[1], read.shape[1]))
            for cell in np.unique(number).tolist():
                inside = read[number == cell]
                grams[cell] = inside.T @ inside
            return grams

        return self._kept((scale, observed.tobytes(), levels.tobytes()), compute)

    def _kept(self, key: tuple, compute: Callable[[], np.ndarray]) -> np.ndarray:
        if key not in self._moments:
            self._moments[key] = (compute(),)
        return self._moments[key][0]


def _along_scales(
    model: MultinomialLogistic | OrderedLogistic | NegativeBinomial,
    start: Float[np.ndarray, "m q"] | None = None,
) -> Iterator[tuple[tuple[float], Mode]]:
    """Modes under every prior scale of the weights."""
    start = model.start() if start is None else start
    for scale in WEIGHT_SCALES:
        precision = np.full(model.design.shape[2], scale**-2)
        precision[0] = CONSTANT_SCALE**-2
        mode = newton.laplace(model, model.prior(precision), start)
        start = mode.theta
        yield (scale,), mode._replace(log_evidence=mode.log_evidence + model.log_constant)
