"""Lines, sums of curves and Gaussian processes of a family: regressions, which cost little.

They are linear in their parameters, so that Laplace's approximation overlooks nothing and one fit
to all rows is their evidence: no folds are needed, and the rows are predicted by leaving out one.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.runs.trees import map_leaves
from bayesdag.scores._neural import (
    fold_fits,
    folds,
    function_classes,
    gaussian_process,
    laplace,
)
from bayesdag.scores._neural import whitening as units
from bayesdag.scores._neural.control_flow import choose
from bayesdag.scores._neural.fold_fits import FoldFits, HeldOut
from bayesdag.scores._neural.folds import Families, Folds, Rows
from bayesdag.scores._neural.laplace import Fit
from bayesdag.scores._neural.linear_algebra import columns_first, diagonal_of, dot, waiting
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.whitening import Whitening


class Regressions(NamedTuple):
    """What is known of families before a network is trained.

    Attributes:
        log_evidence: of lines, sums of curves and Gaussian processes, as in `Scored`.
        predicted: log density of the rows, each predicted from all others.
        approximate_gain: likewise, with sides of the medians of the parents.
        unexplained: nats that a Gaussian process gains over the better of line and sum of curves:
            where it gains none, a network does not, either.
    """

    log_evidence: Float[Array, "*b class form"]
    predicted: Float[Array, "*b class form"]
    approximate_gain: Float[Array, "*b d"]
    unexplained: Float[Array, "*b"]


class Fitted(NamedTuple):
    """The regressions of one family, whose inputs are of different number."""

    line: HeldOut
    curves: HeldOut
    process: HeldOut


def regressions(rows_in_folds: Folds, family: Families) -> Regressions:
    """The evidence of one family under every class, and what lines and curves leave."""
    xp, used = namespace(rows_in_folds.values), family.used
    knots = rows_in_folds.knots[family.members]
    x, y, weight = folds.all_rows(folds.rows_of(rows_in_folds, family))
    found = _fitted((x, y, weight), knots, used)
    evidence = xp.stack([one.fit.log_marginal for one in found])
    predicted = xp.stack([dot(weight, one.log_density) for one in found])
    best, form = xp.unravel_index(xp.argmax(evidence), evidence.shape)
    first, *others = (one.residual[:, form] for one in found)
    residual = weight * choose(best == 0, first, choose(best == 1, *others))
    sides = (x > knots[:, knots.shape[1] // 2][None, :]) & (used > 0)[None, :]
    gain = fold_fits.approximate_gain(rows_in_folds.curves, residual, sides)
    left = evidence[2].max() - evidence[:2].max()
    left = xp.where(rows_in_folds.discrete[family.node] > 0, xp.inf, left)
    left = xp.where(used.any(), left, -xp.inf)  # without parents there is nothing to learn
    return Regressions(evidence, predicted, gain, left)


def fits(rows_in_folds: Folds, family: Families) -> tuple[FoldFits, ...]:
    """The regressions of one family themselves, as if of one fold, class by class."""
    rows = folds.all_rows(folds.rows_of(rows_in_folds, family))
    found = _fitted(rows, rows_in_folds.knots[family.members], family.used)
    return tuple(map_leaves(lambda leaf: leaf[None], one.fit) for one in found)


def _fitted(rows: Rows, knots: Array, used: Array) -> Fitted:
    x, y, weight = rows
    table = columns_first(function_classes.basis(x, knots, used))
    # Lines are fitted to the inputs alone, which costs less.
    line, inputs = _lines(rows, used)
    table = waiting(table, line.fit.log_marginal)
    curves, sizes = _curves((table, y, weight), knots, used)
    table = waiting(table, curves.fit.log_marginal)
    process = _gaussian_process((table, y, weight), inputs, sizes, curves, used)
    return Fitted(line, curves, process)


def _lines(rows: Rows, used: Array) -> tuple[HeldOut, Float[Array, "n k"]]:
    """The line through all rows, and their whitened inputs."""
    by = units.whitening(*rows, used)
    seen = units.whitened(by, *rows, used)
    fit = laplace.fit(function_classes.regress(seen, used), seen, used)
    return fold_fits.left_out(by, fit, seen.weight), seen.inputs


def _curves(rows: Rows, knots: Array, used: Array) -> tuple[HeldOut, Float[Array, " q"]]:
    """The sum of curves whose smoothness suits the rows best, at the price of the choice.

    The choice comes before the noise is described, which costs more. The units of the basis that
    go with it are the last result.
    """
    (x, _, weight), k, xp = rows, len(used), namespace(used)
    members = function_classes.members_of_basis(used)[1]
    count = xp.maximum(weight.sum(), 1.0)
    centred = x[:, :k] - (weight @ x[:, :k])[None, :] / count
    spread = xp.sqrt((weight @ centred**2) / count)
    smoothing = function_classes.SMOOTHING
    sizes = xp.stack(
        [function_classes.sizes_of_curves(spread, knots, used, amount) for amount in smoothing]
    )
    by, seen = _scaled(rows, members, sizes[0])
    found = function_classes.regress_in_best_units(seen, members, sizes / sizes[:1])
    by, fit = _in_best_units(by, seen, members, sizes, found, function_classes.features_of_scale(k))
    return fold_fits.left_out(by, fit, weight), sizes[found[1]]


def _gaussian_process(
    rows: Rows,
    inputs: Float[Array, "n k"],
    sizes: Float[Array, " q"],
    curves: HeldOut,
    used: Array,
) -> HeldOut:
    """The Gaussian process beside a sum of curves whose size suits the rows best.

    Args:
        inputs: whitened.
        sizes: units of the basis of the sum of curves.
        curves: the sum of curves itself, whose residuals say how to weigh the rows.
    """
    (table, y, weight), k, xp = rows, len(used), namespace(used)
    wide = columns_first(xp.concatenate([table, gaussian_process.units(inputs, used)], axis=1))
    members = gaussian_process.members(function_classes.members_of_basis(used)[1], used)
    options = xp.stack(
        [gaussian_process.sizes(sizes, members, size) for size in gaussian_process.AMPLITUDES]
    )
    by, seen = _scaled((wide, y, weight), members, options[0])
    residual = curves.residual[:, 0] * (curves.fit.noise.scale[0] / by.spread)
    found = function_classes.regress_beside(seen, members, options / options[:1], residual)
    scale = np.append(function_classes.features_of_scale(k)[:-1], wide.shape[1])
    by, fit = _in_best_units(by, seen, members, options, found, scale)
    return fold_fits.as_fitted(by, fit, weight)


def _scaled(rows: Rows, members: Array, size: Array) -> tuple[Whitening, TrainingRows]:
    by = units.scaling(*rows, members, size)
    return by, units.scaled(by, *rows, members)


def _in_best_units(
    by: Whitening,
    seen: TrainingRows,
    members: Array,
    sizes: Float[Array, "o q"],
    found: tuple[Network, Int[Array, ""], Float[Array, ""]],
    scale: Int[np.ndarray, " c"],
) -> tuple[Whitening, Fit]:
    """A regression in the units of most evidence, averaged over all of them."""
    network, best, choice = found
    factor = sizes[best] / sizes[0]
    by = by._replace(root=diagonal_of(sizes[best]), inverse=diagonal_of(1 / sizes[best]))
    own = seen._replace(inputs=seen.inputs / factor[None, :])
    fit = laplace.fit(network, own, members, scale)
    return by, fit._replace(log_marginal=fit.log_marginal + choice)
