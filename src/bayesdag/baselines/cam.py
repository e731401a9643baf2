"""Causal additive models: an order by greedy search, then parents by significance tests.

Bühlmann, Peters & Ernest (2014), CAM: causal additive models, high-dimensional order search and
penalized regression, Annals of Statistics. Their three steps are the three functions here.
"""

import numpy as np
from jaxtyping import Bool, Int, Int8

from bayesdag.baselines.additive import AdditiveStats, GrowingRegression
from bayesdag.graphs import ancestors
from bayesdag.knowledge import Constraints


def preliminary_neighbours(
    stats: AdditiveStats, knowledge: Constraints, most: int
) -> Bool[np.ndarray, "d d"]:
    """Candidate parents of every node: the `most` variables that explain it best together.

    Forward selection of whole functions, where the paper boosts them; required parents are
    always among the candidates.
    """
    d = len(knowledge.names)
    chosen = np.zeros((d, d), dtype=bool)
    for node in range(d):
        allowed = np.flatnonzero(knowledge.candidates(node))
        regression = GrowingRegression(stats, node, allowed)
        for variable in np.flatnonzero(knowledge.required[:, node]).tolist():
            regression.add(variable)
            chosen[variable, node] = True
        while chosen[:, node].sum() < most and regression.gains.max(initial=-np.inf) > -np.inf:
            variable = int(allowed[np.argmax(regression.gains)])
            regression.add(variable)
            chosen[variable, node] = True
    return chosen


def greedy_edges(
    stats: AdditiveStats, candidates: Bool[np.ndarray, "d d"], knowledge: Constraints
) -> Bool[np.ndarray, "d d"]:
    """Edges added one by one, each the one that raises the likelihood most (IncEdge).

    It ends when no candidate is left that closes no cycle: without a preliminary selection
    that is a whole order. Required edges come first.
    """
    d = len(candidates)
    listed = [np.flatnonzero(candidates[:, node]) for node in range(d)]
    regressions = [GrowingRegression(stats, node, own) for node, own in enumerate(listed)]
    edges, gains = knowledge.required.copy(), np.full((d, d), -np.inf)
    for cause, effect in np.argwhere(edges).tolist():
        regressions[effect].add(cause)
    for node, own in enumerate(listed):
        gains[own, node] = regressions[node].gains
    reach = ancestors(edges) | np.eye(d, dtype=bool)
    while True:
        cause, effect = np.unravel_index(np.argmax(np.where(reach.T, -np.inf, gains)), (d, d))
        if reach[effect, cause] or gains[cause, effect] == -np.inf:
            return edges
        edges[cause, effect] = True
        reach |= reach[:, cause][:, None] & reach[effect][None, :]
        regressions[effect].add(int(cause))
        gains[listed[effect], effect] = regressions[effect].gains


def pruned(
    stats: AdditiveStats,
    edges: Bool[np.ndarray, "d d"],
    knowledge: Constraints,
    cutoff: float,
) -> Int8[np.ndarray, "d d"]:
    """The edges whose functions differ from zero, by an F-test given all other parents."""
    graph = knowledge.required.astype(np.int8)
    for node in range(len(edges)):
        parents = np.flatnonzero(edges[:, node])
        if len(parents):
            significant = stats.fit(node, parents).p_values < cutoff
            graph[parents[significant], node] = 1
    return graph


def search(stats: AdditiveStats, knowledge: Constraints, most: int) -> Bool[np.ndarray, "d d"]:
    """Edges before pruning: candidates where they are fewer than all, then greedy edges."""
    if most < len(knowledge.names) - 1:
        candidates = preliminary_neighbours(stats, knowledge, most)
    else:
        candidates = ~knowledge.forbidden
    return greedy_edges(stats, candidates, knowledge)


def bic(stats: AdditiveStats, graph: Int[np.ndarray, "d d"] | Int8[np.ndarray, "d d"]) -> float:
    """Log likelihood of a graph at its best functions, less half a log n per coefficient."""
    total = 0.0
    for node in range(len(graph)):
        fit = stats.fit(node, np.flatnonzero(graph[:, node]))
        # A node that was set in every row has no likelihood.
        num_rows = max(stats.num_rows(node), 1)
        total += fit.log_likelihood - 0.5 * np.log(num_rows) * fit.num_coefficients
    return float(total)
