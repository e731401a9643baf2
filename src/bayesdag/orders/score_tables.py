"""Tables of what each node contributes to the log posterior of an order.

Given an order the parents of the nodes are independent, so the log posterior of an order is
Σ_i T_i(predecessors of i), with T_i the log sum over the parent sets among them. Parents are
taken from a short list of candidates, and T_i is tabulated for every subset of it.

A node with many strong parents gets a table of another kind: a *core* of forced parents, included
whenever earlier in the order, and subsets of the uncertain candidates besides. Its table
has one row for a core that precedes as a whole, one for every core member that comes later
and one for every pair; an order beyond that is outside the table and counts as if the whole
core came later, less a hundred nats: so low that chains leave it. Both kinds are addressed
alike, by a sum over predecessors: the index of node i is
`base[i] + Σ_{j before i} stride[i, j]`, cut off at `top[i]`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from bayesdag.graphs.bitsets import log_subset_sum_stages, log_subset_sums
from bayesdag.orders.local_scores import FamilyScores, LocalScores

# Log posterior of what cannot be: finite, so that sums of it stay numbers in float32.
IMPOSSIBLE = -1e30
# Nats below the score without the core that an order outside a core table gets.
OUTSIDE = 100.0


class Lookup(NamedTuple):
    """Everything that the chains need.

    Attributes:
        values: T_i less its largest value, all nodes end to end, one row per component of
            the structure prior.
        weight: log weight of each component.
        offset: where the table of node i begins.
        base: index of node i without any predecessor.
        top: last index of node i; larger ones are cut off.
        stride: what variable j adds to the index of node i by preceding it.
    """

    values: Float32[np.ndarray, "c t"]
    weight: Float[np.ndarray, " c"]
    offset: Int[np.ndarray, " d"]
    base: Int[np.ndarray, " d"]
    top: Int[np.ndarray, " d"]
    stride: Int[np.ndarray, "d d"]


@dataclass(frozen=True)
class NodeTable:
    """Local scores of one node for every set that its candidates can represent.

    Attributes:
        node: whose parents these are.
        core: forced parents, included whenever earlier in the order; usually none.
        uncertain: the other candidates; bit k of a column stands for uncertain[k].
        late: core members that come after the node, by number, for each row.
        scores: score of the rest of the core with each subset; no structure prior in it.
        bare: score of each subset alone, without any of the core.
    """

    node: int
    core: tuple[int, ...]
    uncertain: tuple[int, ...]
    late: tuple[tuple[int, ...], ...]
    scores: Float[np.ndarray, "p q"]
    bare: Float[np.ndarray, " q"]
    _known: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def values(self, penalty: Float[np.ndarray, "c d"]) -> Float32[np.ndarray, "c t"]:
        """T less its largest value, end to end, for each component; kept for the next run."""
        name = penalty.tobytes()
        if name not in self._known:
            sums = self.log_sums(penalty).reshape(len(penalty), -1)
            # float32 keeps differences well only near zero: take the node's best score out.
            lowered = np.maximum(sums - sums.max(), IMPOSSIBLE).astype(np.float32)
            self._known.clear()
            self._known[name] = lowered
        return self._known[name]

    def weighted(self, penalty: Float[np.ndarray, "*c d"]) -> Float[np.ndarray, "*c p q"]:
        """Scores with the log prior of their number of parents."""
        columns = np.bitwise_count(np.arange(self.scores.shape[1]))
        rows = np.array([len(self.core) - len(late) for late in self.late])
        return self.scores + penalty[..., rows[:, None] + columns]

    def log_sums(self, penalty: Float[np.ndarray, "*c d"]) -> Float[np.ndarray, "*c r q"]:
        """T by row of the index and column, rows outside the table included."""
        sums = log_subset_sums(self.weighted(penalty))
        if not self.core:
            return sums
        # Where a late core member makes the order impossible, so do three of them.
        forced = not np.isfinite(sums).any(axis=-1).all()
        outside = np.full((*sums.shape[:-2], 1, sums.shape[-1]), -np.inf)
        if not forced:
            outside[:] = self._outside(penalty, sums)[..., None, None]
        return np.concatenate([sums, outside], axis=-2)[..., self.row_of_index(), :]

    def _outside(
        self, penalty: Float[np.ndarray, "*c d"], sums: Float[np.ndarray, "*c p q"]
    ) -> Float[np.ndarray, "*c"]:
        """T where three core members or more come later: no more than if all of them did.

        Otherwise chains would turn the edges of a node with strong parents round, and the
        other nodes would gain what this one does not seem to lose. One number: an index that
        is cut off has lost its column.
        """
        alone = self.bare + penalty[..., np.bitwise_count(np.arange(len(self.bare)))]
        values = np.concatenate([alone, sums.reshape(*sums.shape[:-2], -1)], axis=-1)
        return np.asarray(np.where(np.isfinite(values), values, np.inf).min(axis=-1) - OUTSIDE)

    def dispensable(self, penalty: Float[np.ndarray, " d"], gap: float) -> set[int]:
        """The core member, or the pair, whose absence costs least, if no more than `gap` nats.

        It is no certain parent, whatever made it one: the table says so itself. No more than
        that, because another that could be missed now may be needed once this one is gone.
        """
        total = log_subset_sums(self.weighted(penalty))[:, -1]
        least = int(np.argmax(total[1:])) + 1 if len(total) > 1 else 0
        if not least or total[least] <= total[0] - gap:
            return set()
        return {self.core[k] for k in self.late[least]}

    def row_of_index(self) -> Int[np.ndarray, " r"]:
        """Row of `scores` behind each sum of core strides; one past the end: none."""
        strides = core_strides(len(self.core))
        rows = np.full(int(3 * (strides.min() - 1)) + 1 if self.core else 1, len(self.late))
        for row, late in enumerate(self.late):
            rows[strides[list(late)].sum()] = row
        return rows

    def draw(
        self,
        rng: np.random.Generator,
        before: Bool[np.ndarray, "s d"],
        penalty: Float[np.ndarray, " d"],
    ) -> tuple[Bool[np.ndarray, "s d"], Bool[np.ndarray, " s"]]:
        """Exact draws of the parents given the predecessors, and which orders the table held.

        The subset sums are kept after each bit. Going back through them, each candidate is
        in or out with the odds of the two halves of the sum it was part of.
        """
        steps = (~before[:, list(self.core)]) @ core_strides(len(self.core))
        rows = self.row_of_index()
        row = rows[np.minimum(steps, len(rows) - 1)]
        inside = row < len(self.late)
        row = np.where(inside, row, 0)
        column = before[:, list(self.uncertain)] @ (1 << np.arange(len(self.uncertain)))
        stages = list(log_subset_sum_stages(self.weighted(penalty)))
        for bit in range(len(self.uncertain) - 1, -1, -1):
            without = column & ~(1 << bit)
            here = stages[bit]
            odds = np.exp(np.minimum(_gap(here[row, column], here[row, without]), 700.0))
            taken = rng.random(len(column)) * (1 + odds) < odds
            column = np.where(taken, column, without)
        parents = np.zeros_like(before)
        parents[:, list(self.uncertain)] = column[:, None] >> np.arange(len(self.uncertain)) & 1
        parents[:, list(self.core)] = before[:, list(self.core)]
        return parents, inside


def tabulate(
    scores: FamilyScores, node: int, core: Sequence[int], uncertain: Sequence[int]
) -> NodeTable:
    """The table of a node: every set it can represent is scored."""
    late, parents = represented(scores.num_variables, core, uncertain)
    if isinstance(scores, LocalScores):
        values = scores.of_subsets(node, parents, uncertain)
    else:
        values = scores.of_node(node, parents.reshape(-1, scores.num_variables))
        values = values.reshape(parents.shape[:2])
    table = (values[: len(late)], values[-1])
    return NodeTable(node, tuple(core), tuple(uncertain), tuple(late), *table)


def lookup(
    tables: Sequence[NodeTable],
    log_weights: Float[np.ndarray, " c"],
    penalties: Float[np.ndarray, "c d"],
    contexts: Bool[np.ndarray, " d"] | None = None,
) -> Lookup:
    """The tables of all nodes under every component of the structure prior.

    Args:
        contexts: True for nodes that precede all others, wherever they stand in an order.
    """
    pieces, offset, d = [], [0], len(tables)
    for table in tables:
        pieces.append(table.values(penalties))
        offset.append(offset[-1] + pieces[-1].shape[1])
    stride, base = np.zeros((d, d), dtype=np.int64), np.zeros(d, dtype=np.int64)
    for i, table in enumerate(tables):
        width = table.scores.shape[1]
        steps = core_strides(len(table.core)) * width
        base[i] = steps.sum()
        stride[i, list(table.core)] = -steps
        stride[i, list(table.uncertain)] = 1 << np.arange(len(table.uncertain))
    if contexts is not None:
        # Counted as predecessors beforehand: their place in the order then changes nothing.
        base += stride[:, contexts].sum(axis=1, dtype=np.int64)
        stride[:, contexts] = 0
    return Lookup(
        values=np.concatenate(pieces, axis=1),
        weight=log_weights - log_weights.max(),
        offset=np.array(offset[:-1]),
        base=base,
        top=np.diff(offset) - 1,
        stride=stride,
    )


def represented(
    d: int, core: Sequence[int], uncertain: Sequence[int]
) -> tuple[list[tuple[int, ...]], Bool[np.ndarray, "r q d"]]:
    """Late core members of each row, and the parent sets of a table.

    Where there is a core, sets without it follow; they have no row of their own.
    """
    late = [some for size in range(3) for some in combinations(range(len(core)), size)]
    width = 1 << len(uncertain)
    parents = np.zeros((len(late) + bool(core), width, d), dtype=bool)
    parents[:, :, list(uncertain)] = np.arange(width)[:, None] >> np.arange(len(uncertain)) & 1
    for row, some in enumerate(late):
        parents[row, :, [member for k, member in enumerate(core) if k not in some]] = True
    return late, parents


def draw_graphs(
    rng: np.random.Generator,
    tables: Sequence[NodeTable],
    penalties: Float[np.ndarray, "c d"],
    orders: Int[np.ndarray, "s d"],
    component: Int[np.ndarray, " s"],
) -> tuple[Bool[np.ndarray, "s d d"], Bool[np.ndarray, "s d"]]:
    """A graph for each order, and whose tables held the order."""
    position = np.argsort(orders, axis=1)
    graphs = np.zeros((*orders.shape, orders.shape[1]), dtype=bool)
    inside = np.zeros(orders.shape, dtype=bool)
    for table in tables:
        before = position < position[:, [table.node]]
        for c in np.unique(component):
            some = np.flatnonzero(component == c)
            parents, able = table.draw(rng, before[some], penalties[c])
            graphs[some, :, table.node] = parents
            inside[some, table.node] = able
    return graphs, inside


def core_strides(num_core: int) -> Int[np.ndarray, " k"]:
    """Increment of the row index for each late core member.

    Sums of one and of two are all different: a greedy sequence without equal sums of two,
    raised by more than twice its last member, so that the number of terms shows as well.
    """
    marks: list[int] = []
    sums: set[int] = set()
    mark = 0
    while len(marks) < num_core:
        mark += 1
        fresh = {mark + other for other in [*marks, mark]}
        if not fresh & sums:
            marks.append(mark)
            sums |= fresh
    return np.array(marks, dtype=int) + (2 * max(marks, default=0) + 1)


def _gap(with_it: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Log odds; where neither half has any weight the candidate stays out."""
    with np.errstate(invalid="ignore"):
        gap = with_it - without
    return np.where(np.isnan(gap), -np.inf, gap)
