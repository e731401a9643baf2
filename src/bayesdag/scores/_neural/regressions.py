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
from bayesdag.scores._neural.linear_algebra import columns_first, diagonal_of, dot, waiting


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
    return Fitted(line, curves, _gaussian_process((table, y, weight), inputs, sizes, used))


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
    return _in_best_units(rows, members, sizes, function_classes.features_of_scale(k))


def _gaussian_process(
    rows: Rows, inputs: Float[Array, "n k"], sizes: Float[Array, " q"], used: Array
) -> HeldOut:
    """The Gaussian process beside a sum of curves whose size suits the rows best.

    Args:
        inputs: whitened.
        sizes: units of the basis of the sum of curves.
    """
    (table, y, weight), k, xp = rows, len(used), namespace(used)
    wide = columns_first(xp.concatenate([table, gaussian_process.units(inputs, used)], axis=1))
    members = gaussian_process.members(function_classes.members_of_basis(used)[1], used)
    options = xp.stack(
        [gaussian_process.sizes(sizes, members, size) for size in gaussian_process.AMPLITUDES]
    )
    scale = np.append(function_classes.features_of_scale(k)[:-1], wide.shape[1])
    return _in_best_units((wide, y, weight), members, options, scale)[0]


def _in_best_units(
    rows: Rows, members: Array, sizes: Float[Array, "o q"], scale: Int[np.ndarray, " c"]
) -> tuple[HeldOut, Float[Array, " q"]]:
    """A regression in the units of most evidence, averaged over all of them, and those units."""
    by = units.scaling(*rows, members, sizes[0])
    seen = units.scaled(by, *rows, members)
    factors = sizes / sizes[:1]
    network, best, choice = function_classes.regress_in_best_units(seen, members, factors)
    seen = seen._replace(inputs=seen.inputs / factors[best][None, :])
    by = by._replace(root=diagonal_of(sizes[best]), inverse=diagonal_of(1 / sizes[best]))
    fit = laplace.fit(network, seen, members, scale)
    found = fold_fits.left_out(by, fit, seen.weight)
    averaged = found.fit._replace(log_marginal=found.fit.log_marginal + choice)
    return found._replace(fit=averaged), sizes[best]
