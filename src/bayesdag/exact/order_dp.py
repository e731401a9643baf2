"""Sums over pairs of an order and a DAG that agrees with it, in O(d² 2^d).

Given an order the parent sets are independent, so a pair weighs Π_i exp(tables[i, pa_i]) and
only the set of predecessors matters. A DAG counts once for each of its orders.

References:
    Koivisto & Sood (2004), Exact Bayesian structure discovery in Bayesian networks, JMLR.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int8

from bayesdag.errors import InputError
from bayesdag.exact.tables import Tables, draw_positions, groups
from bayesdag.graphs.bitsets import (
    all_sets,
    as_rows,
    log_subset_sums,
    log_superset_sums,
    members_of,
    set_sizes,
    subsets_of,
)


class OrderSums(NamedTuple):
    """Sums over all orders that every query reads; all in logarithms.

    Attributes:
        tables: the weights.
        allowed: `allowed[i, U]`, total weight of the parent sets of i within U.
        prefix: total weight of all orders and DAGs on each set.
        suffix: total weight of all ways to go on once a set has been placed.
        log_total: log of the sum over everything.
    """

    tables: Tables
    allowed: Tables
    prefix: Float[np.ndarray, " sets"]
    suffix: Float[np.ndarray, " sets"]
    log_total: float


def sums(tables: Tables, first: int = 0) -> OrderSums:
    """Forward and backward sums over prefixes of orders.

    Args:
        first: the set of variables that precede all others in every order.
    """
    allowed = log_subset_sums(tables)
    every = all_sets(len(tables))
    # Placed sets that no order passes: some of the others are in them, not all of the first.
    skipped = ((every & ~first) != 0) & ((every & first) != first)
    prefix = prefix_sums(allowed, skipped)
    if prefix[-1] == -np.inf:
        raise InputError("no graph has a positive weight: the constraints leave none")
    return OrderSums(tables, allowed, prefix, _suffix_sums(allowed, skipped), float(prefix[-1]))


def parent_sets(sums: OrderSums) -> Tables:
    """P(pa_i = S) at [i, S]."""
    d, num_sets = sums.tables.shape
    every = all_sets(d)
    context = np.full((d, num_sets), -np.inf)
    for node in range(d):
        before: np.ndarray = every[every >> node & 1 == 0]
        after = sums.suffix[before | 1 << node]
        context[node, before] = sums.prefix[before] + after - sums.log_total
    return np.exp(sums.tables + log_superset_sums(context))


def ancestors(sums: OrderSums) -> Float[np.ndarray, "d d"]:
    """P(a path leads from s to j) at [s, j], in O(d² 3^d).

    Follow an order with S already placed and T the part of S that is s or descends from it.
    The next variable v joins T unless its parents avoid T, which has probability
    allowed[v, S - T] / allowed[v, S]. Backwards, one number for each (S, T) and each j
    still to come, level by level: everything is a probability, nothing can cancel.
    """
    d = len(sums.tables)
    result = np.zeros((d, d))
    possible = (sums.prefix > -np.inf) & (sums.suffix > -np.inf)
    sizes = set_sizes(d)
    larger: dict[int, np.ndarray] = {}
    for size in range(d, 0, -1):
        placed_sets = np.flatnonzero((sizes == size) & possible).tolist()
        level = {placed: _joins(sums, placed, larger) for placed in placed_sets}
        for placed, reached in level.items():
            _start_paths(sums, placed, reached, result)
        larger = level
    return result


def _joins(sums: OrderSums, placed: int, larger: dict[int, np.ndarray]) -> np.ndarray:
    """P(j will descend from T | placed) for each j still to come and each T within placed."""
    d = len(sums.tables)
    coming = members_of(2**d - 1 ^ placed)
    free_sets = subsets_of(placed)[::-1]  # placed - T, in the order of T
    result = np.zeros((len(coming), len(free_sets)))
    for row, v in enumerate(coming):
        step = sums.allowed[v, placed] + sums.suffix[placed | 1 << v] - sums.suffix[placed]
        if step == -np.inf:
            continue
        stays_out = sums.allowed[v, free_sets] - sums.allowed[v, placed]
        out, joins = np.exp(step + stays_out), -np.exp(step) * np.expm1(stays_out)
        result[row] += joins
        if len(coming) > 1:
            low = 1 << (placed & ((1 << v) - 1)).bit_count()
            then = larger[placed | 1 << v].reshape(len(coming) - 1, -1, 2, low)
            gain = out.reshape(-1, low) * then[:, :, 0]
            gain += joins.reshape(-1, low) * then[:, :, 1]
            gain = gain.reshape(len(coming) - 1, -1)
            result[:row] += gain[:row]
            result[row + 1 :] += gain[row:]
    return result


def _start_paths(sums: OrderSums, placed: int, reached: np.ndarray, result: np.ndarray) -> None:
    """Adds to `result[s]` the orders in which s is the last of `placed`."""
    d = len(sums.tables)
    coming = members_of(2**d - 1 ^ placed)
    for position, s in enumerate(members_of(placed)):
        before = placed ^ 1 << s
        log_weight = sums.prefix[before] + sums.allowed[s, before] + sums.suffix[placed]
        result[s, coming] += np.exp(log_weight - sums.log_total) * reached[:, 1 << position]


def draw(rng: np.random.Generator, sums: OrderSums, num: int) -> Int8[np.ndarray, "num d d"]:
    """Independent DAGs: an order from its end, then every parent set given the order."""
    d = len(sums.tables)
    graphs = np.zeros((num, d, d), dtype=np.int8)
    placed = np.full(num, 2**d - 1)
    for _ in range(d):
        before = placed[:, None] & ~(1 << np.arange(d))
        log_weight = sums.prefix[before] + sums.allowed[np.arange(d), before]
        log_weight[before == placed[:, None]] = -np.inf
        # The largest of the Gumbel-perturbed logarithms is a draw from their softmax.
        last = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), axis=1)
        placed = before[np.arange(num), last]
        _draw_parents(rng, sums.tables, last, placed, graphs)
    return graphs


def _draw_parents(
    rng: np.random.Generator,
    tables: Tables,
    nodes: np.ndarray,
    before: np.ndarray,
    graphs: np.ndarray,
) -> None:
    """Parents of one node of each graph, among those before it, written into `graphs`."""
    d = len(tables)
    for context, chosen in groups(before * d + nodes):
        node, among = context % d, subsets_of(context // d)
        log_weights = tables[node, among]
        weights = np.exp(log_weights - log_weights.max())
        drawn = among[draw_positions(rng, weights, len(chosen))]
        graphs[chosen, :, node] = as_rows(drawn, d)


def prefix_sums(
    allowed: Tables, skipped: Bool[np.ndarray, " sets"] | None = None
) -> Float[np.ndarray, " sets"]:
    """log Σ over orders and DAGs on each set of variables, but for those that are skipped."""
    d, num_sets = allowed.shape
    result = np.full(num_sets, -np.inf)
    result[0] = 0
    sizes = set_sizes(d)
    for size in range(1, d + 1):
        sets = np.flatnonzero(sizes == size)
        for last in range(d):
            inside = sets[sets >> last & 1 == 1]
            rest = inside ^ 1 << last
            result[inside] = np.logaddexp(result[inside], result[rest] + allowed[last, rest])
        if skipped is not None:
            result[sets[skipped[sets]]] = -np.inf
    return result


def _suffix_sums(allowed: Tables, skipped: Bool[np.ndarray, " sets"]) -> Float[np.ndarray, " sets"]:
    """log Σ over all ways to place the other variables after each set."""
    d, num_sets = allowed.shape
    result = np.full(num_sets, -np.inf)
    result[-1] = 0
    sizes = set_sizes(d)
    for size in range(d - 1, -1, -1):
        sets = np.flatnonzero(sizes == size)
        for following in range(d):
            outside = sets[sets >> following & 1 == 0]
            after = result[outside | 1 << following] + allowed[following, outside]
            result[outside] = np.logaddexp(result[outside], after)
        result[sets[skipped[sets]]] = -np.inf
    return result
