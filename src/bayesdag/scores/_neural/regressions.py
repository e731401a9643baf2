"""Lines and sums of curves of a family: regressions, which cost little.

They are linear in their parameters, so that Laplace's approximation overlooks nothing and one fit
to all rows is their evidence: no folds are needed, and the rows are predicted by leaving out one.
"""

from math import log
from typing import NamedTuple

from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.runs.trees import map_leaves
from bayesdag.scores._neural import fold_fits, folds, function_classes, laplace, unexplained
from bayesdag.scores._neural import whitening as units
from bayesdag.scores._neural.control_flow import choose, stack
from bayesdag.scores._neural.fold_fits import FoldFits, HeldOut
from bayesdag.scores._neural.folds import Families, Folds, Rows
from bayesdag.scores._neural.linear_algebra import columns_first, diagonal_of, dot
from bayesdag.scores._neural.noise_forms import NoiseForm


class Regressions(NamedTuple):
    """What is known of families before a network is trained.

    Attributes:
        log_evidence: of lines and sums of curves, as in `Scored`.
        predicted: log density of the rows, each predicted from all others.
        approximate_gain: likewise, with sides of the medians of the parents.
        unexplained: nats that random hidden units explain of what the better class leaves.
        fit: the regressions themselves, as if of one fold; dimensions (family, fold, class).
    """

    log_evidence: Float[Array, "*b class form"]
    predicted: Float[Array, "*b class form"]
    approximate_gain: Float[Array, "*b d"]
    unexplained: Float[Array, "*b"]
    fit: FoldFits


def regressions(rows_in_folds: Folds, family: Families) -> Regressions:
    """Lines and sums of curves of one family, and what they leave."""
    xp, used = namespace(rows_in_folds.values), family.used
    knots = rows_in_folds.knots[family.members]
    x, y, weight = folds.all_rows(folds.rows_of(rows_in_folds, family))
    table = columns_first(function_classes.basis(x, knots, used))
    # Lines are fitted to the inputs alone, which costs less.
    lines, inputs = _lines((x, y, weight), used)
    curves = _curves((table, y, weight), knots, used)
    fits = stack([_filled_up(lines.fit, table.shape[1]), curves.fit])
    evidence = fits.log_marginal
    predicted = xp.stack([dot(weight, found.log_density) for found in (lines, curves)])
    best, form = xp.unravel_index(xp.argmax(evidence), evidence.shape)
    is_line = best == 0
    residuals = choose(is_line, lines.residual, curves.residual) * weight[:, None]
    plain, residual = residuals[:, NoiseForm.SYMMETRIC], residuals[:, form]
    basis = function_classes.basis_of(is_line, table, len(used))
    # What solves must wait for what solved before: see `linear_algebra.lower_inverse`.
    left = unexplained.log_bayes_factor(
        inputs + 0 * evidence[0, 0], basis, (plain, residual), weight, used
    )
    sides = (x > knots[:, knots.shape[1] // 2][None, :]) & (used > 0)[None, :]
    gain = fold_fits.approximate_gain(rows_in_folds.curves, residual, sides)
    left = xp.where(rows_in_folds.discrete[family.node] > 0, xp.inf, left)
    left = xp.where(used.any(), left, -xp.inf)  # without parents there is nothing to learn
    return Regressions(evidence, predicted, gain, left, map_leaves(lambda t: t[None], fits))


def _lines(rows: Rows, used: Array) -> tuple[HeldOut, Float[Array, "n k"]]:
    """The line through all rows, and their whitened inputs."""
    by = units.whitening(*rows, used)
    seen = units.whitened(by, *rows, used)
    fit = laplace.fit(function_classes.regress(seen, used), seen, used)
    return fold_fits.left_out(by, fit, seen.weight), seen.inputs


def _curves(rows: Rows, knots: Array, used: Array) -> HeldOut:
    """The sum of curves whose smoothness suits the rows best, at the price of the choice.

    The choice comes before the noise is described, which costs more.
    """
    (x, y, weight), k, xp = rows, len(used), namespace(used)
    members = function_classes.members_of_basis(used)[1]
    count = xp.maximum(weight.sum(), 1.0)
    centred = x[:, :k] - (weight @ x[:, :k])[None, :] / count
    spread = xp.sqrt((weight @ centred**2) / count)
    smoothing = function_classes.SMOOTHING
    sizes = xp.stack(
        [function_classes.sizes_of_curves(spread, knots, used, amount) for amount in smoothing]
    )
    by = units.scaling(x, y, weight, members, sizes[0])
    seen = units.scaled(by, x, y, weight, members)
    factors = sizes / sizes[:1]
    network, best = function_classes.regress_in_best_units(seen, members, factors)
    seen = seen._replace(inputs=seen.inputs / factors[best][None, :])
    by = by._replace(root=diagonal_of(sizes[best]), inverse=diagonal_of(1 / sizes[best]))
    fit = laplace.fit(network, seen, members, function_classes.features_of_scale(k))
    found = fold_fits.left_out(by, fit, seen.weight)
    log_marginal = found.fit.log_marginal - log(len(smoothing))
    return found._replace(fit=found.fit._replace(log_marginal=log_marginal))


def _filled_up(fits: FoldFits, q: int) -> FoldFits:
    """Regressions on the inputs as regressions on a basis of q members, which begins with them."""
    xp, k = namespace(fits.input_mean), fits.input_mean.shape[-1]
    missing = q - k

    def vector(leaf: Array) -> Array:  # the constant stays last
        gap = xp.zeros((*leaf.shape[:-1], missing), leaf.dtype)
        return xp.concatenate([leaf[..., :k], gap, leaf[..., k:]], axis=-1)

    def matrix(leaf: Array) -> Array:
        gap = xp.zeros((*leaf.shape[:-1], missing), leaf.dtype)
        wide = xp.concatenate([leaf[..., :k], gap, leaf[..., k:]], axis=-1)
        unit = xp.eye(missing, wide.shape[-1], k, leaf.dtype)
        unit = xp.broadcast_to(unit, (*leaf.shape[:-2], *unit.shape))
        return xp.concatenate([wide[..., :k, :], unit, wide[..., k:, :]], axis=-2)

    network = fits.networks
    return fits._replace(
        networks=network._replace(
            first=xp.zeros((*network.first.shape[:-2], q, 0), network.first.dtype),
            second=vector(network.second),
        ),
        noise=fits.noise._replace(log_scale_weights=vector(fits.noise.log_scale_weights)),
        last=matrix(fits.last),
        whitening=matrix(fits.whitening),
        input_mean=vector(fits.input_mean),
    )
