"""Comparison of chains: R-hat, effective sizes, and chains that differ from all others.

R-hat and effective sizes are ArviZ's, of unweighted draws. R-hat averages over chains and may
overlook a single one, so each chain's probabilities are compared with the others', too.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.posterior import estimates, mixing
from bayesdag.posterior.libraries import special
from bayesdag.types import Weights

RHAT_LIMIT = 1.05
APART = 0.1  # smaller differences of a probability between chains do not matter
STANDARD_ERRORS = 4.0  # and larger ones need so many to count
FEWEST_EFFECTIVE = 10  # draws of a chain, below which its errors are unknown

MIXED, NOT_MIXED, STUCK = "mixed", "not mixed", "stuck at different values (not mixed)"
CONSTANT, UNKNOWN = "never changes", "not compared"


class Quantity(NamedTuple):
    """Something watched along the chains; NaN where a number does not exist.

    `kind` is "stat" (log joint, edge count), "order" (ancestors of a node) or "edge".
    """

    name: str
    kind: str
    rhat: float
    ess: float
    state: str


class Outlier(NamedTuple):
    """A chain whose probability of an edge differs from that of the other chains.

    `errors` is the difference in Monte-Carlo standard errors; chains count from 1.
    """

    edge: str
    chain: int
    probability: float
    others: float
    errors: float

    @property
    def words(self) -> str:
        """The difference in plain words."""
        return (
            f"chain {self.chain} gives {self.edge} the probability {self.probability:.2f}, the "
            f"others {self.others:.2f} ({self.errors:.0f} standard errors apart)"
        )


def compare(
    kind: str, names: list[str], values: Float[np.ndarray, "chain draw k"]
) -> list[Quantity]:
    """R-hat, effective size and state of every quantity of one kind."""
    num_chains, num_draws, k = values.shape
    rhat, size = np.full(k, np.nan), np.full(k, np.nan)
    varies = np.ptp(values, axis=(0, 1)) > 0
    if num_draws >= estimates.FEWEST_DRAWS:
        moving = (np.ptp(values, axis=1) > 0).any(axis=0)
        # Ranks make the size of a skewed statistic robust; an indicator has none to speak of.
        how = "mean" if kind == "edge" else "bulk"
        size[moving] = estimates.autocorrelated_size(values[:, :, moving], how)
        if num_chains > 1:
            rhat[moving] = _rhat(values[:, :, moving])
            rhat[varies & ~moving] = np.inf
    state = _state(rhat, varies, num_chains, num_draws)
    return [
        Quantity(name, kind, float(rhat[q]), float(size[q]), state[q])
        for q, name in enumerate(names)
    ]


def _state(
    rhat: Float[np.ndarray, " k"], varies: Bool[np.ndarray, " k"], num_chains: int, num_draws: int
) -> list[str]:
    limit = _limit(num_chains, num_draws, int(np.isfinite(rhat).sum()))
    state = np.where(rhat > limit, NOT_MIXED, MIXED).astype(object)
    state[np.isnan(rhat)] = UNKNOWN
    state[np.isinf(rhat)] = STUCK
    state[~varies] = CONSTANT
    return state.tolist()


def _limit(num_chains: int, num_draws: int, num_compared: int) -> float:
    """1.05, or what independent draws exceed in one of a hundred fits, if that is more.

    Short chains differ by chance: with m halves of n draws, n (R-hat² - 1) + 1 is the F
    ratio of a one-way analysis of variance. The level is shared among all that is compared.
    """
    half = num_draws // 2
    if num_compared == 0 or half < 2:
        return RHAT_LIMIT
    groups = 2 * num_chains
    ratio = special.fdtri(groups - 1, groups * (half - 1), 1 - 0.01 / num_compared)
    return max(RHAT_LIMIT, float(np.sqrt(1 + (ratio - 1) / half)))


def outliers(
    names: list[str], values: Float[np.ndarray, "chain draw k"], weights: Weights
) -> list[Outlier]:
    """Chains whose edge probabilities differ from the mean of the others, furthest first.

    A difference counts beyond 0.1 and 4 standard errors, or more where chance would exceed 4 in
    over one of a hundred fits: much is compared, or errors are themselves known from few
    effective draws only, so that they follow Student's distribution.
    """
    num_chains, num_draws = weights.shape
    if num_chains < 2 or num_draws < estimates.FEWEST_DRAWS or not names:
        return []
    own = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    probability = np.einsum("csk,cs->ck", values, own)
    others = (probability.sum(axis=0) - probability) / (num_chains - 1)
    suspects = np.flatnonzero((np.abs(probability - others) > APART).any(axis=0))
    size = _sizes_within(values[:, :, suspects], own)
    # If they did not differ, all chains would have the probability of all draws.
    pooled = probability[:, suspects].mean(axis=0)
    variance = (pooled * (1 - pooled))[None, :] / size
    of_others = (variance.sum(axis=0) - variance) / (num_chains - 1) ** 2
    difference = probability[:, suspects] - others[:, suspects]
    errors = np.abs(difference) / np.sqrt(variance + of_others)
    degrees = np.maximum(size.sum(axis=0) / 4 - 1, 1.0)
    limit = np.maximum(
        STANDARD_ERRORS, -special.stdtrit(degrees, 0.005 / (num_chains * len(names)))
    )
    counts = (errors > limit[None, :]) & (np.abs(difference) > APART) & (size >= FEWEST_EFFECTIVE)
    found = [
        Outlier(
            names[suspects[k]],
            int(c) + 1,
            float(probability[c, suspects[k]]),
            float(others[c, suspects[k]]),
            float(errors[c, k]),
        )
        for c, k in np.argwhere(counts)
    ]
    return sorted(found, key=lambda outlier: -outlier.errors)


def _sizes_within(
    values: Float[np.ndarray, "chain draw k"], own: Float[np.ndarray, "chain draw"]
) -> Float[np.ndarray, "chain k"]:
    """Effective draws of each chain by its weights and the autocorrelation within chains.

    The latter is averaged over chains. That of all draws would grow with the very difference
    that is looked for.
    """
    num_chains, num_draws, k = values.shape
    by_chain = np.full((num_chains, k), np.nan)
    for c in range(num_chains):
        moving = np.ptp(values[c], axis=0) > 0
        by_chain[c, moving] = estimates.autocorrelated_size(values[c : c + 1, :, moving])
    known = ~np.isnan(by_chain)
    times = np.where(known, 1 / np.minimum(by_chain, num_draws), 0.0).sum(axis=0)
    average = np.where(known.any(axis=0), known.sum(axis=0) / np.maximum(times, 1e-12), 1.0)
    kish = 1 / (own**2).sum(axis=1) / num_draws
    # A chain's own mean hides one draw's worth of its spread.
    return np.maximum((average[None, :] - 1) * kish[:, None], 1.0)


def _rhat(values: Float[np.ndarray, "chain draw k"]) -> Float[np.ndarray, " k"]:
    """Split R-hat; infinite where all halves stand still on different values."""
    if values.shape[2] == 0:
        return np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mixing.split_rhat(values)
