"""Greedy equivalence search on a correlation matrix: forward, backward and turning steps.

States are Markov equivalence classes (CPDAGs). Every step edits one DAG of the class and takes
the class of the result; which edits are valid, and what each gains, follows from one node and
its neighbours. All gains are differences of local scores, so one cached quantity serves all
three phases: what each further parent x adds to the score of node y with parents S.

References:
    Chickering (2002), Optimal structure identification with greedy search, JMLR.
    Hauser & Bühlmann (2012), Characterization and greedy learning of interventional Markov
    equivalence classes of directed acyclic graphs, JMLR (the turning steps).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int8
from scipy.linalg import solve_triangular

from bayesdag.graphs import cpdag
from bayesdag.graphs.class_members import bits, is_clique, member_that_starts_with, row_masks

COLLINEAR = 1e-10  # share of a variance below which what is left of it is rounding
LEAST_GAIN = 1e-9  # in nats; smaller gains are rounding


class ClassMove(NamedTuple):
    """An edit of one DAG of the class.

    Attributes:
        gain: of the score.
        kind: "insert", "delete", "turn".
        cause: x, of the edge x -> y that is inserted, deleted or turned round.
        effect: y.
        first: C, the neighbours of y that become its parents.
    """

    gain: float
    kind: str
    cause: int
    effect: int
    first: int


class GaussianBIC:
    """Local scores of linear Gaussian families: log likelihood less `penalty`·½ log n per edge.

    Attributes:
        correlation: of all columns.
        num_rows: n.
        penalty: 1 is BIC.
    """

    def __init__(
        self, correlation: Float[np.ndarray, "d d"], num_rows: int, penalty: float = 1.0
    ) -> None:
        self.correlation, self.num_rows = correlation, num_rows
        self._cost = 0.5 * penalty * np.log(num_rows)
        # Beyond a third of the rows BIC rewards perfect fits of noise.
        self._most = max(1, num_rows // 3)
        self._known: dict[tuple[int, int], Float[np.ndarray, " d"]] = {}

    def gains(self, node: int, parents: int) -> Float[np.ndarray, " d"]:
        """What each further parent adds to the score; -inf where it is none."""
        key = (node, parents)
        if key not in self._known:
            self._known[key] = self._computed(node, list(bits(parents)))
        return self._known[key]

    def total(self, graph: Int8[np.ndarray, "d d"]) -> float:
        """Score of a graph, less that of the empty one."""
        found = 0.0
        for node, parents in enumerate(row_masks(graph.T)):
            before = 0
            for parent in bits(parents):
                found += float(self.gains(node, before)[parent])
                before |= 1 << parent
        return found

    def _computed(self, node: int, parents: list[int]) -> Float[np.ndarray, " d"]:
        matrix = self.correlation
        left, shared = np.ones(len(matrix)), matrix[node]
        if parents:
            root = np.linalg.cholesky(matrix[np.ix_(parents, parents)])
            explained = solve_triangular(root, matrix[parents], lower=True, check_finite=False)
            left = left - np.einsum("pd,pd->d", explained, explained)
            shared = shared - explained[:, node] @ explained
        open_to = left > COLLINEAR
        open_to[[node, *parents]] = False
        if len(parents) >= self._most or left[node] <= COLLINEAR:
            open_to[:] = False
        share = np.zeros(len(matrix))
        share[open_to] = shared[open_to] ** 2 / (left[node] * left[open_to])
        gain = -0.5 * self.num_rows * np.log1p(-np.minimum(share, 1 - COLLINEAR)) - self._cost
        return np.where(open_to, gain, -np.inf)


def search(score: GaussianBIC) -> Int8[np.ndarray, "d d"]:
    """The CPDAG that forward, backward and turning steps end at, repeated until none gains."""
    d = len(score.correlation)
    found = EquivalenceClass(np.zeros((d, d), dtype=np.int8))
    moved = True
    while moved:
        moved = False
        for phase in (Insertions(score), Deletions(score), Turns(score)):
            while (best := phase.best(found)) is not None:
                found, moved = EquivalenceClass(best), True
    return found.cpdag


class EquivalenceClass:
    """A CPDAG as sets of neighbours.

    Attributes:
        cpdag: the matrix.
        parents: of each node, by directed edges.
        children: likewise.
        joined: by undirected edges.
        adjacent: by any edge.
        onward: nodes that a semi-directed path may go on to.
    """

    def __init__(self, matrix: Int8[np.ndarray, "d d"]) -> None:
        edges = matrix != 0
        self.cpdag = matrix
        self.parents = row_masks(edges.T & ~edges)
        self.children = row_masks(edges & ~edges.T)
        self.joined = row_masks(edges & edges.T)
        self.adjacent = row_masks(edges | edges.T)
        self.onward = row_masks(edges)

    @property
    def num_nodes(self) -> int:
        """d."""
        return len(self.parents)

    def surroundings(self, node: int) -> tuple[int, ...]:
        """All that decides which moves there are at a node, paths aside."""
        near = self.joined[node] | self.parents[node] | self.children[node]
        links = (self.adjacent[m] for m in bits(near))
        marks = (self.parents[m] for m in bits(self.children[node] | self.joined[node]))
        return (self.parents[node], self.joined[node], self.children[node], *links, *marks)

    def cliques(self, within: int, start: int = 0) -> Iterator[int]:
        """Sets of joined nodes that contain `start`, all cliques; none if `start` is none."""
        if not is_clique(start, self.adjacent):
            return
        yield start
        rest = within & ~start
        while rest:
            node = rest & -rest
            rest ^= node
            inner = rest & self.adjacent[node.bit_length() - 1]
            if start & ~self.adjacent[node.bit_length() - 1] == 0:
                yield from self.cliques(inner | start | node, start | node)

    def leads(self, source: int, target: int, blocked: int, without: int = 0) -> bool:
        """Whether a semi-directed path leads from source to target past the blocked nodes.

        `without` are nodes that its first step must not take.
        """
        seen = blocked | 1 << source
        fresh = self.onward[source] & ~without & ~seen
        while fresh:
            if fresh >> target & 1:
                return True
            seen |= fresh
            reached = 0
            for node in bits(fresh):
                reached |= self.onward[node]
            fresh = reached & ~seen
        return False


class _Phase(ABC):
    """Moves of one kind at every node, remembered until the surroundings change."""

    def __init__(self, score: GaussianBIC) -> None:
        self.score = score
        self._known: dict[int, tuple[tuple[int, ...], list[ClassMove]]] = {}

    def best(self, state: EquivalenceClass) -> Int8[np.ndarray, "d d"] | None:
        """The class after the valid move that gains most; None where none gains."""
        moves = [move for node in range(state.num_nodes) for move in self._moves(state, node)]
        for move in sorted(moves, reverse=True):
            if self.is_valid(state, move):
                return cpdag(self.applied(state, move))
        return None

    def _moves(self, state: EquivalenceClass, node: int) -> list[ClassMove]:
        around = state.surroundings(node)
        known = self._known.get(node)
        if known is None or known[0] != around:
            gaining = [m for m in self.moves(state, node) if m.gain > LEAST_GAIN]
            known = self._known[node] = (around, gaining)
        return known[1]

    @abstractmethod
    def moves(self, state: EquivalenceClass, node: int) -> Iterator[ClassMove]:
        """Moves with this node as y that are valid as far as its surroundings tell."""

    @abstractmethod
    def is_valid(self, state: EquivalenceClass, move: ClassMove) -> bool:
        """Whether no path forbids the move."""

    @abstractmethod
    def applied(self, state: EquivalenceClass, move: ClassMove) -> Int8[np.ndarray, "d d"]:
        """A DAG of the class after the move."""


class Insertions(_Phase):
    """x -> y for nodes that are not adjacent; some neighbours of y become its parents."""

    def moves(self, state: EquivalenceClass, node: int) -> Iterator[ClassMove]:
        """For every clique C of neighbours: those x whose common neighbours are in C."""
        joined = state.joined[node]
        apart = _members(~(state.adjacent[node] | 1 << node), state.num_nodes)
        for first in state.cliques(joined):
            gains = self.score.gains(node, state.parents[node] | first)
            reaching = 0
            for other in bits(joined & ~first):
                reaching |= state.adjacent[other]
            allowed = apart & ~_members(reaching, state.num_nodes) & (gains > LEAST_GAIN)
            for x in np.flatnonzero(allowed).tolist():
                yield ClassMove(float(gains[x]), "insert", x, node, first)

    def is_valid(self, state: EquivalenceClass, move: ClassMove) -> bool:
        """No semi-directed path from y to x past C: the edge would close a cycle."""
        return not state.leads(move.effect, move.cause, move.first)

    def applied(self, state: EquivalenceClass, move: ClassMove) -> Int8[np.ndarray, "d d"]:
        """C, then y, come first in their part; then x -> y is added."""
        graph = member_that_starts_with(state.cpdag, [*bits(move.first), move.effect])
        graph[move.cause, move.effect] = 1
        return graph


class Deletions(_Phase):
    """An edge between x and y goes; C are the common neighbours that stay parents of y."""

    def moves(self, state: EquivalenceClass, node: int) -> Iterator[ClassMove]:
        """For every parent or neighbour x of y, every clique of common neighbours."""
        for x in bits(state.parents[node] | state.joined[node]):
            common = state.joined[node] & state.adjacent[x]
            for first in state.cliques(common):
                rest = (state.parents[node] | first) & ~(1 << x)
                gain = -float(self.score.gains(node, rest)[x])
                yield ClassMove(gain, "delete", x, node, first)

    def is_valid(self, state: EquivalenceClass, move: ClassMove) -> bool:
        """No path forbids a deletion."""
        del state, move
        return True

    def applied(self, state: EquivalenceClass, move: ClassMove) -> Int8[np.ndarray, "d d"]:
        """C, x where it is a neighbour, then y; then x -> y is deleted."""
        beside = [move.cause] if state.joined[move.effect] >> move.cause & 1 else []
        start = [*bits(move.first), *beside, move.effect]
        graph = member_that_starts_with(state.cpdag, start)
        graph[move.cause, move.effect] = 0
        return graph


class Turns(_Phase):
    """y -> x or y - x becomes x -> y, in another class; C become parents of y."""

    def moves(self, state: EquivalenceClass, node: int) -> Iterator[ClassMove]:
        """Edges that leave y, and undirected ones."""
        for x in bits(state.children[node]):
            common = state.joined[node] & state.adjacent[x]
            lost = float(self.score.gains(x, state.parents[x] & ~(1 << node))[node])
            for first in state.cliques(state.joined[node], common):
                gained = float(self.score.gains(node, state.parents[node] | first)[x])
                yield ClassMove(gained - lost, "turn", x, node, first)
        for x in bits(state.joined[node]):
            yield from self._undirected(state, x, node)

    def _undirected(self, state: EquivalenceClass, x: int, y: int) -> Iterator[ClassMove]:
        """Without a member of C that x is not joined to, the class would stay the same."""
        common = state.joined[y] & state.adjacent[x]
        for first in state.cliques(state.joined[y] & ~(1 << x)):
            between, alone = first & common, first & ~common
            around = state.joined[y] & ~between
            if alone == 0 or self._linked(state, alone, common & ~first, around):
                continue
            gained = float(self.score.gains(y, state.parents[y] | first)[x])
            lost = float(self.score.gains(x, state.parents[x] | between)[y])
            yield ClassMove(gained - lost, "turn", x, y, first)

    @staticmethod
    def _linked(state: EquivalenceClass, some: int, others: int, within: int) -> bool:
        """Whether undirected paths inside a set link some nodes to others."""
        seen = fresh = some
        while fresh:
            reached = 0
            for member in bits(fresh):
                reached |= state.joined[member] & within
            fresh = reached & ~seen
            seen |= fresh
        return bool(seen & others)

    def is_valid(self, state: EquivalenceClass, move: ClassMove) -> bool:
        """No other way leads from y to x, past C and the neighbours of x."""
        if state.joined[move.effect] >> move.cause & 1:
            return True
        blocked = move.first | state.joined[move.cause]
        return not state.leads(move.effect, move.cause, blocked, without=1 << move.cause)

    def applied(self, state: EquivalenceClass, move: ClassMove) -> Int8[np.ndarray, "d d"]:
        """C, then y, and x first in its part or right after y; then the edge is turned."""
        start = [*bits(move.first), move.effect]
        graph = member_that_starts_with(state.cpdag, start + [move.cause])
        graph[move.effect, move.cause], graph[move.cause, move.effect] = 0, 1
        return graph


def _members(mask: int, num: int) -> Bool[np.ndarray, " d"]:
    """A set as booleans."""
    whole = mask & ((1 << num) - 1)
    size = (num + 7) // 8
    packed = np.frombuffer(whole.to_bytes(size, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=num, bitorder="little").astype(bool)
