"""Distances between distributions over graphs, and the likelihood of rows."""

import numpy as np
from jaxtyping import Float, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.metrics.arrays import Probabilities, Sample, SampleWeights
from bayesdag.metrics.draws import checked_weights, frequencies


def negative_log_likelihood(
    log_likelihoods: Float[np.ndarray, "s n"], weights: SampleWeights = None
) -> float:
    """Mean over rows of −log Σ_s w_s p(x_n | draw s): the log is inside the mean over rows.

    +inf when some row is impossible under every draw.
    """
    weights = checked_weights(weights, len(log_likelihoods))
    used = weights > 0
    terms = log_likelihoods[used] + np.log(weights[used])[:, None]
    return -float(np.logaddexp.reduce(terms, axis=0).mean())


def mmd(
    graphs: Sample,
    others: Shaped[np.ndarray, "t d d"],
    weights: SampleWeights = None,
    other_weights: Float[np.ndarray, " t"] | None = None,
) -> float:
    """Maximum mean discrepancy of two weighted sets under the kernel 1 − Hamming/d²."""
    return mmd_of_marginals(frequencies(graphs, weights), frequencies(others, other_weights))


def mmd_of_marginals(edge: Probabilities, other: Probabilities) -> float:
    """The same MMD from edge probabilities: √2 ‖P − Q‖_F / d.

    The Hamming kernel is linear in the edges, so the discrepancy sees nothing but the
    marginals: two posteriors with equal marginals are at distance 0.
    """
    return float(np.sqrt(2.0) * np.linalg.norm(edge - other) / len(edge))


def total_variation(
    graphs: Sample,
    others: Shaped[np.ndarray, "t d d"],
    weights: SampleWeights = None,
    other_weights: Float[np.ndarray, " t"] | None = None,
) -> float:
    """Half the L1 distance of two distributions over graphs, between 0 and 1.

    For an exact posterior hand in all DAGs with their probabilities. Few draws from a
    broad posterior are far from it by chance alone: compare with exact draws as many.
    """
    masses = np.concatenate(
        [checked_weights(weights, len(graphs)), -checked_weights(other_weights, len(others))]
    )
    _, index = graph_facts.unique_graphs(np.concatenate([graphs != 0, others != 0]))
    return float(min(1.0, 0.5 * np.abs(np.bincount(index, weights=masses)).sum()))
