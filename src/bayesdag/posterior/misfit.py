"""Misfit: how much better the noise of a variable could be described, in nats per row.

Every residual is turned into its probability u under the stated noise (the probability integral
transform), which is uniform when the model is right and independent of every non-descendant.
A flexible density of u on [0, 1] (Neyman's smooth alternative: an exponential family in Legendre
polynomials) is fitted to four fifths of the rows and scored on the rest, in turn. What it gains
in held-out log likelihood over the stated, uniform density is the misfit. Nothing is gained
from chance: on data of the model the expectation is below zero. What u depends on is measured
likewise, by a density of its ranks given another variable.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.polynomial.legendre import leggauss

NUM_FOLDS = 5
SHAPE_ORDER = 6  # location, spread, skewness, tails, and two more for separate peaks
NUM_GROUPS = 8  # of rows with similar values of another variable
TREND_ORDER = 3  # in that variable: straight, bent, and bent twice
DEPENDENT_ORDER = 2  # of u: its location and its spread
NUM_STEPS = 12
LONGEST_STEP = 1.0
# Gauss-Legendre quadrature on [0, 1].
NODES, NODE_WEIGHTS = ((part + shift) / 2 for part, shift in zip(leggauss(40), (1, 0), strict=True))

Uniforms = Float[np.ndarray, "s n"]
Folds = Int[np.ndarray, " n"]


class DensityGain(NamedTuple):
    """Held-out log likelihood gained, in nats per row, and its standard error."""

    value: float
    error: float


class Reasons(NamedTuple):
    """Candidate explanations of residuals: the values of d variables, then their residuals.

    Attributes:
        groups: number of the group of similar values that a row is in.
        trends: polynomials of that number.
    """

    groups: Int[np.ndarray, "s n k"]
    trends: Float[np.ndarray, "s n k m"]


class Dependence(NamedTuple):
    """Dependence of residuals on another variable.

    Attributes:
        gain: nats per row, in draws in which that variable is no descendant (0 in the others).
        suspect: its number.
        on_residual: whether its residuals explain more than its values.
        spread: whether it is the spread of the residuals that depends on it, not their mean.
    """

    gain: DensityGain
    suspect: int
    on_residual: bool
    spread: bool


def shape_gain(u: Uniforms, folds: Folds) -> DensityGain:
    """Gain of another noise density, the same for all rows; averaged over draws."""
    everywhere = np.ones((NUM_FOLDS, len(u)), dtype=bool)
    bins = np.zeros((NUM_FOLDS, *u.shape), dtype=int)
    return _cross_fitted(legendre(u, SHAPE_ORDER), bins, np.ones((1, 1)), folds, everywhere)


def dependence(
    u: Uniforms,
    reasons: Reasons,
    allowed: Bool[np.ndarray, "s d"],
    folds: Folds,
    seen: Int[np.ndarray, " rows"],
) -> Dependence | None:
    """Gain of the most informative non-descendant; averaged over draws.

    Residuals count by their ranks: a wrong shape of the noise is the same in all rows, is
    counted by `shape_gain`, and must not pass for dependence. The suspect is chosen anew on
    the rows that are fitted in each fold: choosing costs nothing there.

    Args:
        reasons: what the residuals may depend on.
        allowed: whether a variable is no descendant, per draw.
        seen: the rows that count.
    """
    if not allowed.any():
        return None
    twice = np.concatenate([allowed, allowed], axis=1)
    phi = legendre(_uniform_ranks(u, seen), DEPENDENT_ORDER)
    products = _products(phi, reasons.trends, folds, seen)
    whole = products.sum(axis=0)
    chosen = _strength(whole - products, twice).argmax(axis=1)
    suspect = int(_strength(whole[None], twice)[0].argmax())
    by_order = (whole[twice[:, suspect], :, suspect] ** 2).sum(axis=(0, 2))
    # A draw in which the chosen variable is a descendant claims nothing about it.
    bins = np.stack([reasons.groups[:, seen, k] for k in chosen])
    gain = _cross_fitted(phi[:, :, seen], bins, TREND, folds[seen], twice[:, chosen].T)
    number, on_residual = suspect % allowed.shape[1], suspect >= allowed.shape[1]
    return Dependence(gain, number, on_residual, bool(by_order[1] > by_order[0]))


def reasons_of(x: Float[np.ndarray, "n d"], u: Float[np.ndarray, "s n d"]) -> Reasons:
    """Groups of rows with similar values, and with similar residuals, of every variable.

    Both are needed. Values show what a function misses; the residuals of a cause show a
    hidden common cause, which the values of two causes in one another's shadow would not.
    """
    inner = np.arange(1, NUM_GROUPS) / NUM_GROUPS
    columns: list[np.ndarray] = list(x.T)
    by_value = [np.searchsorted(np.quantile(column, inner), column) for column in columns]
    same = np.broadcast_to(np.stack(by_value, axis=1).astype(np.int8), u.shape)
    every_row = np.arange(int(u.shape[1]))
    by_residual = _uniform_ranks(u, every_row) * NUM_GROUPS
    groups = np.concatenate([same, by_residual.astype(np.int8)], axis=2)
    return Reasons(groups, TREND.astype(np.float32)[groups])


def folds_of(num_rows: int) -> Folds:
    """A fold for every row of a shuffled table: one block after the other."""
    return np.arange(num_rows) * NUM_FOLDS // max(num_rows, 1)


def _uniform_ranks(
    u: Float[np.ndarray, "s n ..."], seen: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "s n ..."]:
    """Ranks among the rows that count, in (0, 1); ½ elsewhere."""
    ranks = np.argsort(np.argsort(u[:, seen], axis=1), axis=1)
    uniform = np.full_like(u, 0.5)
    uniform[:, seen] = (ranks + 0.5) / max(len(seen), 1)
    return uniform


def legendre(u: np.ndarray, order: int) -> np.ndarray:
    """Polynomials of degree 1 to `order`, orthonormal on [0, 1], in a new first dimension."""
    x = 2 * u - 1
    values = [np.ones_like(x), x]
    for k in range(1, order):
        values.append(((2 * k + 1) * x * values[k] - k * values[k - 1]) / (k + 1))
    return np.stack([(2 * k + 1) ** 0.5 * values[k] for k in range(1, order + 1)])


TREND = legendre((np.arange(NUM_GROUPS) + 0.5) / NUM_GROUPS, TREND_ORDER).T


@cache
def _at_nodes(order: int) -> Float[np.ndarray, "a g"]:
    """The polynomials at the nodes of the quadrature, which every step of every fit needs."""
    return legendre(NODES, order)


@cache
def _products_at_nodes(order: int) -> Float[np.ndarray, "g aa"]:
    """Their products in pairs."""
    basis = _at_nodes(order).T
    return (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1)


def _products(
    phi: Float[np.ndarray, "a s n"],
    trends: Float[np.ndarray, "s n k m"],
    folds: Folds,
    seen: Int[np.ndarray, " rows"],
) -> Float[np.ndarray, "f s a k m"]:
    """Sums over the rows of each fold of phi_a(u) psi_m(x_k)."""
    draws, num_rows, k, orders = trends.shape
    counted = np.zeros(num_rows, dtype=phi.dtype)
    counted[seen] = 1
    left, right = (phi * counted).swapaxes(0, 1), trends.reshape(draws, num_rows, k * orders)
    # Folds are blocks, so that no row is copied.
    ends = np.searchsorted(folds, np.arange(NUM_FOLDS + 1))
    blocks = [slice(*ends[f : f + 2]) for f in range(NUM_FOLDS)]
    sums = np.stack([left[:, :, block] @ right[:, block] for block in blocks])
    return sums.reshape(NUM_FOLDS, draws, len(phi), k, orders)


def _strength(products: np.ndarray, allowed: np.ndarray) -> Float[np.ndarray, "f k"]:
    """Squared scores of all trends, averaged over draws: what a fit is about to gain."""
    return ((products**2).sum(axis=(2, 4)) * allowed[None]).mean(axis=1)


def _cross_fitted(
    phi: Float[np.ndarray, "a s n"],
    bins: Int[np.ndarray, "f s n"],
    psi: Float[np.ndarray, "v m"],
    folds: Folds,
    counts: Bool[np.ndarray, "f s"],
) -> DensityGain:
    """Held-out gain of the density exp(Σ θ_am phi_a(u) psi_m(bin)) / Z(bin)."""
    _, num_draws, num_rows = map(int, phi.shape)
    by_row, by_draw = np.zeros(num_rows), np.zeros(num_draws)
    for f in range(NUM_FOLDS):
        train, test = np.flatnonzero(folds != f), np.flatnonzero(folds == f)
        inside = np.eye(len(psi), dtype=phi.dtype)[bins[f][:, train]]
        sums = phi[:, :, train].swapaxes(0, 1) @ inside
        tilt, log_norm = _fit_tilt(sums.swapaxes(1, 2), inside.sum(axis=1), psi)
        rows = np.arange(num_draws).reshape(-1, 1)
        place, held_out = (rows, bins[f][:, test]), phi[:, :, test]
        gain = sum(tilt[..., a][place] * held_out[a] for a in range(len(phi)))
        gain = (gain - log_norm[place]) * counts[f][:, None]
        by_row[test] = gain.mean(axis=0)
        by_draw += gain.sum(axis=1) / num_rows
    variance = by_row.var() / num_rows + by_draw.var() / num_draws
    return DensityGain(float(by_row.mean()), float(np.sqrt(variance)))


def _fit_tilt(
    sums: Float[np.ndarray, "s v a"],
    counts: Float[np.ndarray, "s v"],
    psi: Float[np.ndarray, "v m"],
) -> tuple[Float[np.ndarray, "s v a"], Float[np.ndarray, "s v"]]:
    """Exponents per group and log normalisers, by Newton's method under a Gaussian prior.

    The prior keeps few rows from being described too closely, high degrees above all.
    """
    orders, trends = sums.shape[2], psi.shape[1]
    by_order, by_trend = ([k * k for k in range(1, n + 1)] for n in (orders, trends))
    precision = np.outer(by_order, by_trend).reshape(-1)
    theta = np.zeros((len(sums), orders * trends))
    for _ in range(NUM_STEPS):
        slope, curve = _derivatives(theta, sums, counts, psi)
        slope, curve = slope - precision * theta, curve + np.diag(precision)
        step = np.linalg.solve(curve, slope[..., None])[..., 0]
        length = np.linalg.norm(step, axis=1, keepdims=True)
        theta = theta + step * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-12))
        if length.max() < 1e-3:
            break
    exponent, log_norm, _ = _densities(theta, orders, psi)
    return exponent, log_norm


def _derivatives(
    theta: np.ndarray, sums: np.ndarray, counts: np.ndarray, psi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and negative Hessian of the log likelihood in θ."""
    size, orders = len(theta), sums.shape[2]
    fraction = _densities(theta, orders, psi)[2]
    basis = _at_nodes(orders).T
    mean = fraction @ basis
    second = (fraction @ _products_at_nodes(orders)).reshape(*mean.shape, orders)
    covariance = second - mean[..., :, None] * mean[..., None, :]
    slope = (sums - counts[..., None] * mean).transpose(0, 2, 1) @ psi
    squares = (psi[:, :, None] * psi[:, None, :]).reshape(len(psi), -1)
    weighed = (covariance * counts[..., None, None]).reshape(size, len(psi), -1)
    curve = weighed.transpose(0, 2, 1) @ squares
    curve = curve.reshape(size, orders, orders, psi.shape[1], -1).transpose(0, 1, 3, 2, 4)
    return slope.reshape(size, -1), curve.reshape(size, theta.shape[1], -1)


def _densities(
    theta: np.ndarray, orders: int, psi: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exponents (s, v, a), log normalisers (s, v) and probabilities of the nodes (s, v, g)."""
    exponents = psi @ theta.reshape(len(theta), orders, -1).swapaxes(1, 2)
    height = exponents @ _at_nodes(orders)
    largest = height.max(axis=-1, keepdims=True)
    mass = NODE_WEIGHTS * np.exp(height - largest)
    total = mass.sum(axis=-1, keepdims=True)
    return exponents, (largest + np.log(total))[..., 0], mass / total
