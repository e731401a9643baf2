"""Modes of regressions of levels and counts, found by Newton's method: Laplace's approximation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.scores._mixed import newton
from bayesdag.scores._mixed.features import MixedColumns
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
_ROWS_TO_START = 1000  # that say where a mode is, roughly
# Tables in which rows of a family are looked for that come again, and what has to be saved.
LEAST_ROWS_TO_MERGE, MOST_DIFFERENT = 1000, 0.5

LevelsOrCounts = MultinomialLogistic | OrderedLogistic | NegativeBinomial


@dataclass(frozen=True, eq=False)
class ModeRegressions:
    """Regressions of columns of levels and counts, by their modes.

    Attributes:
        columns: features of the data.
    """

    columns: MixedColumns

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
        design: Float[np.ndarray, "r p"],
        hyper: tuple[float, ...],
        seen: Bool[np.ndarray, " n"],
    ) -> Residuals:
        """Residuals of one regression at its mode."""
        model = self._likelihood(node, design[None], hyper, seen)
        mode = next(mode for _, mode in _along_scales(model, scales=hyper[:1]))
        return model.residuals(mode.theta[0])

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

    def different_rows(
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

    def hypers(self, node: int) -> list[tuple[float, ...]]:
        """All hyperparameters of a node, the scale of the weights first."""
        return [(s, *others) for others in self._other_hypers(node) for s in WEIGHT_SCALES]

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

    def _is_count(self, node: int) -> bool:
        return self.columns.group(node) == "count"


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
