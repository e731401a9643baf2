"""Columns that determine one another, up to rounding.

Totals, shares, products, ratios and recoded columns are everyday data. Where s = a + b, any
two of the three tell the third, so that the data cannot say which of them is computed from
the others: yet a score that knows nothing of this takes rounding errors for evidence. Here
such sets of columns are found and named, and the ways in which some of them may have been
computed from the others are listed, so that a posterior can be averaged over them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data import _exact_fit, _functional_relations, _linear_relations, _relation_words
from bayesdag.data._linear_relations import Circuit, Columns

# Fewest rows in which all columns of a relation were observed.
_LEAST_ROWS = 8
# Combinations of columns that were set together, each looked at on its own.
_MOST_PATTERNS = 12
# Ways to compute columns from others that a posterior is averaged over, at most.
MOST_DERIVATIONS = 12
# Standard deviation of a logarithm below which it is no other column than the raw one.
_LEAST_LOG = 1e-9


# Columns that are computed, each from which others: no column is computed from itself, through
# others neither.
Derivation = dict[int, tuple[int, ...]]


class Relation(NamedTuple):
    """Columns of which each, or one, is a function of the others.

    Attributes:
        columns: their positions, ascending.
        words: the relation, as a formula where it is simple.
        linear: whether it is a weighted sum of the columns.
    """

    columns: tuple[int, ...]
    words: str
    linear: bool


@dataclass(frozen=True)
class Dependences:
    """All relations of a table, and the sets of columns that hang together by them.

    Attributes:
        names: of all columns.
        relations: smallest sets first found; those of three columns are not repeated in
            larger ones.
    """

    names: tuple[str, ...]
    relations: tuple[Relation, ...]

    def __bool__(self) -> bool:
        return bool(self.relations)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Sets of columns that relations connect; no column is in two of them."""
        together = _connected([r.columns for r in self.relations], len(self.names))
        sets = np.unique(together, axis=0)[::-1] if len(together) else together
        members = [tuple(np.flatnonzero(row).tolist()) for row in sets]
        return tuple(sorted(group for group in members if len(group) > 1))

    def relations_of(self, group: tuple[int, ...]) -> tuple[Relation, ...]:
        """Those within a group."""
        return tuple(r for r in self.relations if set(r.columns) <= set(group))

    def describe(self) -> list[str]:
        """One sentence for each group: which columns, by which relation."""
        return [self._sentence(group) for group in self.groups]

    def to_list(self) -> list[dict[str, Any]]:
        """Groups and relations by name, as a result keeps them."""
        return [
            {
                "columns": [self.names[j] for j in group],
                "relations": [relation.words for relation in self.relations_of(group)],
            }
            for group in self.groups
        ]

    def _sentence(self, group: tuple[int, ...]) -> str:
        relations = [relation.words for relation in self.relations_of(group)]
        more = f" and {len(relations) - 3} more" if len(relations) > 3 else ""
        return (
            f"{_listed([self.names[j] for j in group])} determine one another "
            f"({'; '.join(relations[:3])}{more})"
        )


def find(
    values: Float[np.ndarray, "n d"], names: tuple[str, ...], observed: Bool[np.ndarray, "n d"]
) -> Dependences:
    """The relations that hold, up to rounding, wherever all their columns were observed."""
    relations: dict[tuple[int, ...], Relation] = {}
    for rows, columns in _blocks(observed):
        part = values[np.ix_(rows, columns)]
        varies = np.ptp(part, axis=0) > 0
        columns, part = columns[varies], part[:, varies]
        own_names = tuple(names[j] for j in columns)
        for relation in _relations(part, own_names):
            place = tuple(int(columns[j]) for j in relation.columns)
            relations.setdefault(place, relation._replace(columns=place))
    return Dependences(names, tuple(relations.values()))


def derivations(
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    found: Dependences,
    most: int = MOST_DERIVATIONS,
) -> list[Derivation]:
    """Ways to compute just so many columns that nothing is left that determines another.

    In turn, every column of a group is among those that are computed, about equally often. A
    table without relations has one: nothing is computed.
    """
    by_group = [_derivations_of(values, observed, found, group) for group in found.groups]
    num = min(most, math.lcm(*(len(ways) for ways in by_group)))
    merged = [[ways[k % len(ways)] for ways in by_group] for k in range(num)]
    return [dict(item for way in ways for item in way.items()) for ways in merged]


def _derivations_of(
    values: np.ndarray, observed: np.ndarray, found: Dependences, group: tuple[int, ...]
) -> list[Derivation]:
    """One for each column of a group, which is computed first of all."""
    times = dict.fromkeys(group, 0)
    ways = []
    for first in group:
        way: Derivation = {}
        rest, relations = list(group), found.relations_of(group)
        while relations:
            relation = next((r for r in relations if first in r.columns), relations[0])
            seldom = min(relation.columns, key=lambda j: (j != first, times[j]))
            way[seldom] = tuple(j for j in relation.columns if j != seldom)
            times[seldom] += 1
            rest.remove(seldom)
            relations = _relations_among(values, observed, found, rest)
        ways.append(way)
    return ways


def _relations_among(
    values: np.ndarray, observed: np.ndarray, found: Dependences, columns: list[int]
) -> tuple[Relation, ...]:
    """The relations that are left among some columns, by their positions in the table."""
    known = tuple(r for r in found.relations if set(r.columns) <= set(columns))
    if known or len(columns) < 2:
        return known
    names = tuple(found.names[j] for j in columns)
    left = find(values[:, columns], names, observed[:, columns]).relations
    return tuple(r._replace(columns=tuple(columns[j] for j in r.columns)) for r in left)


def _blocks(observed: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns without cells that were set, the most columns first."""
    patterns = np.unique(observed, axis=0)
    patterns = patterns[np.argsort(-patterns.sum(axis=1), kind="stable")]
    seen: list[np.ndarray] = []
    for free in patterns:
        if len(seen) == _MOST_PATTERNS or any(np.all(free <= larger) for larger in seen):
            continue
        rows = observed[:, free].all(axis=1)
        if rows.sum() >= _LEAST_ROWS and free.sum() > 1:
            seen.append(free)
            yield np.flatnonzero(rows), np.flatnonzero(free)


def _relations(values: np.ndarray, names: tuple[str, ...]) -> Iterator[Relation]:
    """Sums first, then products, then other functions of columns not yet connected."""
    d = values.shape[1]
    units = np.array([_exact_fit.resolution(column) for column in values.T])
    found: list[Relation] = []
    for search in (_sums, _products, _quadratics, _functions):
        together = _connected([relation.columns for relation in found], d)
        fresh = [
            relation
            for relation in search(values, units, names, together)
            if not together[np.ix_(relation.columns, relation.columns)].all()
        ]
        found += {relation.columns: relation for relation in reversed(fresh)}.values()
    yield from found


def _connected(sets: list[tuple[int, ...]], d: int) -> Bool[np.ndarray, "d d"]:
    """Columns that the sets connect, directly or not; each is connected with itself."""
    if not sets:
        return np.eye(d, dtype=bool)
    linked = np.zeros((d, d), dtype=bool)
    for members in sets:
        linked[np.ix_(members, members)] = True
    from scipy.sparse.csgraph import connected_components

    labels = connected_components(linked, directed=False)[1]
    return labels[:, None] == labels[None, :]


def _sums(values, units, names, together) -> Iterator[Relation]:
    del together
    table = _linear_relations.columns(values, np.broadcast_to(units, values.shape))
    for circuit in _linear_relations.circuits(table):
        members, fixed = _members(circuit)
        own = [names[j] for j in members]
        words = _relation_words.sum_in_words(values[:, members], own, fixed)
        yield Relation(tuple(members), words, linear=True)


def _products(values, units, names, together) -> Iterator[Relation]:
    """The same among the logarithms of columns of one sign."""
    del together
    signed = np.flatnonzero((values > 0).all(axis=0) | (values < 0).all(axis=0))
    size = np.abs(values[:, signed])
    varies = np.log(size).std(axis=0) > _LEAST_LOG
    signed, size = signed[varies], size[:, varies]
    if len(signed) < 2:
        return
    logs = np.log(size)
    table: Columns = _linear_relations.columns(logs, units[signed] / size)
    for circuit in _linear_relations.circuits(table):
        inside, fixed = _members(circuit)
        own = [names[j] for j in signed[inside]]
        words = _relation_words.product_in_words(logs[:, inside], own, fixed)
        yield Relation(tuple(signed[inside].tolist()), words, linear=False)


def _quadratics(values, units, names, together) -> Iterator[Relation]:
    for found in _functional_relations.quadratics(values, units, together):
        own = [names[j] for j in found.others]
        target, name = values[:, found.target], names[found.target]
        y, name = (target**2, f"{name}^2") if found.squared else (target, name)
        words = _relation_words.quadratic_in_words(values[:, list(found.others)], y, own, name)
        words = words or f"{names[found.target]} is a function of {_listed(own)}"
        yield Relation(tuple(sorted((found.target, *found.others))), words, linear=False)


def _functions(values, units, names, together) -> Iterator[Relation]:
    found = _functional_relations.functions_of_one(values, units) & ~together
    for i, j in np.argwhere(found | found.T).tolist():
        if i < j:
            cause, effect = (i, j) if found[i, j] else (j, i)
            words = f"{names[effect]} is a function of {names[cause]}"
            yield Relation((i, j), words, linear=False)


def _members(circuit: Circuit) -> tuple[list[int], list[float]]:
    """Positions, ascending, and factors of the columns in a constant sum where they are known."""
    members = sorted((circuit.target, *circuit.others))
    factor = dict(zip(circuit.others, circuit.weights, strict=False)) | {circuit.target: -1.0}
    return members, [factor[j] for j in members] if circuit.weights else []


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
