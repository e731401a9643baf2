"""Probabilities of graph features: edges, paths, blankets, classes, and single graphs.

Functions of draws `graphs` (chain, draw, d, d) and their `weights` (chain, draw). Where a
method knows a probability exactly it comes in `marginals` and is preferred to the draws,
with an error of zero.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from bayesdag import graphs as graph_facts
from bayesdag.posterior import column_names, estimates
from bayesdag.posterior.arguments import check_count, check_probability
from bayesdag.posterior.estimates import Estimate
from bayesdag.posterior.libraries import DataFrame, DiGraph, data_frame
from bayesdag.text import printable
from bayesdag.types import Draws, Weights

Matrix = Float[np.ndarray, "d d"]
Marginals = Mapping[str, Matrix] | None
LARGEST_EXACT_CYCLE = 12  # nodes of a knot of cycles that is solved exactly: 4096 subsets


def edge_probabilities(
    graphs: Draws, weights: Weights, marginals: Marginals = None, with_error: bool = False
) -> Estimate:
    """P(i -> j) for all ordered pairs."""
    if marginals and "edge" in marginals:
        return _exact(marginals["edge"], with_error)
    return estimates.probability(graphs, weights, with_error)


def edge_columns(
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    marginals: Marginals = None,
    top: int | None = None,
    with_error: bool = False,
    *,
    variable: str | None = None,
    evidence: Matrix | None = None,
) -> dict[str, np.ndarray]:
    """Ordered pairs with the probability of their edge, the `top` most probable first.

    Column `reversed` is the probability of the opposite direction; what is left to one is
    the probability of no edge between the two.

    Args:
        variable: only edges into and out of this one.
        evidence: for edges of equal probability, which of them come first: those with more.
    """
    if top is not None:
        check_count("top", top, least=0)
    probability = edge_probabilities(graphs, weights, marginals).value
    i, j = ranked_pairs(probability, names, variable, evidence)
    i, j, column = i[:top], j[:top], np.asarray(names, dtype=object)
    table = {"source": column[i], "target": column[j], "probability": probability[i, j]}
    if with_error:
        exact = marginals is not None and "edge" in marginals
        shown = estimates.probability(graphs[:, :, i, j], weights, with_error=not exact)
        table["error"] = np.zeros(len(i)) if exact else shown.error
    table["reversed"] = probability[j, i]
    if evidence is not None:
        table["evidence"] = evidence[i, j]
    return table


def ranked_pairs(
    probability: Matrix,
    names: Sequence[str],
    variable: str | None = None,
    evidence: Matrix | None = None,
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """Ordered pairs of different variables, the most probable first.

    Args:
        variable: only pairs that it is part of.
        evidence: ranks those of equal probability; NaN comes last.
    """
    allowed = ~np.eye(len(names), dtype=bool)
    if variable is not None:
        own = np.arange(len(names)) == column_names.node(names, variable)
        allowed &= own[:, None] | own[None, :]
    i, j = np.nonzero(allowed)
    strength = np.zeros(len(i)) if evidence is None else np.nan_to_num(evidence[i, j], nan=-np.inf)
    order = np.lexsort((-strength, -np.round(probability[i, j], 12)))
    return i[order], j[order]


def tied_edges(probability: Matrix) -> Int[np.ndarray, "e 2"]:
    """Edges more probable than not that share their probability with another."""
    rounded = np.round(probability, 12)
    values, counts = np.unique(rounded, return_counts=True)
    tied = np.isin(rounded, values[counts > 1]) & (probability > 0.5)
    return np.argwhere(tied)


def pair_columns(
    probability: Matrix,
    names: Sequence[str],
    variable: str | None = None,
    top: int | None = None,
    *,
    headings: tuple[str, str] = ("cause", "effect"),
    symmetric: bool = False,
) -> dict[str, np.ndarray]:
    """Possible pairs of variables with a probability, the most probable first, as columns.

    Args:
        variable: only pairs that it is part of.
        symmetric: whether order means nothing; each pair is then listed once, with `variable`
            first.
    """
    if top is not None:
        check_count("top", top, least=0)
    i, j = ranked_pairs(probability, names, variable)
    kept = probability[i, j] > 0
    if symmetric:
        kept &= i < j if variable is None else i == column_names.node(names, variable)
    i, j, column = i[kept][:top], j[kept][:top], np.asarray(names, dtype=object)
    return {headings[0]: column[i], headings[1]: column[j], "probability": probability[i, j]}


def path_probabilities(
    graphs: Draws, weights: Weights, marginals: Marginals = None, with_error: bool = False
) -> Estimate:
    """P(a directed path leads from i to j): i is a cause of j, directly or not."""
    if marginals and "ancestor" in marginals:
        return _exact(marginals["ancestor"], with_error)
    return estimates.probability(_per_draw(graph_facts.ancestors, graphs), weights, with_error)


def markov_blanket_probabilities(
    graphs: Draws, weights: Weights, with_error: bool = False
) -> Estimate:
    """P(j is in the Markov blanket of i): parents, children and their other parents."""
    return estimates.probability(
        _per_draw(graph_facts.markov_blankets, graphs), weights, with_error
    )


def v_structures(
    graphs: Draws, weights: Weights, names: Sequence[str], at_least: float | int = 0.05
) -> DataFrame:
    """Colliders left -> middle <- right of unlinked causes, with their probability.

    Those below `at_least` are left out: a posterior over dense graphs has very many.
    """
    check_probability("at_least", at_least)
    different = estimates.distinct(graphs, weights)
    holders: dict[tuple[int, int, int], list[int]] = {}
    for place, graph in enumerate(different.graphs):
        for triple in graph_facts.v_structures(graph):
            holders.setdefault(triple, []).append(place)
    rows: list[tuple[str | float, ...]] = []
    for triple, places in holders.items():
        if different.mass[places].sum() >= at_least:
            has = np.zeros(len(different.mass), dtype=bool)
            has[places] = True
            found = estimates.probability(has[different.index], weights, with_error=True)
            rows.append((*(names[i] for i in triple), float(found.value), float(found.error)))
    table = data_frame(rows, ["left", "middle", "right", "probability", "error"])
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def probability(
    predicate: Callable[[DiGraph], bool],
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    with_error: bool = False,
) -> Estimate:
    """Probability that `predicate(graph)` is true of the networkx graph with column names.

    It is called once for each different graph.
    """
    different = estimates.distinct(graphs, weights)
    true = np.array([bool(predicate(column_names.digraph(names, g))) for g in different.graphs])
    found = estimates.probability(true[different.index], weights, with_error)
    return Estimate(float(found.value), float(found.error) if with_error else None)


@dataclass(frozen=True, repr=False)
class EquivalenceClasses:
    """Sets of graphs that no independence in the data can tell apart, by their mass.

    Attributes:
        cpdags: one essential graph per class; where both entries are 1 the direction is open.
        mass: posterior probability of each class, largest first.
        num_graphs: how many different members were drawn.
        names: column names.
    """

    cpdags: Int8[np.ndarray, "k d d"]
    mass: Float[np.ndarray, " k"]
    num_graphs: Int[np.ndarray, " k"]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        shown = [
            f"{mass:.3f}: {shorten(printable(_edges_in_words(cpdag, self.names)), 100)}"
            for mass, cpdag in zip(self.mass[:3], self.cpdags[:3], strict=True)
        ]
        more = [f"… and {len(self.mass) - 3} more"] if len(self.mass) > 3 else []
        heading = f"EquivalenceClasses: {len(self.mass)} of {len(self.names)} variables"
        return "\n  ".join([heading, *shown, *more])

    def table(self) -> DataFrame:
        """One row per class: mass, members drawn, and its edges in words."""
        return data_frame(
            {
                "probability": self.mass,
                "graphs": self.num_graphs,
                "edges": [_edges_in_words(cpdag, self.names) for cpdag in self.cpdags],
            }
        )

    def compelled(self) -> DataFrame:
        """P(i -> j and every member of the class has that direction).

        What the independences decide. The rest of an edge's probability was chosen among
        equivalents by the prior, by interventions or by the shape of the functions.
        """
        return column_names.square(self.names, self.compelled_matrix())

    def compelled_matrix(self) -> Matrix:
        """The numbers of `compelled`."""
        directed = (self.cpdags == 1) & (self.cpdags.swapaxes(1, 2) == 0)
        return np.minimum(np.einsum("k,kij->ij", self.mass, directed.astype(float)), 1.0)


def equivalence_classes(
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    contexts: Bool[np.ndarray, " d"] | None = None,
) -> EquivalenceClasses:
    """The Markov equivalence classes among the draws, most probable first.

    Args:
        contexts: True for nodes that nothing acts on: their edges are compelled, and whatever
            follows from that.
    """
    different = estimates.distinct(graphs, weights)
    known = different.graphs if contexts is None else _rooted(different.graphs, contexts)
    cpdags, index = graph_facts.equivalence_classes(known)
    cpdags = cpdags[:, : len(names), : len(names)]
    mass = np.minimum(np.bincount(index, different.mass, minlength=len(cpdags)), 1.0)
    members = np.bincount(index, minlength=len(cpdags))
    order = np.argsort(-np.round(mass, 12), kind="stable")
    return EquivalenceClasses(cpdags[order], mass[order], members[order], tuple(names))


def _rooted(
    graphs: Int8[np.ndarray, "u d d"], contexts: Bool[np.ndarray, " d"]
) -> Int8[np.ndarray, "u e e"]:
    """The graphs with two unlinked causes of every context, behind all nodes.

    They make contexts colliders, so that no equivalent graph turns an edge of theirs round.
    """
    if not contexts.any():
        return graphs
    larger = np.pad(graphs, ((0, 0), (0, 2), (0, 2)))
    larger[:, -2:, np.flatnonzero(contexts)] = 1
    return larger


def most_probable_graph(
    graphs: Draws, weights: Weights, log_joint: Float[np.ndarray, "chain draw"] | None = None
) -> Int8[np.ndarray, "d d"]:
    """The graph with the largest share of the draws, or with the best `log_joint` if given."""
    if log_joint is None:
        return estimates.distinct(graphs, weights).graphs[0]
    best = np.unravel_index(np.argmax(np.where(weights > 0, log_joint, -np.inf)), weights.shape)
    return graphs[best]


def median_graph(probabilities: Matrix, threshold: float | int = 0.5) -> Int8[np.ndarray, "d d"]:
    """Edges more probable than `threshold`; they may close a cycle."""
    check_probability("threshold", threshold)
    return (probabilities > threshold).astype(np.int8)


def consensus_graph(probabilities: Matrix, threshold: float | int = 0.5) -> Int8[np.ndarray, "d d"]:
    """The DAG with the largest sum of (probability - threshold) over its edges.

    At one half it has the smallest expected number of wrong edges, and equals the median
    graph wherever that has no cycle. Knots of cycles with up to 12 nodes are solved exactly,
    larger ones greedily, strongest edge first.
    """
    import networkx

    chosen = median_graph(probabilities, threshold)
    for knot in networkx.strongly_connected_components(networkx.DiGraph(chosen)):
        if len(knot) > 1:
            nodes = np.ix_(sorted(knot), sorted(knot))
            gain = np.where(chosen[nodes] == 1, probabilities[nodes] - threshold, 0.0)
            solve = _best_order if len(knot) <= LARGEST_EXACT_CYCLE else _greedy
            chosen[nodes] = solve(gain)
    return chosen


def _best_order(gain: Matrix) -> Bool[np.ndarray, "d d"]:
    """Edges of the acyclic subgraph with the largest gain, by the best order of the nodes.

    Bellman's recursion over the set of nodes already placed; a node gains what enters it
    from them.
    """
    d = len(gain)
    member: np.ndarray = np.right_shift.outer(np.arange(1 << d), np.arange(d)) & 1
    entering = member @ gain  # (set, node)
    best, last = np.full(2**d, -np.inf), np.zeros(2**d, dtype=int)
    best[0] = 0.0
    for placed in range(1, 2**d):
        nodes = np.flatnonzero(member[placed])
        before = placed - (1 << nodes)
        value = best[before] + entering[before, nodes]
        choice = int(np.argmax(value))
        best[placed], last[placed] = value[choice], nodes[choice]
    rank, placed = np.zeros(d, dtype=int), 2**d - 1
    for position in range(d - 1, -1, -1):
        rank[last[placed]] = position
        placed -= 1 << int(last[placed])
    return (gain > 0) & (rank[:, None] < rank[None, :])


def _greedy(gain: Matrix) -> Bool[np.ndarray, "d d"]:
    """Strongest edge first, skipping those that would close a cycle."""
    reach = np.eye(len(gain), dtype=bool)
    chosen = np.zeros(gain.shape, dtype=bool)
    for flat in np.argsort(-gain, axis=None, kind="stable")[: int((gain > 0).sum())]:
        i, j = divmod(int(flat), len(gain))
        if not reach[j, i]:
            chosen[i, j] = True
            reach |= reach[:, [i]] & reach[[j], :]
    return chosen


def _per_draw(fact: Callable[[np.ndarray], np.ndarray], graphs: Draws) -> np.ndarray:
    """A fact about each draw, computed once for each different graph."""
    different, index = graph_facts.unique_graphs(graphs)
    return fact(different)[index]


def _exact(value: Matrix, with_error: bool) -> Estimate:
    value = np.clip(value, 0.0, 1.0)  # sums over graphs round
    return Estimate(value, np.zeros_like(value) if with_error else None)


def _edges_in_words(cpdag: np.ndarray, names: Sequence[str]) -> str:
    both = (cpdag == 1) & (cpdag.T == 1)
    directed = [f"{names[i]} → {names[j]}" for i, j in np.argwhere((cpdag == 1) & ~both)]
    open_ = [f"{names[i]} — {names[j]}" for i, j in np.argwhere(np.triu(both))]
    return ", ".join(directed + open_) or "no edges"
