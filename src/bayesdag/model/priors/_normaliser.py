"""Penalties by in-degree, and the total weight of all graphs under them."""

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesdag.types import Components


def log_normaliser(
    penalty: Float[np.ndarray, "c d"], order_modular: bool, num_contexts: int = 0
) -> Float[np.ndarray, " c"]:
    """log Σ exp(Σ_i penalty[in-degree of i]) over (order, DAG) pairs, or over DAGs.

    Contexts have no parents and come first in every order, so that edges which cannot be
    there are no evidence of few edges: each variable may have all contexts as parents, beside
    the variables before it.
    """
    d = penalty.shape[1]
    # sets[m]: log total weight of the parent sets within m given variables and the contexts.
    sets = np.stack([_log_subsets(penalty, m) for m in range(num_contexts, d)], axis=1)
    if order_modular:
        return gammaln(d - num_contexts + 1) + sets.sum(axis=1)
    return _log_weighted_dags(sets)


def _log_weighted_dags(sets: Float[np.ndarray, "c d"]) -> Float[np.ndarray, " c"]:
    """log of the weighted number of labelled DAGs, without a subtraction of large numbers.

    The usual inclusion-exclusion over sinks cancels when edges are rare. Counting by layers
    (each node lies one below its lowest parent) adds positive terms only: a node in the
    last layer has a parent among the s nodes of the layer before, so its sets weigh
    exp(sets[m]) - exp(sets[m - s]) when m nodes lie above.
    """
    num, d = sets.shape
    layered = np.full((num, d + 1, d + 1), -np.inf)  # n nodes, k of them in the last layer
    for n in range(1, d + 1):
        layered[:, n, n] = n * sets[:, 0]
        for k in range(1, n):
            above = n - k
            whole = sets[:, above, None]
            missing = sets[:, above - 1 :: -1]  # s = 1 .. above
            touching = whole + np.log(-np.expm1(missing - whole))
            terms = layered[:, above, 1 : above + 1] + k * touching
            layered[:, n, k] = log_choose(n, k) + np.logaddexp.reduce(terms, axis=1)
    return np.logaddexp.reduce(layered[:, d], axis=1)


def normalised(
    penalty: Float[np.ndarray, "c d"], order_modular: bool, num_contexts: int = 0
) -> Components:
    """Equal weights, less each component's own normaliser."""
    return -np.log(len(penalty)) - log_normaliser(penalty, order_modular, num_contexts), penalty


def edge_penalty(density: Float[np.ndarray, " c"], d: int) -> Float[np.ndarray, "c d"]:
    """The log odds of an edge, for each parent."""
    return np.log(density / (1 - density))[:, None] * np.arange(d)


def _log_subsets(penalty: Float[np.ndarray, "c d"], m: int) -> Float[np.ndarray, " c"]:
    """log Σ_{S ⊆ m nodes} exp(penalty[|S|])."""
    sizes = np.arange(m + 1)
    return np.logaddexp.reduce(penalty[:, : m + 1] + log_choose(m, sizes), axis=1)


def log_choose(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
