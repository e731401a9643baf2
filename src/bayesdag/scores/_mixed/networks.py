"""Networks of families of which lines, curves and products leave something unexplained.

Hidden units are trained on one half of the rows, T, at most a thousand, and the others count:

    F(y_T) N(all of y) / N(y_T),

with N the evidence of the output layer given the units, and F that of the simpler functions. This
is a density as well: what the units are depends on y_T alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.scores._mixed import gaussian, hidden_units
from bayesdag.scores._mixed.components import Component
from bayesdag.scores._mixed.features import MixedClass, MixedColumns, Scale
from bayesdag.scores._mixed.gaussian import PRIOR_SCALES, Regression
from bayesdag.scores._mixed.hidden_units import NetworkTask
from bayesdag.scores._mixed.newton import Mode
from bayesdag.scores._mixed.regressions import MixedRegressions

MOST_TRAINED = 1000  # rows that are enough for a few hidden units


@dataclass(frozen=True, eq=False)
class NetworkFits:
    """Networks of the families of one data set, each trained once.

    Attributes:
        regressions: the simpler functions.
    """

    regressions: MixedRegressions
    _units: dict[tuple, np.ndarray] = field(default_factory=dict, repr=False)

    def fitted(
        self,
        node: int,
        parents: Bool[np.ndarray, "m d"],
        best: list[Component],
        seen: Bool[np.ndarray, " n"],
    ) -> Iterator[tuple[Component, int, float]]:
        """Networks of those families of which simpler functions leave something unexplained.

        Args:
            best: the best of the simpler functions of each family.
            seen: rows that count.
        """
        trained = self._trained(seen)
        if trained.sum() < hidden_units.LEAST_ROWS:
            return
        has_number = (parents & self.columns.is_number).any(axis=1)
        for k in np.flatnonzero(has_number).tolist():
            if self._leaves_something(node, parents[k], best[k], seen):
                for hyper, value in self._log_evidence(node, parents[k], best[k].scale, seen):
                    yield Component(best[k].scale, MixedClass.NETWORK, hyper), k, value

    @property
    def columns(self) -> MixedColumns:
        """Features of the data."""
        return self.regressions.columns

    @cached_property
    def _halves(self) -> Bool[np.ndarray, " n"]:
        """A random half of the rows."""
        n = len(self.columns.codes)
        return np.random.default_rng(0).permutation(n) < n // 2

    def _trained(self, seen: Bool[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Rows that hidden units are trained on."""
        trained = seen & self._halves
        trained[np.flatnonzero(trained)[MOST_TRAINED:]] = False
        return trained

    def _leaves_something(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        best: Component,
        seen: Bool[np.ndarray, " n"],
    ) -> bool:
        """Whether there is a pattern in the residuals of the best of the simpler functions."""
        regressions = self.regressions
        kinds = [MixedClass.CURVES]
        kinds += [MixedClass.BY_LEVEL] * (
            MixedClass.BY_LEVEL in regressions.classes(node, parents, False)
        )
        explained = [regressions.design(parents, best.scale, kind, seen) for kind in kinds]
        explained.append(self.columns.products(best.scale, parents, seen))
        left, deviation = regressions.residuals(node, parents, best, seen)
        return hidden_units.is_unexplained(
            np.random.default_rng(0),
            np.concatenate(explained, axis=1),
            regressions.design(parents, best.scale, MixedClass.LINES, seen),
            left,
            deviation,
        )

    def _log_evidence(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        seen: Bool[np.ndarray, " n"],
    ) -> Iterator[tuple[tuple[float, ...], float]]:
        """Of a network, by hyperparameter: what was trained on counts as simple functions."""
        trained = self._trained(seen)
        simple = self.regressions.log_evidence(node, parents, trained)
        slopes = [self.regressions.log_slope(node, scale, rows) for rows in (seen, trained)]
        units = self._units_trained_on(node, parents, scale, trained)
        after, before = (
            self._of_output(node, parents, scale, units, rows) for rows in (seen, trained)
        )
        for (hyper, whole), (_, half) in zip(after, before, strict=True):
            yield hyper, simple + whole - half + slopes[0] - slopes[1]

    def units(
        self, node: int, parents: Bool[np.ndarray, " d"], scale: Scale
    ) -> Float[np.ndarray, "p h"]:
        """Weights into the hidden units of a family, on the features of its lines."""
        trained = self._trained(self.columns.observed[:, node])
        return self._units_trained_on(node, parents, scale, trained)

    def _units_trained_on(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        trained: Bool[np.ndarray, " n"],
    ) -> Float[np.ndarray, "p h"]:
        key = (node, parents.tobytes(), scale, trained.tobytes())
        if key not in self._units:
            inputs = self.regressions.design(parents, scale, MixedClass.LINES, trained)
            is_level = bool(self.columns.is_level[node])
            task = NetworkTask(inputs, self.regressions.targets(node, scale, trained), is_level)
            self._units[key] = hidden_units.train(np.random.default_rng(0), task)
        return self._units[key]

    def design(
        self,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        units: Float[np.ndarray, "p h"],
        seen: Bool[np.ndarray, " n"],
    ) -> Float[np.ndarray, "r q"]:
        """Lines, and what the hidden units say."""
        inputs = self.regressions.design(parents, scale, MixedClass.LINES, seen)
        return np.concatenate([inputs, hidden_units.activations(inputs, units)], axis=1)

    def modes(
        self, node: int, parents: Bool[np.ndarray, " d"], component: Component
    ) -> Mode | Regression:
        """The posterior of the output layer."""
        scale, _, hyper = component
        seen = self.columns.observed[:, node]
        design = self.design(parents, scale, self.units(node, parents, scale), seen)
        if self.columns.group(node) == "continuous":
            return self._gaussian_output(node, parents, scale, hyper[0], design, seen)
        return self.regressions.by_mode.mode(node, design, hyper, seen)

    def _of_output(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        units: Float[np.ndarray, "p h"],
        seen: Bool[np.ndarray, " n"],
    ) -> list[tuple[tuple[float, ...], float]]:
        """Log evidence of the output layer in some rows, by hyperparameter."""
        design = self.design(parents, scale, units, seen)
        if self.columns.group(node) != "continuous":
            fits = self.regressions.by_mode.laplace(node, design[None], seen)
            return [(hyper, float(mode.log_evidence[0])) for hyper, mode in fits]
        found = []
        for t in PRIOR_SCALES:
            output = self._gaussian_output(node, parents, scale, t, design, seen)
            found.append(((t,), float(output.log_evidence[0])))
        return found

    def _gaussian_output(
        self,
        node: int,
        parents: Bool[np.ndarray, " d"],
        scale: Scale,
        t: float,
        design: Float[np.ndarray, "r q"],
        seen: Bool[np.ndarray, " n"],
    ) -> Regression:
        target = self.regressions.targets(node, scale, seen)[:, 0]
        return gaussian.regress(
            (design.T @ design)[None],
            (design.T @ target)[None],
            np.array([target @ target]),
            np.array([float(len(design))]),
            np.array([int(parents.sum())]),
            t,
        )
