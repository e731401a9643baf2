"""Sums over DAGs, each counted once, in O(d 3^d); exact draws in 4^d.

A DAG weighs Π_i exp(tables[i, pa_i]). Inclusion-exclusion over sets of sinks adds up all DAGs
on each set of variables; run backwards, the same terms are probabilities of what surrounds a
variable. Every sum is divided by its order-modular counterpart, which counts each DAG on m
variables between 1 and m! times: nothing overflows, no term exceeds the sum it belongs to, and
at most a factor 2^d of the precision is lost.

References:
    Tian & He (2009), Computing posterior probabilities of structural features in Bayesian
    networks, UAI; Kuipers & Moffa (2017), Partition MCMC for inference on acyclic digraphs, JASA.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import factorial

import numpy as np
from jaxtyping import Float, Int8

from bayesdag.errors import InputError
from bayesdag.exact.order_dp import prefix_sums
from bayesdag.exact.tables import Tables, draw_positions, groups
from bayesdag.graphs.bitsets import (
    as_rows,
    log_subset_sums,
    log_superset_sums,
    members,
    members_of,
    subsets_of,
)

TOLERANCE = 1e-6  # of a probability that must be one


@dataclass(frozen=True, eq=False)
class GraphSums:
    """Sums over all graphs that every query reads.

    Attributes:
        tables: log weights.
        allowed: `allowed[i, U]`, log total weight of the parent sets of i within U.
        scale: log of the order-modular sum over each set.
        ratio: sum over the DAGs on each set, divided by exp(scale).
        log_total: log of the sum over all DAGs.
    """

    tables: Tables
    allowed: Tables
    scale: Float[np.ndarray, " sets"]
    ratio: Float[np.ndarray, " sets"]
    log_total: float

    @cached_property
    def nondescendants(self) -> Tables:
        """P(the non-descendants of i are exactly U) at [i, U].

        `closed` times `ratio` is the probability that a set contains all parents of its
        members. Among the DAGs where this holds for U, the alternating sum over sets T of
        sources of the rest that contain i keeps those whose only source is i: all others
        descend from it.
        """
        d = len(self.tables)
        closed = np.zeros(len(self.scale))
        closed[-1] = 1 / self.ratio[-1]
        result = np.zeros(self.tables.shape)
        for placed in np.flatnonzero(self.scale[:-1] > -np.inf)[::-1].tolist():
            union, terms = _sink_terms(self.allowed, self.scale, placed)
            terms = terms * closed[union]
            closed[placed] = terms[1:].sum()
            rest = members_of(2**d - 1 ^ placed)
            result[rest, placed] = self.ratio[placed] * (terms @ _bits(len(rest)))
        if np.abs(result.sum(axis=1) - 1).max() > TOLERANCE:
            raise _imprecise()
        return np.maximum(result, 0)


def sums(tables: Tables) -> GraphSums:
    """Weighted numbers of DAGs on every set of variables.

    The DAGs on S in which all of T are sinks weigh ratio(S - T) Π_{j in T} allowed[j, S - T];
    taken with alternating signs over T, each DAG is counted once.
    """
    allowed = log_subset_sums(tables)
    scale = prefix_sums(allowed)
    if scale[-1] == -np.inf:
        raise InputError("no graph has a positive weight: the constraints leave none")
    ratio = np.zeros(len(scale))
    ratio[0] = 1
    for placed in np.flatnonzero(scale > -np.inf).tolist():
        if ratio[placed] < 0.5 / factorial(placed.bit_count()):
            raise _imprecise()
        union, terms = _sink_terms(allowed, scale, placed)
        ratio[union[1:]] += ratio[placed] * terms[1:]
    return GraphSums(tables, allowed, scale, ratio, float(scale[-1] + np.log(ratio[-1])))


def parent_sets(sums: GraphSums) -> Tables:
    """P(pa_i = S) at [i, S].

    Given that U are the non-descendants of i, its parents are any set within U.
    """
    with np.errstate(divide="ignore"):
        context = np.log(sums.nondescendants)
    context[context > -np.inf] -= sums.allowed[context > -np.inf]
    return np.exp(sums.tables + log_superset_sums(context))


def ancestors(sums: GraphSums) -> Float[np.ndarray, "d d"]:
    """P(a path leads from i to j) at [i, j]: j is not among the non-descendants of i."""
    result = sums.nondescendants @ ~members(len(sums.tables))
    np.fill_diagonal(result, 0)
    return result


def draw(rng: np.random.Generator, sums: GraphSums, num: int) -> Int8[np.ndarray, "num d d"]:
    """Independent DAGs, layer by layer from the last: no term is negative here.

    A node lies one layer below its lowest parent. Given the set above a layer and the last
    layer P of that set, a node's parents are any set within it that meets P.
    """
    d = len(sums.tables)
    layers, ternary = _layer_sums(sums), _ternary(d)
    graphs = np.zeros((num, d, d), dtype=np.int8)
    layer = draw_positions(rng, layers[ternary[-1] + ternary], num)
    rest = (2**d - 1) & ~layer
    while rest.any():
        for state, chosen in groups(rest << d | layer):
            placed, nodes = state >> d, members_of(state & (2**d - 1))
            if placed:
                among = subsets_of(placed)
                weights = layers[ternary[placed] + ternary[among]]
                weights = weights * _touching(sums.allowed, placed, nodes).prod(axis=0)
                layer[chosen] = among[draw_positions(rng, weights, len(chosen))]
                _draw_parents(rng, sums.tables, among, nodes, layer[chosen], chosen, graphs)
        rest = rest & ~layer
    return graphs


def _draw_parents(
    rng: np.random.Generator,
    tables: Tables,
    among: np.ndarray,
    nodes: list[int],
    upper: np.ndarray,
    chosen: np.ndarray,
    graphs: np.ndarray,
) -> None:
    """Parents of `nodes` from sets that meet the layer above, written into chosen graphs."""
    for layer, some in groups(upper):
        meeting = among[among & layer != 0]
        for node in nodes:
            log_weights = tables[node, meeting]
            weights = np.exp(log_weights - log_weights.max())
            drawn = meeting[draw_positions(rng, weights, len(some))]
            graphs[chosen[some], :, node] = as_rows(drawn, len(tables))


def _layer_sums(sums: GraphSums) -> Float[np.ndarray, " states"]:
    """Weight of the DAGs on U with last layer P, at position ternary(U) + ternary(P).

    In units of the scale. In base 3 a digit is 0 outside U, 1 in U, 2 in P.
    """
    d = len(sums.tables)
    ternary = _ternary(d)
    layers = np.zeros(3**d)
    layers[0] = 1
    for placed in np.flatnonzero(sums.scale[:-1] > -np.inf).tolist():
        inside = layers[ternary[placed] + ternary[subsets_of(placed)]]
        union, terms = _sink_terms(sums.allowed, sums.scale, placed)
        touching = _touching(sums.allowed, placed, members_of(2**d - 1 ^ placed))
        half = len(touching) // 2
        # A product over T is one of each half: a matrix product does all sums over P.
        weights = _products(touching[half:]) @ (inside * _products(touching[:half])).T
        found = (np.abs(terms) * weights.ravel())[1:]
        layers[ternary[union[1:]] + ternary[union[1:] ^ placed]] = found
    return layers


def _ternary(d: int) -> np.ndarray:
    """Each set read as a number in base 3."""
    return members(d) @ 3 ** np.arange(d)


def _touching(allowed: Tables, placed: int, nodes: list[int]) -> np.ndarray:
    """Share of each node's parent sets within `placed` that meet P, for all P."""
    if placed == 0:
        return np.ones((len(nodes), 1))  # the first layer has no layer above it
    free = subsets_of(placed)[::-1]
    whole = allowed[nodes, placed][:, None]
    possible = whole > -np.inf
    part = np.where(possible, allowed[np.asarray(nodes)[:, None], free], 0.0)
    return -np.expm1(part - np.where(possible, whole, 0.0))


def _products(factors: np.ndarray) -> np.ndarray:
    """Products over all subsets of the rows."""
    result = np.ones((1, factors.shape[1]))
    for factor in factors:
        result = np.concatenate([result, result * factor])
    return result


def _sink_terms(allowed: Tables, scale: np.ndarray, placed: int) -> tuple[np.ndarray, np.ndarray]:
    """U ∪ T for all T outside U, and ± Π_{j in T} allowed[j, U] in units of the scale."""
    rest = subsets_of(len(scale) - 1 ^ placed)
    log_weight = np.zeros(1)
    for v in members_of(len(scale) - 1 ^ placed):
        log_weight = np.concatenate([log_weight, log_weight + allowed[v, placed]])
    union = rest | placed
    # A union without a DAG has no scale, and then its terms are zero anyway.
    unit = np.where(log_weight > -np.inf, scale[union], 0.0)
    return union, _signs(len(rest)) * np.exp(log_weight + scale[placed] - unit)


@cache
def _signs(num_sets: int) -> np.ndarray:
    """+1 for sets with an odd number of members, -1 for the others."""
    return np.where(np.bitwise_count(np.arange(num_sets)) % 2 == 1, 1.0, -1.0)


@cache
def _bits(num_members: int) -> np.ndarray:
    return members(num_members).astype(float)


def _imprecise() -> InputError:
    return InputError(
        "the exact sums over graphs lost their precision to cancellation: choose the "
        "order-modular prior, whose sums cannot cancel, or fewer variables"
    )
