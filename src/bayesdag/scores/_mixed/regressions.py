"""Regressions of one node on parents of any kinds: lines, curves, by level, quadratic.

By the kind of the node: logistic or ordered logistic regressions, negative binomial ones, or
Gaussian ones. Every class of functions and every value of a hyperparameter is a component with a
proper density or mass.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.scores._mixed.components import SIMPLE, TABLE, Component, log_prior
from bayesdag.scores._mixed.features import MixedClass, MixedColumns, Scale
from bayesdag.scores._mixed.gaussian import PRIOR_SCALES, Regression
from bayesdag.scores._mixed.gaussian_regressions import GaussianRegressions
from bayesdag.scores._mixed.likelihoods import ONCE, Residuals
from bayesdag.scores._mixed.modes import ModeRegressions
from bayesdag.scores._mixed.newton import Mode

# Hyperparameters, families by their number, and their log evidence.
Fits = Iterator[tuple[tuple[float, ...], Int[np.ndarray, " r"], Float[np.ndarray, " r"]]]
_MOST_COLUMNS_BY_LEVEL = 40  # of a design with functions of their own in every configuration
_NUMBERS_AT_ONCE = 1_500_000  # in designs of regressions that are fitted together


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

    @cached_property
    def gaussian(self) -> GaussianRegressions:
        """Regressions of measurements."""
        return GaussianRegressions(self.columns)

    @cached_property
    def by_mode(self) -> ModeRegressions:
        """Regressions of levels and counts."""
        return ModeRegressions(self.columns)

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
                return self.gaussian.by_level(node, parents, scale, hyper[0], seen)
            return self.gaussian.additive(node, parents[None], scale, kind, hyper[0], seen)
        found = self.by_mode.different_rows(node, parents, seen)
        rows, weights = (np.flatnonzero(seen), ONCE) if found is None else found
        design = self.design(parents, scale, kind, rows)
        return self.by_mode.mode(node, design, hyper, rows, weights)

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
        design = self.design(parents, best.scale, best.kind, seen)
        return self.by_mode.residuals(node, design, best.hyper, seen)

    def labels(self, node: int) -> list[Component]:
        """All components that a family of the node may have, tables and networks, too."""
        if self.columns.group(node) == "continuous":
            hypers = [(t,) for t in PRIOR_SCALES]
        else:
            hypers = self.by_mode.hypers(node)
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
    ) -> Fits:
        """Hyperparameters, families, and their log evidence, in pieces."""
        every = np.arange(len(parents))
        if self.columns.group(node) != "continuous":
            yield from self._fitted_by_laplace(node, parents, scale, kind, seen)
        elif kind == MixedClass.BY_LEVEL:
            for t, k in product(PRIOR_SCALES, every):
                found = self.gaussian.by_level(node, parents[k], scale, t, seen).log_evidence.sum()
                yield (t,), every[k : k + 1], np.array([found])
        else:
            for t in PRIOR_SCALES:
                found = self.gaussian.additive(node, parents, scale, kind, t, seen).log_evidence
                yield (t,), every, found

    def _fitted_by_laplace(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        scale: Scale,
        kind: MixedClass,
        seen: Bool[np.ndarray, " n"],
    ) -> Fits:
        alike = [self.by_mode.different_rows(node, chosen, seen) for chosen in parents]
        for k, found in enumerate(alike):
            if found is not None:
                rows, weights = found
                design = self.design(parents[k], scale, kind, rows)[None]
                for hyper, mode in self.by_mode.laplace(node, design, rows, weights):
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
    ) -> Fits:
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
            for hyper, mode in self.by_mode.laplace(node, padded, seen):
                yield hyper, numbers[piece], mode.log_evidence

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
