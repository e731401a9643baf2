"""Candidate parents of every node's table, and what the other variables would add.

Tables can hold about a dozen candidates per node. They start as what the order search found,
and widen from the posterior itself: every other variable is tried on top of the drawn parent
sets, in the drawn orders, and enters when its edge would be probable enough.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.orders.local_scores import FamilyScores
from bayesdag.orders.search import Found
from bayesdag.types import Array

# An edge this improbable may stay outside of the tables.
NEGLIGIBLE = 0.001
# One this probable is worth another round of tables and chains.
WORTH_A_ROUND = 0.01
# Parents this certain may be taken for granted where a table is crowded.
CERTAIN = 0.999
UNCERTAIN = 0.99 * CERTAIN
# Distinct parent sets of a node on which the others are tried.
MOST_SETS = 40
# Nats that count of what a variable would add; more is as certain, and would overflow.
MOST_GAIN = 500.0


class Lists(NamedTuple):
    """Candidates of every node, most probable first.

    Attributes:
        core: forced parents, included whenever earlier in the order.
        uncertain: all other candidates.
        crowded: True where probable candidates had to be left out.
    """

    core: tuple[tuple[int, ...], ...]
    uncertain: tuple[tuple[int, ...], ...]
    crowded: Bool[np.ndarray, " d"]

    def inside(self, node: int) -> set[int]:
        """All candidates of a node."""
        return {*self.core[node], *self.uncertain[node]}


class Limits(NamedTuple):
    """Limits of table sizes: candidates without a core, and beside one."""

    plain: int
    beside_core: int


class Outside(NamedTuple):
    """Estimated posterior of edges from variables that are no candidates.

    Attributes:
        probability: of the edge j -> i, estimated as if j alone were added; 0 for candidates.
        log_mass: for each node the log of the factor by which the posterior mass would grow
            if each of them could be added alone to the drawn parent sets, on average.
    """

    probability: Float[np.ndarray, "d d"]
    log_mass: Float[np.ndarray, " d"]


def of_search(
    scores: FamilyScores, penalty: Float[np.ndarray, " d"], found: Sequence[Found], margin: float
) -> Float[np.ndarray, "d d"]:
    """Rough probability of each edge, after the search.

    Parents in any of the better results count most, then their reversals, then other
    parents of the same child: where two causes cancel, greedy search takes one of them for
    the other's effect. Other predecessors count by what they would add to the best result.
    """
    best = max(found, key=lambda result: result.value)
    graphs = np.stack([f.graph for f in found if f.value > best.value - margin]) != 0
    position = np.argsort(best.order)
    before = position[:, None] < position[None, :]
    gain = _gains(scores, penalty, np.arange(len(before)), best.graph.T != 0)
    rough = np.where(before, _probability(gain.T), 0.0)
    married = (best.graph.astype(int) @ best.graph.T > 0) & ~np.eye(len(before), dtype=bool)
    rough = np.maximum(rough, 0.25 * married)
    rough = np.maximum(rough, 0.5 * graphs.any(axis=0).T)
    rough = np.maximum(rough, 0.75 * graphs.any(axis=0))
    rough = np.maximum(rough, graphs.mean(axis=0) * CERTAIN)
    return np.where(scores.knowledge.forbidden, 0.0, np.maximum(rough, scores.knowledge.required))


def outside(
    scores: FamilyScores,
    penalty: Float[np.ndarray, " d"],
    lists: Lists,
    orders: Int[np.ndarray, "s d"],
    graphs: Bool[np.ndarray, "s d d"],
) -> Outside:
    """Every other variable tried on top of the drawn parents, where it precedes the node."""
    d = scores.num_variables
    position = np.argsort(orders, axis=1)
    result = Outside(np.zeros((d, d)), np.zeros(d))
    _prefetch(scores, graphs)
    for node in range(d):
        sets, which, count = _distinct(graphs[:, :, node])
        common = np.argsort(-count, kind="stable")[:MOST_SETS]
        kept = np.isin(which, common)
        gain = np.full(sets.shape, -np.inf)
        gain[common] = _gains(scores, penalty, np.full(len(common), node), sets[common])
        gain[:, list(lists.inside(node))] = -np.inf
        # Few sets are drawn many times: the exponentials are theirs, not those of the draws.
        before = position[kept] < position[kept][:, [node]]
        which = which[kept]
        result.probability[:, node] = (_probability(gain)[which] * before).mean(axis=0)
        total = (np.exp(np.minimum(gain, MOST_GAIN))[which] * before).sum(axis=1)
        result.log_mass[node] = np.log1p(total).mean()
    return result


def _distinct(
    sets: Bool[np.ndarray, "s d"],
) -> tuple[Bool[np.ndarray, "k d"], Int[np.ndarray, " s"], Int[np.ndarray, " k"]]:
    """Different rows, which of them each row is, and how often each occurs."""
    packed = np.ascontiguousarray(np.packbits(sets, axis=1))
    key = packed.view(f"V{packed.shape[1]}").ravel()
    _, first, which, count = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    return sets[first], which.reshape(-1), count


def choose(
    probability: Float[np.ndarray, "d d"],
    required: Bool[np.ndarray, "d d"],
    limits: Limits,
) -> Lists:
    """Candidate lists from (rough) edge probabilities; required parents are always in."""
    core, uncertain, crowded = [], [], []
    for node in range(len(probability)):
        column = np.where(required[:, node], 2.0, probability[:, node])
        ranked = np.argsort(-column, kind="stable")
        ranked = ranked[column[ranked] > NEGLIGIBLE]
        certain, rest, left_out = _split(ranked, column, limits)
        core.append(certain)
        uncertain.append(rest)
        crowded.append(left_out)
    return Lists(tuple(core), tuple(uncertain), np.array(crowded))


def _split(
    ranked: Int[np.ndarray, " k"], value: Float[np.ndarray, " d"], limits: Limits
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Core, uncertain candidates, and whether probable ones are left out."""
    certain = int(np.count_nonzero(value[ranked] >= CERTAIN))
    if len(ranked) <= limits.plain:
        size, end = 0, len(ranked)
    elif certain <= limits.plain // 2:
        size, end = 0, limits.plain
    else:
        size = min(certain, len(ranked) - limits.beside_core)
        end = min(len(ranked), size + limits.beside_core)
    # Sorted: the same list, in whatever order it was found, has the same table.
    core, uncertain = (tuple(np.sort(part).tolist()) for part in (ranked[:size], ranked[size:end]))
    return core, uncertain, end < len(ranked)


def _prefetch(scores: FamilyScores, graphs: Bool[np.ndarray, "s d d"]) -> None:
    """Have all that `outside` will ask for computed in one batch, where that is faster."""
    if scores.stable:
        return
    sets = []
    for node in range(scores.num_variables):
        some, _, count = _distinct(graphs[:, :, node])
        sets.append(some[np.argsort(-count, kind="stable")[:MOST_SETS]])
    nodes = np.repeat(np.arange(scores.num_variables), [len(some) for some in sets])
    scores.prefetch_additions(nodes, np.concatenate(sets))


def _gains(
    scores: FamilyScores, penalty: np.ndarray, nodes: Int[Array, " b"], parents: np.ndarray
) -> Float[np.ndarray, "b d"]:
    """Gain in score of each further parent, the structure prior included."""
    size = parents.sum(axis=1)
    larger = penalty[np.minimum(size + 1, len(penalty) - 1)] - penalty[size]
    now = scores(np.asarray(nodes), parents)
    return scores.additions(np.asarray(nodes), parents) + (larger - now)[:, None]


def _probability(gain: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -gain))
