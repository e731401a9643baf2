"""Averages over which columns are computed from which, where they determine one another.

Where s = a + b, each of the three may be the one that is computed. Once that is settled,
nothing is out of the ordinary: the computed column has the others as its parents, causes
nothing and says nothing, and the rest of the table determines nothing exactly. So each such
case is a fit under knowledge, for any method that obeys it, and the cases count the same:
evidence cannot choose between them, because they describe the same numbers.

To bound the evidence that such columns give each other, instead, makes wrong arrows certain
elsewhere: whatever passes through one of them then seems to come from further away.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.data.dependence import Derivation, derivations
from bayesdag.errors import InputError, KnowledgeError
from bayesdag.graphs import ancestors, find_cycle
from bayesdag.knowledge import Constraints
from bayesdag.methods._mixture import sharing_time
from bayesdag.posterior import Posterior, diagnostics, merge
from bayesdag.random import split
from bayesdag.runs.recording import recorder_of
from bayesdag.types import ExactDependence, Key, Method, Monitor, PlainData

_KINDS = frozenset({"required", "forbidden"})
# What the cases have in common, and the result keeps.
_COMMON = ("model", "prior", "temperature", "chosen", "imputation", "check")


class _Case(NamedTuple):
    """Columns that are computed, in words and as knowledge."""

    words: str
    constraints: Constraints


def fit(
    method: Method, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
) -> Posterior:
    """The method's posterior; averaged over what is computed, where columns determine others."""
    if not data.dependences:
        return method(key, data, knowledge, monitor)
    if method.exact_dependence != ExactDependence.AVERAGED:
        result = method(key, data, knowledge, monitor)
        return dataclasses.replace(result, provenance=_words(data, [result], []))
    cases = _cases(data, knowledge)
    method = sharing_time(method, len(cases))
    found, recorder = [], recorder_of(monitor)
    for own, case in zip(split(key, len(cases)), cases, strict=True):
        recorder.report(f"if {case.words}")
        scope = recorder.child(case.words)  # the state of one case is not that of the whole run
        found.append(method(own, data, case.constraints, scope))
    return dataclasses.replace(merge.chained(found), provenance=_words(data, found, cases))


def check(method: Method, name: str, data: Dataset) -> None:
    """Refuses columns that determine one another where the method cannot average over them."""
    if method.exact_dependence != ExactDependence.REFUSED or not data.dependences:
        return
    able = [n for n in plugins.names("methods") if _averages(n)]
    first = [data.names[j] for j in data.dependences.groups[0]]
    raise InputError(
        f"{'; '.join(data.dependences.describe())}: method {name!r} would take rounding errors "
        f"for evidence; drop one of {', '.join(first)}, or use one of: {', '.join(able)}"
    )


def _averages(name: str) -> bool:
    return plugins.load("methods", name)().exact_dependence == ExactDependence.AVERAGED


def constrained(knowledge: Constraints, derivation: Derivation) -> Constraints | None:
    """Knowledge with which these columns are computed; None where it contradicts that."""
    required, forbidden = knowledge.required.copy(), knowledge.forbidden.copy()
    for column, others in derivation.items():
        required[list(others), column] = True
        forbidden[np.setdiff1d(np.arange(len(required)), others), column] = True
        used = [j for j, sources in derivation.items() if column in sources]
        forbidden[column, np.setdiff1d(np.arange(len(required)), used)] = True
    if (required & forbidden).any() or find_cycle(required):
        return None
    forbidden |= ancestors(required).T
    kinds = knowledge.kinds | _KINDS
    return dataclasses.replace(knowledge, required=required, forbidden=forbidden, kinds=kinds)


def contradicts(data: Dataset, knowledge: Constraints) -> bool:
    """Whether knowledge leaves no column that could be computed, where some have to be."""
    return bool(data.dependences) and not _possible(data, knowledge)


def _possible(data: Dataset, knowledge: Constraints) -> list[_Case]:
    """Cases that the knowledge allows."""
    ways = derivations(data.values, data.observed, data.dependences)
    bound = [(way, constrained(knowledge, way)) for way in ways]
    return [_Case(_computed(way, data.names), allowed) for way, allowed in bound if allowed]


def _cases(data: Dataset, knowledge: Constraints) -> list[_Case]:
    """Those that the knowledge allows, or a refusal."""
    cases = _possible(data, knowledge)
    if not cases:
        raise KnowledgeError(
            f"{'; '.join(data.dependences.describe())}, but by your knowledge none of them can "
            "be computed from the others; drop those columns that are, or that knowledge"
        )
    return cases


def _computed(derivation: Derivation, names: tuple[str, ...]) -> str:
    parts = (
        f"{names[column]} is computed from {' and '.join(names[j] for j in others)}"
        for column, others in derivation.items()
    )
    return ", and ".join(parts)


def _words(data: Dataset, found: list[Posterior], cases: list[_Case]) -> PlainData:
    """Provenance of the result: the relations, and the cases averaged over."""
    stated = found[0].provenance
    average = (
        f"; the result is the average over {len(cases)} equally probable cases of what is "
        "computed from what"
    )
    notes = [
        f"{sentence}: the data cannot say which way arrows between them point, nor on which of "
        f"them others act{average * bool(cases)}"
        for sentence in data.dependences.describe()
    ]
    more = dict.fromkeys(note for one in found for note in one.provenance.get("notes", []))
    own = {name: stated[name] for name in _COMMON if name in stated} | {
        "members": _members(cases, found)
    }
    said = own if cases else stated
    return {**said, "dependences": data.dependences.to_list(), "notes": [*notes, *more]}


def _members(cases: list[_Case], found: list[Posterior]) -> list[PlainData]:
    """One for each case; chains are compared within a case, or within its own members."""
    members = []
    for case, one in zip(cases, found, strict=False):
        whole = diagnostics.member(f"if {case.words}", one.num_chains, one.provenance)
        for part in one.provenance.get("members", [whole]):
            name = whole["name"] if part is whole else f"{whole['name']}, {part['name']}"
            members.append({**part, "name": name})
    return members
