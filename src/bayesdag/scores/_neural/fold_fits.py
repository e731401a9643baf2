"""What is learned about a family in every fold, and what it is worth.

Functions are fitted to all folds but one. Laplace's approximation integrates them out for the
rows they were fitted to; the rows of the last fold are scored by their predictive density. A
function that fits noise pays in the first part and predicts badly in the second.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.scores._neural import laplace, whitening
from bayesdag.scores._neural.folds import Families, Folds
from bayesdag.scores._neural.laplace import Fit, Predicted
from bayesdag.scores._neural.linear_algebra import columns_first, dot
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.noise_forms import NoiseFits, NoiseForm
from bayesdag.scores._neural.surrogate import NUM_CURVES
from bayesdag.scores._neural.whitening import Whitening

_LEAST_SIDE = 0.02  # fraction of the rows for which a side of a hidden unit is taken seriously


class FoldFits(NamedTuple):
    """What is known of a network trained on all folds but one; one entry per fold.

    A line or a sum of curves is a network without hidden units that reads a basis.

    Attributes:
        networks: inputs in engine units, standardised target.
        log_posterior: of each network on the rows it was trained on.
        log_marginal: of the rows that each network was trained on, by form of the noise.
        noise: of its residuals, in engine units.
        centre: of the target.
        spread: of the target.
        last: curvature of the last layer, inputs whitened.
        whitening: Cholesky factor of the covariance of the inputs.
        input_mean: of the inputs.
    """

    networks: Network
    log_posterior: Float[Array, "*b f"]
    log_marginal: Float[Array, "*b f form"]
    noise: NoiseFits
    centre: Float[Array, "*b f"]
    spread: Float[Array, "*b f"]
    last: Float[Array, "*b f q q"]
    whitening: Float[Array, "*b f k k"]
    input_mean: Float[Array, "*b f k"]


class Scored(NamedTuple):
    """What is known of families after training; a leading dimension for each.

    Attributes:
        log_evidence: of all rows, by class of the function and form of the noise: mean over
            the folds of the log marginal likelihood and of what it predicts.
        predicted: log density of the rows by functions that have not seen them, likewise.
        approximate_gain: gain in nats of a linear regression of the residuals on curves of
            each variable, among all rows or on one side of a hidden unit: quick, and good
            enough to say which to try first.
        unexplained: nats that a Gaussian process gains over the better of line and sum of curves.
        num_folds: with networks of their own; the others have copies of the first one's.
        folds: the networks.
    """

    log_evidence: Float[Array, "*b class form"]
    predicted: Float[Array, "*b class form"]
    approximate_gain: Float[Array, "*b d"]
    unexplained: Float[Array, "*b"]
    num_folds: Float[Array, "*b"]
    folds: FoldFits


# The structure alone, to read recorded results with.
SCORED = Scored(0, 0, 0, 0, 0, FoldFits(Network(0, 0, 0), 0, 0, NoiseFits(0, 0, 0), 0, 0, 0, 0, 0))  # pyright: ignore


def no_networks(num_folds: int, k: int, h: int) -> FoldFits:
    """Fits of networks that were not trained: nothing learned, and of no evidence."""
    q, num_forms = h + k + 1, len(NoiseForm)

    def empty(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return np.zeros((num_folds, *shape), dtype)

    return FoldFits(
        networks=Network(empty(k, h), empty(h), empty(q)),
        log_posterior=empty() - np.float32(np.inf),
        log_marginal=empty(num_forms) - np.float32(np.inf),
        noise=NoiseFits(empty(num_forms), empty(num_forms, dtype=np.int32), empty(num_forms, q)),
        centre=empty(),
        spread=empty() + np.float32(1),
        last=empty(q, q),
        whitening=empty(k, k),
        input_mean=empty(k),
    )  # pyright: ignore


def nothing_better(folds: Folds, family: Families, width: int) -> Scored:
    """The result where networks that a family has were not trained again."""
    num_folds, _, d = folds.values.shape
    none = np.full((1, len(NoiseForm)), -np.inf, np.float32)
    zero, fits = np.zeros((), np.float32), no_networks(num_folds, len(family.used), width)
    return Scored(none, none, np.zeros(d, np.float32), zero, zero, fits)


class HeldOut(NamedTuple):
    """Functions of every fold, and what they make of the rows that they have not seen."""

    fit: FoldFits
    log_density: Float[Array, "*n form"]
    residual: Float[Array, "*n form"]


def held_out(by: Whitening, fit: Fit, test: TrainingRows, num_rows: Array) -> HeldOut:
    """Rows as a function sees them that was fitted to `num_rows` others."""
    return _judged(by, fit, laplace.predict(fit, test), num_rows)


def left_out(by: Whitening, fit: Fit, weight: Float[Array, " n"]) -> HeldOut:
    """Rows as a function sees them that was fitted to all of them but one."""
    return _judged(by, fit, laplace.leave_one_out(fit, weight), weight.sum())


def as_fitted(by: Whitening, fit: Fit, weight: Float[Array, " n"]) -> HeldOut:
    """Rows as a function sees them that was fitted to all of them: their leverage takes time."""
    return _judged(by, fit, laplace.as_fitted(fit), weight.sum())


def _judged(by: Whitening, fit: Fit, predicted: Predicted, num_rows: Array) -> HeldOut:
    density = predicted.log_density - namespace(by.spread).log(by.spread)
    return HeldOut(_kept(by, fit, num_rows), density, predicted.residual)


def by_row(found: HeldOut, *others: Array) -> tuple[Any, ...]:
    """Results of all folds, with one dimension for the rows."""
    parts = (found.log_density, found.residual, *others)
    density, residual, *rest = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in parts)
    return HeldOut(found.fit, density, residual), *rest


def _kept(by: Whitening, fit: Fit, num_rows: Array) -> FoldFits:
    """What is kept of a function, in engine units."""
    log_spread = namespace(by.spread).log(by.spread) * num_rows
    return FoldFits(
        networks=whitening.in_engine_units(by, fit.network),
        log_posterior=fit.log_posterior - log_spread,
        log_marginal=fit.log_marginal - log_spread,
        noise=whitening.noise_in_engine_units(by, fit),
        centre=by.centre,
        spread=by.spread,
        last=fit.last,
        whitening=by.root,
        input_mean=by.mean,
    )


def evidence_of_fold(found: HeldOut, weight: Array) -> Float[Array, " form"]:
    """Log evidence of all rows by the network of one fold: those it has seen, then the others."""
    return found.fit.log_marginal + dot(weight, found.log_density)


def evidence_of(found: HeldOut, weight: Array) -> tuple[Array, Array]:
    """Log evidence of all rows and log density of the unseen ones, by form of the noise."""
    predicted = dot(weight, found.log_density)
    log_marginal = found.fit.log_marginal
    return log_marginal.mean(axis=0) + predicted / log_marginal.shape[0], predicted


def approximate_gain(
    curves: Float[Array, "n c"], residual: Float[Array, " n"], active: Bool[Array, "n h"]
) -> Float[Array, " d"]:
    """What each variable could add to a function, by the residuals it leaves.

    A parent whose effect depends on the sign of another leaves nothing to see among all rows.
    Its effect shows on one side of a hidden unit, so that rows are also taken side by side:
    which of them is not known, so their gains are averaged as evidence is.
    """
    xp = namespace(residual)
    above = columns_first(active.astype(residual.dtype))
    by_side = above * residual[:, None]  # below a unit is what is left of all rows
    slopes = dot(xp.concatenate([residual[None, :], by_side.T]), curves)
    slopes = xp.concatenate([slopes, slopes[:1] - slopes[1:]])
    fractions = above.mean(axis=0)
    fractions = xp.concatenate([xp.ones_like(fractions[:1]), fractions, 1 - fractions])
    fractions = xp.maximum(fractions, _LEAST_SIDE)
    explained = 0.5 * (slopes**2).reshape(len(fractions), -1, NUM_CURVES).sum(axis=2)
    gains = explained / fractions[:, None]
    best = gains[1:].max(axis=0)
    by_side = best + xp.log(xp.exp(gains[1:] - best[None, :]).sum(axis=0))
    return xp.logaddexp(gains[0], by_side - log(len(fractions) - 1)) - log(2)
