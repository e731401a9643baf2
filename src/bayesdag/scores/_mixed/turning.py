"""Evidence that the shape of a distribution does not turn into a direction between kinds.

A measurement x and a level k are one joint distribution, which can be written as x and then k
(a density, and a logistic curve) or as k and then x (shares, and a density for each level). Data
of either causal direction may look simple in either way: a rounded copy of a normal variable
always looks like an effect of its causes, a mixture like an effect of its label. Which way is
simple therefore says nothing about which way is causal, and every family that joins kinds is the
mean of itself and of what Bayes' theorem makes of the other way,

    p(i | A, B) = ½ F(i | A, B) + ½ F(i | A) F(B | A, i) / F(B | A),

with A the parents of the same kind, B those of other kinds and F the evidence of functions in one
direction. A pair of different kinds then has the same evidence in both directions, exactly;
larger graphs nearly so. Only rows in which i was observed count for any of the terms: where an
experimenter set i, the other way of writing the joint distribution knows nothing of it.
Directions come from independences, interventions and knowledge, and
among measurements from the functions between them.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.types import ParentSets

# A node, the set of its parents as bits, and the column whose observed rows count.
FamilyKey = tuple[int, int, int]


class TurnedFamily(NamedTuple):
    """Families whose evidence makes up that of one family, and the signs they enter with.

    Attributes:
        itself: the family with its function in the direction of the arrows.
        added: families whose evidence is added the other way.
        subtracted: families whose evidence is subtracted.
    """

    itself: FamilyKey
    added: tuple[FamilyKey, ...]
    subtracted: tuple[FamilyKey, ...]


class TurningScores:
    """Evidence of families of any kinds, each one-directional family computed once.

    Args:
        evidence: of one node with m parent sets, functions in one direction, in the rows where
            a column was observed.
        group: of every column; between groups the shape of a distribution does not count.
        fixed: columns that nothing acts on: their arrows are never turned.
        observed: False where an experimenter set a cell.
    """

    def __init__(
        self,
        evidence: Callable[[int, ParentSets, int], Float[np.ndarray, " m"]],
        group: tuple[str, ...],
        fixed: Bool[np.ndarray, " d"],
        observed: Bool[np.ndarray, "n d"],
    ) -> None:
        self._evidence, self._group, self._fixed = evidence, group, fixed
        # Columns that were observed in the same rows share what is computed for one of them.
        first: dict[bytes, int] = {}
        self._rows_of = [first.setdefault(seen.tobytes(), j) for j, seen in enumerate(observed.T)]
        self._known: dict[FamilyKey, float] = {}
        self._order: list[int] | None = None

    def __call__(
        self, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Log evidence of node m with parents m."""
        turned = [
            self._turned(node, np.flatnonzero(chosen).tolist())
            for node, chosen in zip(nodes.tolist(), parents, strict=True)
        ]
        self._compute(key for one in turned for key in (one.itself, *one.added, *one.subtracted))
        return np.array([self._mean(one) for one in turned])

    def _mean(self, one: TurnedFamily) -> float:
        itself = self._known[one.itself]
        if not one.added:
            return itself
        other = sum(self._known[key] for key in one.added)
        other -= sum(self._known[key] for key in one.subtracted)
        return float(np.logaddexp(itself, other) - np.log(2))

    def _turned(self, node: int, parents: list[int]) -> TurnedFamily:
        """The family, and what it becomes when all arrows between kinds are turned."""
        rows = self._rows_of[node]
        itself = (node, _bits(parents), rows)
        same = [j for j in parents if self._group[j] == self._group[node] or bool(self._fixed[j])]
        others = [j for j in self._label_free_order() if j in set(parents) - set(same)]
        if not others:
            return TurnedFamily(itself, (), ())
        given = _bits(same)
        added, subtracted = [(node, given, rows)], []
        for j in others:
            added.append((j, given | 1 << node, rows))
            subtracted.append((j, given, rows))
            given |= 1 << j
        return TurnedFamily(itself, tuple(added), tuple(subtracted))

    def _label_free_order(self) -> list[int]:
        """Columns by their own evidence, so that the order of the table does not matter."""
        if self._order is None:
            every = range(len(self._group))
            own = [(j, 0, self._rows_of[j]) for j in every]
            self._compute(own)
            self._order = sorted(every, key=lambda j: self._known[own[j]])
        return self._order

    def _compute(self, keys: Iterable[FamilyKey]) -> None:
        missing: dict[tuple[int, int], list[int]] = {}
        for key in dict.fromkeys(keys):
            if key not in self._known:
                node, bits, rows = key
                missing.setdefault((node, rows), []).append(bits)
        for (node, rows), sets in missing.items():
            values = self._evidence(node, _members(sets, len(self._group)), rows)
            for bits, value in zip(sets, values.tolist(), strict=True):
                self._known[node, bits, rows] = value


def _bits(columns: list[int]) -> int:
    return sum(1 << j for j in columns)


def _members(sets: list[int], d: int) -> Bool[np.ndarray, "m d"]:
    """Sets as rows of True and False."""
    size = (d + 7) // 8
    raw = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in sets), np.uint8)
    return np.unpackbits(raw.reshape(len(sets), size), axis=1, bitorder="little")[:, :d] == 1
