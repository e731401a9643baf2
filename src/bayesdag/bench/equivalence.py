"""Two posteriors compared by what observation can tell: adjacencies and compelled edges."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag import metrics
from bayesdag.graphs import cpdag, unique_graphs
from bayesdag.posterior import Posterior

AGREE = 0.1  # probabilities no further apart say the same


class _ClassProbabilities(NamedTuple):
    """Of every ordered pair: edge, adjacency, and edge that is the same in all of the class."""

    edge: Float[np.ndarray, "d d"]
    adjacent: Float[np.ndarray, "d d"]
    compelled: Float[np.ndarray, "d d"]


def compare_classes(
    posterior: Posterior, reference: Posterior, truth: np.ndarray
) -> dict[str, list[int]]:
    """Agreement of all unordered pairs, and how often reversible edges are called sure.

    A pair agrees when the probabilities of its adjacency and of both compelled directions are
    within .1. Of the reversible edges of the true graph that both call adjacent: how many, and
    how many have a direction outside (.05, .95) given the adjacency, here and in the reference.
    """
    mine, theirs = (_class_probabilities(p) for p in (posterior, reference))
    far = abs(mine.adjacent - theirs.adjacent) > AGREE
    far |= abs(mine.compelled - theirs.compelled) > AGREE
    one, other = np.triu_indices(len(truth), k=1)
    agree = ~(far | far.T)[one, other]
    essential = cpdag(truth).astype(bool)
    reversible = (essential & essential.T)[one, other]
    reversible &= (mine.adjacent[one, other] > 0.5) & (theirs.adjacent[one, other] > 0.5)
    pairs = one[reversible], other[reversible]
    decided = [num_decided(p.edge[pairs] / p.adjacent[pairs]) for p in (mine, theirs)]
    return {
        "class_agreement": [len(one), int(agree.sum())],
        "reversible_sure": [len(pairs[0]), decided[0]],
        "reversible_sure_exact": [len(pairs[0]), decided[1]],
    }


def num_decided(direction: Float[np.ndarray, " k"]) -> int:
    """How many probabilities of a direction are outside (.05, .95)."""
    low, high = metrics.BAND
    return int(np.count_nonzero((direction < low) | (direction > high)))


def _class_probabilities(posterior: Posterior) -> _ClassProbabilities:
    graphs = posterior.graphs.reshape(-1, *posterior.graphs.shape[2:])
    distinct, index = unique_graphs(graphs)
    mass = np.bincount(index, posterior.weights.reshape(-1), len(distinct))
    essential = cpdag(distinct).astype(bool)
    compelled = essential & ~np.swapaxes(essential, 1, 2)
    edge = posterior.edge_matrix()
    return _ClassProbabilities(edge, edge + edge.T, np.tensordot(mass, compelled, axes=1))
