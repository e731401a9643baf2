"""Scores of a node with a set of parents, computed once and remembered.

A local score here is the log evidence of a score plus what is known beforehand about single
edges; the structure prior, which counts parents only, is added by whoever asks.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.knowledge import Constraints
from bayesdag.scores import _sufficient_statistics
from bayesdag.types import Array, ExpensiveScore, ParentSets, Recorder

# Further parents that are tried where a score costs much, those of the largest approximate gain.
NUM_ADDITIONS = 5
# Sets that are scored without being remembered, where so many are asked for at once: they are
# those of a table, which remembers them itself, and remembering takes longer than scoring.
MANY = 1024


@runtime_checkable
class Evidence(Protocol):
    """The part of a score that is asked for here; a surrogate has no other."""

    def log_evidence(self, stats: Any, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """Log evidence of a node with m parent sets."""
        ...


@runtime_checkable
class EvidenceOfAdditions(Protocol):
    """A score that knows a short cut to all sets with one parent more."""

    def log_evidence_of_additions(
        self, stats: Any, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Log evidence of node b with parents b and variable j besides."""
        ...


@runtime_checkable
class EvidenceOfSubsets(Protocol):
    """A score that knows a short cut to all subsets of some candidates."""

    def log_evidence_of_subsets(
        self,
        stats: Any,
        node: int,
        fixed: Bool[np.ndarray, "r d"],
        candidates: Sequence[int],
    ) -> Float[np.ndarray, "r q"]:
        """Log evidence of fixed parents with each subset; bit k stands for the k-th candidate."""
        ...


@runtime_checkable
class FamilyScores(Protocol):
    """Local scores as searches and tables ask for them.

    Attributes:
        stats: of the rows, as the score prepared them.
        knowledge: sets that break it are -inf.
        num_variables: nodes.
    """

    stats: Any
    knowledge: Constraints
    num_variables: int

    @property
    def num_computed(self) -> int:
        """Families that were handed to the score so far."""
        ...

    @property
    def power(self) -> float:
        """To which the evidence is raised."""
        ...

    @property
    def stable(self) -> bool:
        """Whether a value, once given, never changes."""
        ...

    def __call__(
        self, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Score of each node with the parents in the same row."""
        ...

    def of_node(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """Scores of one node with m parent sets."""
        ...

    def additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Score after adding each single variable; -inf where it cannot be added."""
        ...

    def of_graphs(self, graphs: Shaped[Array, "s d d"]) -> Float[np.ndarray, "s d"]:
        """Score of every node with its parents in each graph."""
        ...

    def prefetch(self, nodes: Int[np.ndarray, " m"], parents: ParentSets) -> None:
        """Compute what will be asked for soon, all at once where that is faster."""
        ...

    def prefetch_additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """The same for additions."""
        ...


class LocalScores:
    """A cache of scores of (node, parent set) pairs.

    Every pair is handed to the score at most once, those of large tables aside. Sets that break
    the knowledge are never handed over: they are -inf.

    Args:
        power: to which the evidence is raised.
    """

    stable = True

    def __init__(
        self, score: Evidence, stats: Any, knowledge: Constraints, power: float = 1.0
    ) -> None:
        self._score, self.stats, self.knowledge = score, stats, knowledge
        self.power = power
        self._shortcut = score if isinstance(score, EvidenceOfAdditions) else None
        self.num_variables = len(knowledge.names)
        self._known: list[dict[bytes, float]] = [{} for _ in knowledge.names]
        self._num_uncached = 0

    @property
    def num_computed(self) -> int:
        """Pairs that were handed to the score so far."""
        return self._num_uncached + sum(len(known) for known in self._known)

    def __call__(
        self, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Score of each node with the parents in the same row."""
        return _by_node(self.of_node, nodes, parents)

    def of_node(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """Scores of one node with m parent sets."""
        if len(parents) >= MANY:
            self._num_uncached += len(parents)
            return self._compute(node, parents)
        known = self._known[node]
        keys = _keys(parents)
        fresh = {key: row for row, key in enumerate(keys) if key not in known}
        if fresh:
            values = self._compute(node, parents[list(fresh.values())])
            known.update(zip(fresh, values.tolist(), strict=True))
        return np.array([known[key] for key in keys], dtype=float)

    def of_subsets(
        self, node: int, parents: Bool[np.ndarray, "r q d"], candidates: Sequence[int]
    ) -> Float[np.ndarray, "r q"]:
        """Scores of one node with sets that are, in each row, all subsets of the candidates.

        Args:
            parents: the sets; the first of a row is what all of it have in common.
        """
        score, flat = self._score, parents.reshape(-1, self.num_variables)
        log_prior = self.knowledge.log_prior(node, flat)
        if not isinstance(score, EvidenceOfSubsets) or not np.isfinite(log_prior).all():
            return self.of_node(node, flat).reshape(parents.shape[:2])
        self._num_uncached += len(flat)
        values = score.log_evidence_of_subsets(self.stats, node, parents[:, 0], candidates)
        return self.power * values + log_prior.reshape(values.shape)

    def additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Score after adding each single variable; -inf where it cannot be added."""
        possible = _can_be_added(self.knowledge, nodes, parents)
        if self._shortcut is None:
            return _one_by_one(self, nodes, parents, possible)
        values = self._shortcut.log_evidence_of_additions(self.stats, nodes, parents)
        before = (parents * self.knowledge.log_odds.T[nodes]).sum(axis=1)
        values = self.power * values + before[:, None]
        values += self.knowledge.log_odds.T[nodes]
        return np.where(possible, values, -np.inf)

    def of_graphs(self, graphs: Shaped[Array, "s d d"]) -> Float[np.ndarray, "s d"]:
        """Score of every node with its parents in each graph."""
        parents = np.swapaxes(np.asarray(graphs) != 0, 1, 2)
        columns = [self.of_node(node, parents[:, node]) for node in range(self.num_variables)]
        return np.stack(columns, axis=1)

    def prefetch(self, nodes: Int[np.ndarray, " m"], parents: ParentSets) -> None:
        """Nothing to gain: these scores cost the same one by one."""

    def prefetch_additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Nothing to gain: these scores cost the same one by one."""

    def _compute(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        result = self.knowledge.log_prior(node, parents)
        allowed = np.isfinite(result)
        if allowed.any():
            evidence = self._score.log_evidence(self.stats, node, parents[allowed])
            result[allowed] += self.power * evidence
        return result


class BatchedScores:
    """Scores that are trained: asked for in large batches, and not remembered here.

    The score remembers what it has trained, and may train it again.

    Args:
        recorder: hears how many families have been trained.
        power: to which the evidence is raised, besides what the score does itself.
    """

    stable = False

    def __init__(
        self,
        score: ExpensiveScore,
        stats: Any,
        knowledge: Constraints,
        recorder: Recorder,
        power: float = 1.0,
    ) -> None:
        self._score, self.stats, self.knowledge = score, stats, knowledge
        self._recorder, self._power = recorder, power
        self.num_variables = len(knowledge.names)
        self._asked: set[tuple[int, bytes]] = set()

    @property
    def num_computed(self) -> int:
        """Pairs that were handed to the score so far."""
        return len(self._asked)

    @property
    def power(self) -> float:
        """To which the evidence is raised in all."""
        return self._power * self._score.power(self.stats)

    def __call__(
        self, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Score of each node with the parents in the same row, as it is now."""
        result = _by_node(self.knowledge.log_prior, nodes, parents)
        self._asked.update(zip(nodes.tolist(), _keys(parents), strict=True))
        allowed = np.isfinite(result)
        if allowed.any():
            evidence = self._score.log_evidence_of_families(
                self.stats, nodes[allowed], parents[allowed]
            )
            result[allowed] += self._power * evidence
        self._recorder.report(f"search: functions learned for {self.num_computed} sets of parents")
        return result

    def of_node(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """Scores of one node with m parent sets."""
        return self(np.full(len(parents), node), parents)

    def additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Score after adding single variables of large gain; -inf for the others."""
        gain = self.approximate_gain(nodes, parents)
        least = np.sort(gain, axis=1)[:, [-min(NUM_ADDITIONS, self.num_variables)]]
        possible = _can_be_added(self.knowledge, nodes, parents) & (gain >= least)
        return _one_by_one(self, nodes, parents, possible)

    def approximate_gain(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Roughly what each variable adds; -inf where it cannot be added."""
        possible = _can_be_added(self.knowledge, nodes, parents)
        values = self._score.approximate_gain(self.stats, nodes, parents)
        return np.where(possible, values + self.knowledge.log_odds.T[nodes], -np.inf)

    def surrogate(self) -> LocalScores:
        """Scores that cost little and show where an expensive search should begin."""
        return LocalScores(*self._score.surrogate(self.stats), self.knowledge, self._power)

    def queue_retraining(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Queue all sets with one parent less than these, to be trained again."""
        self._score.queue_retraining(self.stats, nodes, parents)

    def retrain_queued(self) -> set[tuple[int, int]]:
        """Train what is queued; the families whose score has changed since the last time."""
        return self._score.retrain_queued(self.stats)

    def of_graphs(self, graphs: Shaped[Array, "s d d"]) -> Float[np.ndarray, "s d"]:
        """Score of every node with its parents in each graph, in one batch.

        Most graphs of chains have most of their families in common: each is looked up once.
        """
        nodes, parents = _sufficient_statistics.of_graphs(np.asarray(graphs))
        first, own = _sufficient_statistics.distinct(nodes, parents)
        return self(nodes[first], parents[first])[own].reshape(len(graphs), -1)

    def prefetch(self, nodes: Int[np.ndarray, " m"], parents: ParentSets) -> None:
        """Train these in one batch, and what is queued because of them."""
        self(nodes, parents)
        self.retrain_queued()

    def prefetch_additions(
        self, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Train additions to these in one batch."""
        self.additions(nodes, parents)


def _can_be_added(
    knowledge: Constraints, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
) -> Bool[np.ndarray, "b d"]:
    return ~parents & ~knowledge.forbidden.T[nodes]


def _one_by_one(
    scores: FamilyScores,
    nodes: Int[np.ndarray, " b"],
    parents: Bool[np.ndarray, "b d"],
    possible: Bool[np.ndarray, "b d"],
) -> Float[np.ndarray, "b d"]:
    """Score of every possible addition, as a set of its own."""
    owner, added = np.nonzero(possible)
    larger = parents[owner]
    larger[np.arange(len(added)), added] = True
    values = np.full(parents.shape, -np.inf)
    values[owner, added] = scores(nodes[owner], larger)
    return values


def _by_node(
    of_node: Callable[[int, ParentSets], np.ndarray],
    nodes: Int[np.ndarray, " m"],
    parents: ParentSets,
) -> Float[np.ndarray, " m"]:
    """A function of one node and many parent sets, for rows of different nodes."""
    result = np.empty(len(nodes))
    for node in np.unique(nodes):
        rows = np.flatnonzero(nodes == node)
        result[rows] = of_node(int(node), parents[rows])
    return result


def _keys(parents: ParentSets) -> list[bytes]:
    packed = np.ascontiguousarray(np.packbits(parents, axis=1))
    return packed.view(f"V{packed.shape[1]}").ravel().tolist() if len(packed) else []
