"""An equal mixture of posteriors, fitted one after the other or apart (`runs.parallel`).

It is what `bagged`, `averaged` and `imputed` share. Each member is fitted with a monitor of its
own and keeps its own diagnostics: whether the chains of one member have mixed is a question
about that member alone.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.posterior import Posterior, diagnostics, merge
from bayesdag.runs import parallel
from bayesdag.runs.journal import Arrays
from bayesdag.runs.memory_journal import MemoryJournal
from bayesdag.runs.parallel import Workers
from bayesdag.runs.recording import MonitorGroup, recorder_of
from bayesdag.types import (
    ExactDependence,
    Key,
    Method,
    Monitor,
    PlainData,
    Recorder,
    kinds_taken,
)


class Member(NamedTuple):
    """One component of the mixture.

    Attributes:
        name: shown while it is fitted, and in the result.
        key: of its random numbers.
        method: that is fitted.
        data: that it is fitted to.
    """

    name: str
    key: Key
    method: Method
    data: Dataset


@runtime_checkable
class TimeSharing(Protocol):
    """A method that keeps to some minutes, also where it is fitted several times."""

    def sharing(self, num_fits: int) -> Method:
        """The same in a part of the time."""
        ...


def sharing_time(method: Method, num_fits: int) -> Method:
    """The method, in a part of the time where it keeps to some."""
    return method.sharing(num_fits) if isinstance(method, TimeSharing) else method


class OfOneMethod:
    """A method that fits another one several times: what that one supports, this one does."""

    method: Method

    @property
    def supported_constraints(self) -> frozenset[str]:
        """Those of the method inside."""
        return self.method.supported_constraints

    @property
    def supports_interventions(self) -> bool:
        """Whether the method inside does."""
        return self.method.supports_interventions

    @property
    def takes_kinds(self) -> frozenset[str]:
        """Those of the method inside; by default all."""
        return kinds_taken(self.method)

    @property
    def exact_dependence(self) -> ExactDependence:
        """As the method inside."""
        return self.method.exact_dependence

    def sharing(self, num_fits: int) -> Method:
        """The same with a part of the time for the method inside, where it takes so much."""
        return dataclasses.replace(self, method=sharing_time(self.method, num_fits))  # pyright: ignore

    def min_rows(self, d: int) -> int:
        """Rows that the method inside needs: it always gets as many as the data have."""
        return self.method.min_rows(d)


def fit(
    members: Sequence[Member], knowledge: Constraints, monitor: Monitor | None, note: str
) -> Posterior:
    """The mixture in which every member has the same weight; `note` says what it is."""
    recorder = recorder_of(monitor)
    workers = parallel.current()
    if workers.elsewhere:
        found = _fit_elsewhere(members, knowledge, recorder, workers)
    else:
        found = [fit_member(member, knowledge, recorder) for member in members]
    return together(members, found, note)


def fit_member(member: Member, knowledge: Constraints, recorder: Recorder) -> Posterior:
    """The posterior of one component."""
    recorder.report(member.name)
    own = recorder.child(member.name)  # the state of one member is not that of the whole run
    return member.method(member.key, member.data, knowledge, own)


def _fit_elsewhere(
    members: Sequence[Member], knowledge: Constraints, recorder: Recorder, workers: Workers
) -> list[Posterior]:
    """Posteriors of members that are fitted apart; each begins with what is kept of it."""
    scopes = [recorder.child(member.name) for member in members]
    tasks = [
        (member, knowledge, scope.records()) for member, scope in zip(members, scopes, strict=True)
    ]
    recorder.report(f"{members[0].name} to {members[-1].name}, {workers.num} at once")
    found = workers.map_each(_fit_apart, tasks, lambda k, fitted: scopes[k].keep(fitted[1]))
    return [posterior for posterior, _ in found]


def _fit_apart(
    member: Member, knowledge: Constraints, known: Mapping[str, Arrays]
) -> tuple[Posterior, dict[str, Arrays]]:
    """The posterior of one component, and what its run has computed on the way."""
    journal = MemoryJournal.knowing(known)
    found = member.method(member.key, member.data, knowledge, MonitorGroup((journal,)))
    return found, journal.added()


def together(members: Sequence[Member], found: Sequence[Posterior], note: str) -> Posterior:
    """The mixture of posteriors that have been fitted."""
    _refuse_different(found)
    kept = [_record(member, posterior) for member, posterior in zip(members, found, strict=True)]
    return dataclasses.replace(merge.chained(found), provenance=_provenance(found, kept, note))


def common_constraints(methods: Sequence[Method]) -> frozenset[str]:
    """The kinds of knowledge that all of these methods support."""
    return frozenset.intersection(*(method.supported_constraints for method in methods))


def _record(member: Member, posterior: Posterior) -> PlainData:
    """Provenance of one member; its chains are judged with it."""
    stated = posterior.provenance
    judged = diagnostics.member(member.name, posterior.num_chains, stated)
    return {**judged, "model": stated["model"], "notes": list(stated.get("notes", []))}


def _provenance(found: Sequence[Posterior], members: list[PlainData], note: str) -> PlainData:
    models = "; ".join(dict.fromkeys(str(member["model"]) for member in members))
    kept = {name: found[0].provenance[name] for name in ("prior", "temperature")}
    return {"model": models, **kept, "members": members, "notes": [note]}


def _refuse_different(found: Sequence[Posterior]) -> None:
    for other in found[1:]:
        if other.model != found[0].model or other.graphs.shape != found[0].graphs.shape:
            raise InputError(
                "the methods describe functions and noise differently, or have different "
                "numbers of chains and draws; average methods that differ in their score's "
                "settings only"
            )
