"""DAGs of a Markov equivalence class, given its CPDAG: one with a wanted start, or a random one.

Sets of nodes are whole numbers, bit i for node i. The undirected parts of a CPDAG are chordal,
and their orientations without new colliders are independent of one another.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import factorial

import numpy as np
from jaxtyping import Int8

from bayesdag.types import Graph


def bits(mask: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def row_masks(matrix: Graph) -> list[int]:
    """Each row of a matrix as a set."""
    packed = np.packbits(np.asarray(matrix) != 0, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def is_clique(members: int, joined: Sequence[int]) -> bool:
    """Whether every two members are joined."""
    return all(members & ~(joined[i] | 1 << i) == 0 for i in bits(members))


def member_that_starts_with(cpdag: Graph, *starts: Sequence[int]) -> Int8[np.ndarray, "d d"]:
    """The DAG of the class in which each list of nodes comes first in its undirected part.

    A maximum cardinality search that visits these nodes first: each must be joined to
    those before it by a clique, or the DAG has other colliders than its class.
    """
    edges = np.asarray(cpdag) != 0
    joined = row_masks(edges & edges.T)
    directed = edges & ~edges.T
    place = _search(joined, [node for start in starts for node in start])
    return (directed | (edges & (place[:, None] < place[None, :]))).astype(np.int8)


def uniform_member(rng: np.random.Generator, cpdag: Graph) -> Int8[np.ndarray, "d d"]:
    """A DAG of the class, each with the same probability.

    The root of an undirected part is drawn by how many orientations it leaves; the parts that
    it leaves undirected come next. Counting takes exponential time in dense parts that are
    neither trees nor complete; in sparse graphs they are small.

    References:
        He, Jia, Yu (2015), Counting and exploring sizes of Markov equivalence classes of
        directed acyclic graphs, Journal of Machine Learning Research.
    """
    edges = np.asarray(cpdag) != 0
    undirected = edges & edges.T
    graph = (edges & ~undirected).astype(np.int8)
    for component in components(row_masks(undirected)):
        for cause, effect in _Orientations(row_masks(undirected)).draw(rng, component):
            graph[cause, effect] = 1
    return graph


def components(joined: Sequence[int], within: int | None = None) -> list[int]:
    """Connected parts of more than one node."""
    left = (1 << len(joined)) - 1 if within is None else within
    found: list[int] = []
    while left:
        part, fresh = 0, left & -left
        while fresh:
            part |= fresh
            reached = 0
            for i in bits(fresh):
                reached |= joined[i]
            fresh = reached & left & ~part
        left &= ~part
        if part & (part - 1):
            found.append(part)
    return found


def _search(joined: Sequence[int], first: Iterable[int]) -> np.ndarray:
    """Place of each node: `first`, then always one with most neighbours before it."""
    num = len(joined)
    place, weight = np.full(num, -1), np.zeros(num, dtype=int)
    waiting = list(first)
    for position in range(num):
        if position < len(waiting):
            node = waiting[position]
        else:
            node = int(np.argmax(np.where(place < 0, weight, -1)))
        place[node] = position
        weight[list(bits(joined[node]))] += 1
    return place


class _Orientations:
    """Orientations of connected chordal graphs without colliders: their number, and draws."""

    def __init__(self, joined: Sequence[int]) -> None:
        self._joined = joined
        self._known: dict[int, int] = {}

    def count(self, part: int) -> int:
        if part not in self._known:
            self._known[part] = self._counted(part)
        return self._known[part]

    def draw(self, rng: np.random.Generator, part: int) -> list[tuple[int, int]]:
        """Edges of one orientation, each orientation with the same probability."""
        nodes = list(bits(part))
        size, num_edges = len(nodes), self._num_edges(part)
        if num_edges == size * (size - 1) // 2:
            order = [nodes[int(k)] for k in rng.permutation(size)]
            return [(a, b) for k, a in enumerate(order) for b in order[k + 1 :]]
        if num_edges == size - 1:
            root = nodes[int(rng.integers(size))]
        else:
            numbers = [self._count_rooted(part, node) for node in nodes]
            total = sum(numbers)
            root = nodes[int(rng.choice(size, p=[number / total for number in numbers]))]
        edges, rest = self._rooted(part, root)
        for inner in rest:
            edges += self.draw(rng, inner)
        return edges

    def _counted(self, part: int) -> int:
        size, num_edges = part.bit_count(), self._num_edges(part)
        if num_edges == size - 1:
            return size
        if num_edges == size * (size - 1) // 2:
            return factorial(size)
        return sum(self._count_rooted(part, node) for node in bits(part))

    def _count_rooted(self, part: int, root: int) -> int:
        number = 1
        for inner in self._rooted(part, root)[1]:
            number *= self.count(inner)
        return number

    def _num_edges(self, part: int) -> int:
        return sum((self._joined[i] & part).bit_count() for i in bits(part)) // 2

    def _rooted(self, part: int, root: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Edges that one root directs, and the parts that it leaves undirected."""
        joined = {i: self._joined[i] & part for i in bits(part)}
        into: dict[int, int] = dict.fromkeys(joined, 0)
        edges: list[tuple[int, int]] = []
        left, level, rest = part & ~(1 << root), 1 << root, list[int]()
        while left:
            reached = 0
            for i in bits(level):
                reached |= joined[i] & left
            for j in bits(reached):
                into[j] = joined[j] & level
                edges += [(i, j) for i in bits(into[j])]
            inside = {i: joined[i] & reached for i in bits(reached)}
            edges += _directed_inside(inside, into, joined)
            masks = [inside.get(i, 0) for i in range(len(self._joined))]
            rest += components(masks, reached)
            level, left = reached, left & ~reached
        return edges, rest


def _directed_inside(
    inside: dict[int, int], into: dict[int, int], joined: dict[int, int]
) -> list[tuple[int, int]]:
    """Edges y -> z of a level that x -> y forces, x and z not being joined.

    What is directed leaves `inside` and enters `into`.
    """
    edges: list[tuple[int, int]] = []
    changed = True
    while changed:
        changed = False
        for y in inside:
            for z in bits(inside[y]):
                if into[y] & ~joined[z] & ~(1 << z):
                    inside[y] &= ~(1 << z)
                    inside[z] &= ~(1 << y)
                    into[z] |= 1 << y
                    edges.append((y, z))
                    changed = True
    return edges
