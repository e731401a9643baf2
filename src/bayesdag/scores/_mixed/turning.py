"""Evidence between kinds that no shape of a distribution turns into a direction.

A measurement x and a level k are one joint distribution, which can be written as x and then k
(a density, and a logistic curve) or as k and then x (shares, and a density for each level). Data
of either causal direction may look simple in either way: a rounded copy of a normal variable
always looks like an effect of its causes, a mixture like an effect of its label. Which way is
simple therefore says nothing about which way is causal, and arrows between kinds are scored in
one way only, whichever way they point: measurements first, then counts, then levels,

    p(i | A, B) = F(i | A) F(B | A, i) / F(B | A),

with B the parents of i that come later than i itself, A the other parents, and F the evidence of
functions in one direction. This is Bayes' theorem; in a complete graph all the fractions cancel,
so that equivalent graphs differ in nothing but functions among measurements. Levels have
distributions of any shape, so that F(B | A) misses little and the fraction is nearly a density.
Only rows in which i was observed count for any of the terms: where an experimenter set i, the
other way of writing the joint distribution knows nothing of it.

F(i | A) can miss much, though: where levels act on i beside other measurements, what these leave
is a mixture that only the levels explain. There the arrows are also scored as they are, by
F(i | A, B), less what they would seem to be better at without the measurements A, which is the
shape of a margin: the fraction and this are equally probable beforehand.

Directions between kinds come from independences, interventions and knowledge, and among
measurements from the functions between them.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.types import ParentSets

MEASUREMENTS, COUNTS, LEVELS = range(3)
MOST_ORDERED = 3  # columns over whose orders joint evidence is averaged; more follow in one
# A node, the set of its parents as bits, and the column whose observed rows count.
FamilyKey = tuple[int, int, int]


class TurnedFamily(NamedTuple):
    """A family, with the arrows that are turned.

    Attributes:
        node: whose parents these are.
        earlier: parents as bits whose arrows stay as they are.
        later: parents whose arrows are turned.
        rows: column whose observed rows count.
    """

    node: int
    earlier: int
    later: tuple[int, ...]
    rows: int


class TurningScores:
    """Evidence of families of any kinds, each one-directional family computed once.

    Args:
        evidence: of one node with m parent sets, functions in one direction, in the rows where
            a column was observed.
        rank: of every column by its kind: measurements, counts, levels.
        fixed: columns that nothing acts on: their arrows are never turned.
        observed: False where an experimenter set a cell.
    """

    def __init__(
        self,
        evidence: Callable[[int, ParentSets, int], Float[np.ndarray, " m"]],
        rank: Int[np.ndarray, " d"],
        fixed: Bool[np.ndarray, " d"],
        observed: Bool[np.ndarray, "n d"],
    ) -> None:
        self._evidence, self._rank, self._fixed = evidence, rank, fixed
        # Columns that were observed in the same rows share what is computed for one of them.
        first: dict[bytes, int] = {}
        self._rows_of = [first.setdefault(seen.tobytes(), j) for j, seen in enumerate(observed.T)]
        self._known: dict[FamilyKey, float] = {}

    def __call__(
        self, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Log evidence of node m with parents m."""
        turned = [
            self._turned(node, np.flatnonzero(chosen).tolist())
            for node, chosen in zip(nodes.tolist(), parents, strict=True)
        ]
        self._compute(key for one in turned for key in self._needed(one))
        return np.array([self._value(one) for one in turned])

    def _turned(self, node: int, parents: list[int]) -> TurnedFamily:
        """The family with those arrows turned that come from later columns."""
        place = self._places()
        later = [j for j in parents if place[j] > place[node] and not self._fixed[j]]
        earlier = _bits([j for j in parents if j not in later])
        later.sort(key=self._own_evidence)
        return TurnedFamily(node, earlier, tuple(later), self._rows_of[node])

    def _needed(self, one: TurnedFamily) -> Iterator[FamilyKey]:
        yield one.node, one.earlier, one.rows
        for given in (one.earlier, one.earlier | 1 << one.node):
            for chosen in _subsets(one.later):
                yield from ((j, given | _bits(chosen), one.rows) for j in _next(one.later, chosen))
        if self._may_stay(one):
            later = _bits(one.later)
            yield one.node, one.earlier | later, one.rows
            yield one.node, self._alone(one).earlier | later, one.rows
            yield from self._needed(self._alone(one))

    def _value(self, one: TurnedFamily) -> float:
        value = self._known[one.node, one.earlier, one.rows]
        if not one.later:
            return value
        before, after = (
            self._joint(given, one.later, one.rows)
            for given in (one.earlier, one.earlier | 1 << one.node)
        )
        turned = value + after - before
        if not self._may_stay(one):
            return turned
        alone, later = self._alone(one), _bits(one.later)
        as_it_is = self._known[one.node, one.earlier | later, one.rows]
        of_shape = self._known[one.node, alone.earlier | later, one.rows] - self._value(alone)
        return float(np.logaddexp(turned, as_it_is - max(0.0, of_shape)) - np.log(2))

    def _may_stay(self, one: TurnedFamily) -> bool:
        """Whether arrows from levels to a measurement are also scored as they are.

        Where other measurements act on it, too, what they leave may be a mixture that only the
        levels explain.
        """
        levels = all(self._rank[j] == LEVELS for j in one.later)
        others = one.earlier != self._alone(one).earlier
        return bool(self._rank[one.node] == MEASUREMENTS and one.later and levels and others)

    def _alone(self, one: TurnedFamily) -> TurnedFamily:
        """The family without parents that are measurements."""
        fixed = _bits(np.flatnonzero(self._fixed).tolist())
        return one._replace(earlier=one.earlier & fixed)

    def _joint(self, given: int, columns: tuple[int, ...], rows: int) -> float:
        """Log evidence of several columns, the mean over the orders in which they follow.

        Regressions in one order are no regressions in another, and may fit far worse.
        """
        known: dict[tuple[int, ...], float] = {(): 0.0}
        for chosen in _subsets(columns):
            value = known[chosen]
            following = _next(columns, chosen)
            for j in following:
                larger = tuple(sorted((*chosen, j)))
                term = value + self._known[j, given | _bits(chosen), rows]
                # Of the orders of a set, one in as many as it has members ends in this column.
                term -= np.log(len(larger)) if len(columns) <= MOST_ORDERED else 0.0
                known[larger] = float(np.logaddexp(known.get(larger, -np.inf), term))
        return known[tuple(sorted(columns))]

    def _places(self) -> list[tuple[int, float]]:
        """Of every column: its rank, and among counts its own evidence.

        Counts are compared with one another, too: their likelihood is a shape like any other.
        """
        return [
            (int(rank), self._own_evidence(j) if rank == COUNTS else 0.0)
            for j, rank in enumerate(self._rank)
        ]

    def _own_evidence(self, j: int) -> float:
        """A column's own evidence, so that the order of the table does not matter."""
        key = (j, 0, self._rows_of[j])
        self._compute([key])
        return self._known[key]

    def _compute(self, keys: Iterable[FamilyKey]) -> None:
        missing: dict[tuple[int, int], list[int]] = {}
        for key in dict.fromkeys(keys):
            if key not in self._known:
                node, bits, rows = key
                missing.setdefault((node, rows), []).append(bits)
        for (node, rows), sets in missing.items():
            values = self._evidence(node, _members(sets, len(self._rank)), rows)
            for bits, value in zip(sets, values.tolist(), strict=True):
                self._known[node, bits, rows] = value


def _subsets(columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All sets that may have been added up before another column; small ones first.

    Of many columns only the first ones of one order.
    """
    if len(columns) > MOST_ORDERED:
        yield from (tuple(sorted(columns[:k])) for k in range(len(columns)))
        return
    for size in range(len(columns)):
        yield from combinations(sorted(columns), size)


def _next(columns: tuple[int, ...], chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Columns that may follow those that are chosen."""
    if len(columns) > MOST_ORDERED:
        return columns[len(chosen) : len(chosen) + 1]
    return tuple(j for j in columns if j not in chosen)


def _bits(columns: Iterable[int]) -> int:
    return sum(1 << j for j in columns)


def _members(sets: list[int], d: int) -> Bool[np.ndarray, "m d"]:
    """Sets as rows of True and False."""
    size = (d + 7) // 8
    raw = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in sets), np.uint8)
    return np.unpackbits(raw.reshape(len(sets), size), axis=1, bitorder="little")[:, :d] == 1
