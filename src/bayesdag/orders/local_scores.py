"""Scores of a node with a set of parents, computed once and remembered.

A local score here is the log evidence of a score plus what is known beforehand about single
edges; the structure prior, which counts parents only, is added by whoever asks.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.knowledge import Constraints
from bayesdag.types import Array, ParentSets, StatusReporter

# Further parents that are tried where a score can say which are promising.
WORTH_TRYING = 5


@runtime_checkable
class Evidence(Protocol):
    """The part of a score that is asked for here; a sketch has no other."""

    def log_evidence(self, stats: Any, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """log evidence of a node with m parent sets."""
        ...


@runtime_checkable
class Extending(Protocol):
    """A score that knows a short cut to all sets with one parent more."""

    def log_evidence_of_additions(
        self, stats: Any, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """log evidence of node b with parents b and variable j besides."""
        ...


@runtime_checkable
class Screening(Protocol):
    """A dear score: it remembers, works in batches, and says whom to try first.

    Scores may change when it trains a family again, so nobody else should remember them.
    """

    def log_evidence_of_families(
        self, stats: Any, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log evidence of node m with parents m: the more at once, the better."""
        ...

    def promise(
        self, stats: Any, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Roughly what variable j adds to the log evidence of node b with parents b."""
        ...

    def sketch(self, stats: Any) -> tuple[Any, Any]:
        """A cheap score of the same rows and its statistics: where to begin."""
        ...

    def doubt(
        self, stats: Any, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Put into doubt all sets with one parent less than these."""
        ...

    def settle(self, stats: Any) -> bool:
        """Train again what is in doubt; whether any score has changed since the last time."""
        ...

    def power(self, stats: Any) -> float:
        """To which it raises the evidence, because it is not exact."""
        ...


class LocalScores:
    """A cache of scores of (node, parent set) pairs, asked for in batches.

    Every pair is handed to the score at most once, in one call a node, so that a score that
    trains networks on an accelerator sees large batches. Sets that break the knowledge are
    never handed over: they are -inf.

    Args:
        monitor: hears how many a dear score has computed.
    """

    def __init__(
        self, score: Evidence, stats: Any, knowledge: Constraints, monitor: Any = None
    ) -> None:
        self._score, self.stats, self.knowledge = score, stats, knowledge
        self._dear = score if isinstance(score, Screening) else None
        self._extending = score if isinstance(score, Extending) else None
        self._monitor = monitor if isinstance(monitor, StatusReporter) else None
        self.num_variables = len(knowledge.names)
        self._known: list[dict[bytes, float]] = [{} for _ in knowledge.names]

    @property
    def num_computed(self) -> int:
        """Pairs that were handed to the score so far."""
        return sum(len(known) for known in self._known)

    def __call__(
        self, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Score of each node with the parents in the same row."""
        if self._dear:
            return self._told(self._dear, nodes, parents)
        result = np.empty(len(nodes))
        for node in np.unique(nodes):
            rows = np.flatnonzero(nodes == node)
            result[rows] = self.of_node(int(node), parents[rows])
        return result

    def of_node(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """Scores of one node with m parent sets."""
        if self._dear:
            return self._told(self._dear, np.full(len(parents), node), parents)
        known = self._known[node]
        keys = _keys(parents)
        fresh = {key: row for row, key in enumerate(keys) if key not in known}
        if fresh:
            values = self._compute(node, parents[list(fresh.values())])
            known.update(zip(fresh, values.tolist(), strict=True))
        return np.array([known[key] for key in keys], dtype=float)

    def additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Score after adding each single variable; -inf where it cannot be added."""
        possible = ~parents & ~self.knowledge.forbidden.T[nodes]
        if self._extending:
            values = self._extending.log_evidence_of_additions(self.stats, nodes, parents)
            values = values + (parents * self.knowledge.log_odds.T[nodes]).sum(axis=1)[:, None]
            values += self.knowledge.log_odds.T[nodes]
            return np.where(possible, values, -np.inf)
        if self.screens:
            promise = self.promise(nodes, parents)
            worst = np.sort(promise, axis=1)[:, [-min(WORTH_TRYING, self.num_variables)]]
            possible &= promise >= worst
        owner, added = np.nonzero(possible)
        larger = parents[owner]
        larger[np.arange(len(added)), added] = True
        values = np.full(parents.shape, -np.inf)
        values[owner, added] = self(nodes[owner], larger)
        return values

    @property
    def screens(self) -> bool:
        """Whether the score can say which parents are promising."""
        return self._dear is not None

    def promise(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Roughly what each variable adds; -inf where it cannot be added."""
        assert self._dear
        possible = ~parents & ~self.knowledge.forbidden.T[nodes]
        values = self._dear.promise(self.stats, nodes, parents)
        return np.where(possible, values + self.knowledge.log_odds.T[nodes], -np.inf)

    def sketch(self) -> "LocalScores":
        """Scores that cost little and tell where a dear search should begin."""
        assert self._dear
        return LocalScores(*self._dear.sketch(self.stats), self.knowledge)

    def doubt(self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]) -> None:
        """Put all sets with one parent less into doubt, where scores are a matter of luck."""
        if self._dear:
            self._dear.doubt(self.stats, nodes, parents)

    def settle(self) -> bool:
        """Let a dear score think again; whether that has changed what it told before."""
        return self._dear is not None and self._dear.settle(self.stats)

    def of_graphs(self, graphs: Shaped[Array, "s d d"]) -> Float[np.ndarray, "s d"]:
        """Score of every node with its parents in each graph."""
        parents = np.swapaxes(np.asarray(graphs) != 0, 1, 2)
        if self.screens:
            nodes = np.tile(np.arange(self.num_variables), len(parents))
            return self(nodes, parents.reshape(-1, self.num_variables)).reshape(len(parents), -1)
        columns = [self.of_node(node, parents[:, node]) for node in range(self.num_variables)]
        return np.stack(columns, axis=1)

    def _told(
        self, score: Screening, nodes: np.ndarray, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """What a dear score says now; counted, not remembered."""
        result = np.empty(len(nodes))
        for node in np.unique(nodes):
            rows = np.flatnonzero(nodes == node)
            result[rows] = self.knowledge.log_prior(int(node), parents[rows])
            self._known[node].update(dict.fromkeys(_keys(parents[rows]), 0.0))
        allowed = np.isfinite(result)
        if allowed.any():
            result[allowed] += score.log_evidence_of_families(
                self.stats, nodes[allowed], parents[allowed]
            )
        if self._monitor:
            self._monitor.report(
                f"search: functions learned for {self.num_computed} sets of parents"
            )
        return result

    def _compute(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        result = self.knowledge.log_prior(node, parents)
        allowed = np.isfinite(result)
        if allowed.any():
            result[allowed] += self._score.log_evidence(self.stats, node, parents[allowed])
        return result


def _keys(parents: ParentSets) -> list[bytes]:
    packed = np.ascontiguousarray(np.packbits(parents, axis=1))
    return packed.view(f"V{packed.shape[1]}").ravel().tolist() if len(packed) else []
