"""Estimates from weighted draws: means, and their Monte-Carlo errors.

Values have leading dimensions (chain, draw); weights sum to 1 over both.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.posterior import mixing
from bayesdag.posterior.arguments import check_interval_probability
from bayesdag.posterior.libraries import arviz_statistics
from bayesdag.types import Array, Draws, Weights

Values = Shaped[np.ndarray, "chain draw *rest"]
BLOCK = 64  # a block of floats fits the cache
FEWEST_DRAWS = 4  # a chain is split in two, and a half needs a variance


class Estimate(NamedTuple):
    """A posterior mean and its Monte-Carlo standard error (None: not asked for)."""

    value: Any
    error: Any = None


class Distinct(NamedTuple):
    """The different graphs among the draws, most probable first.

    `index[c, s]` is the place of draw s of chain c among them.
    """

    graphs: Int8[np.ndarray, "u d d"]
    mass: Float[np.ndarray, " u"]
    index: Shaped[np.ndarray, "chain draw"]  # pyright: ignore[reportIncompatibleMethodOverride]


def mean(values: Values, weights: Weights) -> Float[np.ndarray, "*rest"]:
    """Weighted mean over chains and draws."""
    flat, mass = values.reshape(weights.size, -1), weights.reshape(-1)
    if mass.size and np.ptp(mass) == 0 and _is_indicator(flat):
        return (mass[0] * _counts(flat)).reshape(values.shape[2:])
    total = np.zeros(flat.shape[1])
    # Blocks of floats: numpy multiplies integers slowly, and all at once they need 8 d² bytes
    # per draw.
    for start in range(0, len(flat), BLOCK):
        block = slice(start, start + BLOCK)
        total += mass[block] @ flat[block].astype(float)
    return total.reshape(values.shape[2:])


def _is_indicator(values: Shaped[np.ndarray, "s k"]) -> bool:
    """Whether these are truth values, or graphs."""
    if values.dtype == bool:
        return True
    if values.dtype != np.int8 or not values.size:
        return False
    return bool(values.min() >= 0 and values.max() <= 1)


def _counts(indicator: Shaped[np.ndarray, "s k"]) -> Int[np.ndarray, " k"]:
    """How often each is 1; so many at a time that a byte holds their sum, the fastest one."""
    total, most = np.zeros(indicator.shape[1], dtype=int), np.iinfo(np.int8).max
    for start in range(0, len(indicator), most):
        total += indicator[start : start + most].view(np.int8).sum(axis=0, dtype=np.int8)
    return total


def probability(indicator: Values, weights: Weights, with_error: bool = False) -> Estimate:
    """Probability of what an indicator marks.

    Its error is the standard deviation of a Beta distribution that has seen as many
    independent draws as the effective ones: like sd/√ESS, but never 0, because what did not
    happen in a hundred draws may still have a probability of a percent.
    """
    value = np.clip(mean(indicator, weights), 0.0, 1.0)  # sums of weights round
    if not with_error:
        return Estimate(value)
    size = effective_size(indicator, weights)
    smooth = (value * size + 1) / (size + 2)
    return Estimate(value, np.sqrt(smooth * (1 - smooth) / (size + 3)))


def mean_error(values: Values, weights: Weights) -> Float[np.ndarray, "*rest"]:
    """Monte-Carlo standard error of the weighted mean: sd/√ESS."""
    variance = mean((values - mean(values, weights)) ** 2, weights)
    return np.asarray(np.sqrt(variance / effective_size(values, weights)))


def kish_ess(weights: Float[Array, "..."], axis: int | None = None) -> Float[Array, "..."] | float:
    """Kish's effective sample size of weights that sum to 1: their number when all are equal.

    Args:
        weights: of any shape.
        axis: along which they sum to 1; None: all together.
    """
    return 1 / (weights**2).sum(axis=axis)


def effective_size(values: Values, weights: Weights) -> Float[np.ndarray, "*rest"]:
    """Number of independent draws that would know the mean of `values` as well.

    The draws' autocorrelation (unweighted) and the weights both lower it.
    A single run with unequal weights is a list of particles or of graphs, whose order means
    nothing: there the weights alone count. What never varies counts as uncorrelated.
    """
    num_chains, num_draws = weights.shape
    flat = values.reshape(num_chains, num_draws, -1).astype(float)
    size = np.full(flat.shape[2], float(weights.size))
    ordered = num_chains > 1 or np.ptp(weights) <= 1e-12
    if ordered and num_draws >= FEWEST_DRAWS:
        varies = np.ptp(flat, axis=(0, 1)) > 0
        size[varies] = np.minimum(autocorrelated_size(flat[:, :, varies]), size[varies])
    return (size * kish_ess(weights) / weights.size).reshape(values.shape[2:])


def autocorrelated_size(
    values: Float[np.ndarray, "chain draw k"], how: str = "mean"
) -> Float[np.ndarray, " k"]:
    """Effective sample size of quantities that vary: for the mean, or the bulk."""
    if values.shape[2] == 0:
        return np.zeros(0)
    return mixing.effective_sizes(values, of_ranks=how == "bulk")


def highest_density_interval(
    values: Float[np.ndarray, "chain draw"], weights: Weights, prob: float
) -> tuple[float, float]:
    """Shortest interval that holds `prob` of the weight (ArviZ).

    Weighted draws are first turned into as many equally weighted ones, their quantiles.
    """
    check_interval_probability("prob", prob)
    flat, mass = values.reshape(-1), weights.reshape(-1)
    if np.ptp(mass) > 1e-12:
        order = np.argsort(flat, kind="stable")
        levels = (np.arange(4 * flat.size) + 0.5) / (4 * flat.size)
        below = np.searchsorted(np.cumsum(mass[order]), levels)
        flat = flat[order][np.minimum(below, flat.size - 1)]
    low, high = np.asarray(arviz_statistics().hdi(flat, prob=prob, axis=0))
    return float(low), float(high)


def distinct(graphs: Draws, weights: Weights) -> Distinct:
    """The different graphs with their mass; equal masses keep the order of first sight."""
    different, index = graph_facts.unique_graphs(graphs)
    mass = np.bincount(index.reshape(-1), weights.reshape(-1), minlength=len(different))
    first = np.full(len(different), index.size)
    np.minimum.at(first, index.reshape(-1), np.arange(index.size))
    order = np.lexsort((first, -np.round(mass, 12)))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Distinct(different[order], np.minimum(mass[order], 1.0), place[index])
