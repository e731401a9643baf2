"""Distances of drawn graphs from a true graph: structural Hamming distances and F1."""

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.metrics.arrays import Probabilities, Sample, SampleWeights, Truth, Unknown
from bayesdag.metrics.draws import checked_weights, without_unknown


def shd(graphs: Shaped[np.ndarray, "*batch d d"], truth: Truth) -> Int[np.ndarray, "*batch"]:
    """Number of unordered pairs that differ: none, i → j, j → i, or i — j (both entries set).

    An edge too many, too few or reversed costs 1 each, so it serves DAGs and CPDAGs alike.
    """
    differs = graphs.astype(bool) != truth.astype(bool)
    both = np.count_nonzero(differs & np.swapaxes(differs, -1, -2), axis=(-2, -1))
    return np.asarray(np.count_nonzero(differs, axis=(-2, -1)) - both // 2)


def f1(graphs: Shaped[np.ndarray, "*batch d d"], truth: Truth) -> Float[np.ndarray, "*batch"]:
    """F1 of the directed edges: a reversal is one false and one missed. Both empty: 1."""
    hits = np.count_nonzero(graphs.astype(bool) & truth.astype(bool), axis=(-2, -1))
    edges = np.count_nonzero(graphs, axis=(-2, -1)) + np.count_nonzero(truth)
    return np.where(edges == 0, 1.0, 2.0 * hits / np.maximum(edges, 1))


def expected_shd(graphs: Sample, truth: Truth, weights: SampleWeights = None) -> float:
    """Posterior mean of the structural Hamming distance; a reversal counts 1."""
    return float(checked_weights(weights, len(graphs)) @ shd(graphs, truth))


def shd_of_marginals(edge: Probabilities, truth: Truth) -> float:
    """Expected SHD from edge probabilities alone, which determine it for acyclic graphs.

    A pair is never joined both ways in a DAG, so the chance that it is wrong is
    linear in them: 1 − p_ij at a true edge i → j, and p_ij + p_ji where there is none.
    """
    edge, present = _without_diagonal(edge), truth.astype(bool)
    return float((1.0 - edge)[present].sum() + edge[~(present | present.T)].sum())


def expected_f1(graphs: Sample, truth: Truth, weights: SampleWeights = None) -> float:
    """Posterior mean of the F1 of each draw (not the F1 of the mean graph)."""
    return float(checked_weights(weights, len(graphs)) @ f1(graphs, truth))


def expected_num_edges(graphs: Sample, weights: SampleWeights = None) -> float:
    """Posterior mean of the number of edges."""
    return float(checked_weights(weights, len(graphs)) @ np.count_nonzero(graphs, axis=(1, 2)))


def expected_cpdag_shd(
    graphs: Sample, truth: Truth, weights: SampleWeights = None, unknown: Unknown = None
) -> float:
    """Posterior mean of the distance between equivalence classes (their CPDAGs).

    Every unordered pair is none, →, ← or — and costs 1 where the two differ; pairs with an
    unknown entry are left out.
    """
    distinct, index = graph_facts.unique_graphs(graphs)
    pairs = None if unknown is None else unknown | unknown.T
    found, true = (without_unknown(graph_facts.cpdag(g), pairs) for g in (distinct, truth))
    distances = shd(found, true)
    return float(checked_weights(weights, len(graphs)) @ distances[index])


def _without_diagonal(matrix: Probabilities) -> Probabilities:
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)
