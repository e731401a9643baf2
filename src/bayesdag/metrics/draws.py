"""Weighted draws of graphs: frequencies of entries, and entries whose truth is unknown."""

import numpy as np
from jaxtyping import Float, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.errors import InputError
from bayesdag.metrics.arrays import Probabilities, Sample, SampleWeights, Truth, Unknown

# Sums of weights that are equal on paper differ in their last bits.
ROUNDING = 1e-6


def frequencies(graphs: Sample, weights: SampleWeights = None) -> Probabilities:
    """Weighted fraction of the draws in which each entry is set."""
    # A matrix product would copy all draws to float64 first: 8 bytes for each of theirs.
    fractions = np.einsum(
        "s,sij->ij", checked_weights(weights, len(graphs)), graphs, dtype=np.float64
    )
    return np.minimum(fractions, 1.0)


def checked_weights(weights: SampleWeights, num_draws: int) -> Float[np.ndarray, " s"]:
    """Weights of that many draws, all the same where none are given; bad ones are refused."""
    if weights is None:
        return np.full(num_draws, 1.0 / num_draws)
    if not (np.all(weights >= 0) and abs(weights.sum() - 1.0) < ROUNDING):
        raise InputError(
            f"weights must be positive and sum to 1, these sum to {weights.sum()}; "
            "divide them by their sum"
        )
    return weights


def without_unknown(
    matrices: Shaped[np.ndarray, "*batch d d"], unknown: Unknown
) -> Shaped[np.ndarray, "*batch d d"]:
    """Zero where nothing may be scored: applied to draws and truth alike, they agree there."""
    return matrices if unknown is None else np.where(unknown, matrices.dtype.type(0), matrices)


def unknown_ancestors(truth: Truth, unknown: Unknown) -> Unknown:
    """Pairs of which it depends on unknown entries whether there is a path."""
    if unknown is None:
        return None
    fewest, most = (truth != 0) & ~unknown, (truth != 0) | unknown
    return graph_facts.ancestors(fewest) != graph_facts.ancestors(most)
