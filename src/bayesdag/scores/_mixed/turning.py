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

Directions between kinds come from independences, interventions and knowledge, and among
measurements from the functions between them.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.types import ParentSets

MEASUREMENTS, COUNTS, LEVELS = range(3)
# A node, the set of its parents as bits, and the column whose observed rows count.
FamilyKey = tuple[int, int, int]


class TurnedFamily(NamedTuple):
    """Families whose evidence makes up that of one family, and the signs they enter with.

    Attributes:
        added: families whose evidence is added.
        subtracted: families whose evidence is subtracted.
    """

    added: tuple[FamilyKey, ...]
    subtracted: tuple[FamilyKey, ...]


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
        self._compute(key for one in turned for key in (*one.added, *one.subtracted))
        return np.array([self._value(one) for one in turned])

    def _value(self, one: TurnedFamily) -> float:
        added = sum(self._known[key] for key in one.added)
        return added - sum(self._known[key] for key in one.subtracted)

    def _turned(self, node: int, parents: list[int]) -> TurnedFamily:
        """The family with those arrows turned that come from later columns."""
        rows, place = self._rows_of[node], self._places()
        later = [j for j in parents if place[j] > place[node] and not self._fixed[j]]
        given = _bits([j for j in parents if j not in later])
        added, subtracted = [(node, given, rows)], []
        for j in sorted(later, key=lambda j: self._order_within(j)):
            added.append((j, given | 1 << node, rows))
            subtracted.append((j, given, rows))
            given |= 1 << j
        return TurnedFamily(tuple(added), tuple(subtracted))

    def _places(self) -> list[tuple[int, float]]:
        """Of every column: its rank, and among counts its own evidence.

        Counts are compared with one another, too: their likelihood is a shape like any other.
        """
        return [
            (int(rank), self._order_within(j) if rank == COUNTS else 0.0)
            for j, rank in enumerate(self._rank)
        ]

    def _order_within(self, j: int) -> float:
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


def _bits(columns: list[int]) -> int:
    return sum(1 << j for j in columns)


def _members(sets: list[int], d: int) -> Bool[np.ndarray, "m d"]:
    """Sets as rows of True and False."""
    size = (d + 7) // 8
    raw = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in sets), np.uint8)
    return np.unpackbits(raw.reshape(len(sets), size), axis=1, bitorder="little")[:, :d] == 1
