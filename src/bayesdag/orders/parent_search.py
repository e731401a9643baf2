"""Grow-shrink choice of a node's parents among its predecessors, remembered as trees.

Given the set of variables that precede a node, parents are added one at a time, the best
first, while the score rises, and then dropped while it rises. The path depends on the
predecessors only through which of the useful additions are among them, so all paths of a
node form one tree whose branches are scored once (the grow-shrink trees of Andrews et al.,
2023, "Fast scalable and accurate discovery of DAGs using the best order score search and
grow-shrink trees"). Sets of variables are Python integers: bit j stands for variable j.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.graphs.bitsets import mask_of, row_of
from bayesdag.orders.local_scores import FamilyScores

# Gains below this are rounding: accepting them could go round in circles.
TOLERANCE = 1e-9


class Choice(NamedTuple):
    """Parents chosen for a node.

    Attributes:
        value: their score, the structure prior included.
        parents: the set itself.
        watched: variables whose presence among the predecessors could change the choice.
    """

    value: float
    parents: int
    watched: int


@runtime_checkable
class ParentSearch(Protocol):
    """Chooses parents among the predecessors of a node."""

    @property
    def scores(self) -> FamilyScores:
        """Of which the parents are chosen."""
        ...

    @property
    def penalty(self) -> Float[np.ndarray, " d"]:
        """Log prior of a node with k parents, for k = 0 ... d-1."""
        ...

    def choose(self, tasks: Iterable[tuple[int, int]]) -> list[Choice]:
        """Choice for each (node, predecessors)."""
        ...

    def queue_retraining(self, tasks: Iterable[tuple[int, int]]) -> None:
        """Have scores of sets without one of the chosen parents computed with more care."""
        ...

    def refresh(self) -> bool:
        """Take over scores that have changed since; whether any has."""
        ...


class _Stage:
    """One parent set on the way; its improving additions are known once it is expanded."""

    __slots__ = ("additions", "children", "choice", "node", "parents", "useful", "value")

    def __init__(self, node: int, parents: int, value: float) -> None:
        self.node, self.parents, self.value = node, parents, value
        self.additions: list[tuple[int, float]] | None = None  # best first
        self.useful = 0
        self.children: dict[int, _Stage] = {}
        self.choice: Choice | None = None  # after shrinking; it ignores what was watched before


class ParentTrees:
    """Grow-shrink choices of every node under one structure prior.

    Args:
        scores: local scores; shared between trees, they keep what was computed.
        penalty: log prior of a node with k parents, for k = 0 ... d-1.
    """

    def __init__(self, scores: FamilyScores, penalty: Float[np.ndarray, " d"]) -> None:
        self.scores, self.penalty = scores, penalty
        d = scores.num_variables
        self._required = [mask_of(column) for column in scores.knowledge.required.T]
        roots = np.stack(list(scores.knowledge.required.T))
        values = self._value(np.arange(d), roots)
        self._roots = [_Stage(i, self._required[i], float(values[i])) for i in range(d)]
        self._memory: list[dict[int, Choice]] = [{} for _ in range(d)]
        self._relevant = list(self._required)

    def choose(self, tasks: Iterable[tuple[int, int]]) -> list[Choice]:
        """Choice for each (node, predecessors); whatever must be scored is scored in batches."""
        tasks = list(tasks)
        found: dict[tuple[int, int], Choice] = {}
        waiting = set(tasks)
        while waiting:
            missing: dict[_Stage, None] = {}
            for task in list(waiting):
                end = self._walk(*task)
                if isinstance(end, Choice):
                    found[task] = end
                    waiting.remove(task)
                else:
                    missing[end] = None
            self._score(missing)
        return [found[task] for task in tasks]

    def queue_retraining(self, tasks: Iterable[tuple[int, int]]) -> None:
        """Nothing to gain: these scores are exact."""

    def refresh(self) -> bool:
        """Nothing to take over: these scores stay."""
        return False

    def _walk(self, node: int, before: int) -> Choice | _Stage:
        """The choice, or the stage on its path that has to be scored first."""
        memory, known = self._memory[node], before & self._relevant[node]
        found = memory.get(known)
        if found is not None:
            return found
        if self._required[node] & ~before:
            found = Choice(-np.inf, self._required[node], self._required[node])
            memory[known] = found
            return found
        stage, watched = self._roots[node], self._required[node]
        while True:
            if stage.additions is None:
                return stage
            watched |= stage.useful
            if not stage.useful & before:
                break
            for addition in stage.additions:
                if addition[0] & before:
                    break
            bit, value = addition  # pyright: ignore[reportPossiblyUnboundVariable]
            child = stage.children.get(bit)
            if child is None:
                child = stage.children[bit] = _Stage(node, stage.parents | bit, value)
            stage = child
        if stage.choice is None:
            return stage
        found = stage.choice._replace(watched=watched)
        memory[known] = found
        return found

    def _score(self, stages: Iterable[_Stage]) -> None:
        grown = [stage for stage in stages if stage.additions is not None]
        self._expand([stage for stage in stages if stage.additions is None])
        self._shrink(grown)

    def _expand(self, stages: list[_Stage]) -> None:
        """Find the improving additions of each stage, in one batch."""
        if not stages:
            return
        d = self.scores.num_variables
        bases = np.stack([row_of(stage.parents, d) for stage in stages])
        nodes = np.array([stage.node for stage in stages])
        larger = np.minimum(bases.sum(axis=1) + 1, d - 1)
        values = self.scores.additions(nodes, bases) + self.penalty[larger][:, None]
        best_first = np.argsort(-values, axis=1, kind="stable")
        for stage, order, row in zip(stages, best_first, values, strict=True):
            better = order[: np.count_nonzero(row > stage.value + TOLERANCE)].tolist()
            values_of = row[better].tolist()
            stage.additions = [(1 << j, v) for j, v in zip(better, values_of, strict=True)]
            stage.useful = sum(1 << j for j in better)
            self._relevant[stage.node] |= stage.useful

    def _shrink(self, stages: list[_Stage]) -> None:
        """Drop parents while that helps, all stages in step."""
        now = {stage: (stage.value, stage.parents) for stage in stages}
        active = list(now)
        while active:
            best = self._best_removals([(s.node, now[s][1]) for s in active])
            active = [
                s for s, found in zip(active, best, strict=True) if self._accept(now, s, found)
            ]
        for stage, (value, parents) in now.items():
            stage.choice = Choice(value, parents, 0)

    @staticmethod
    def _accept(now: dict, stage: _Stage, found: tuple[float, int]) -> bool:
        better = found[0] > now[stage][0] + TOLERANCE
        if better:
            now[stage] = found
        return better

    def _best_removals(self, families: list[tuple[int, int]]) -> list[tuple[float, int]]:
        """Value and set after the best single removal of each family."""
        d = self.scores.num_variables
        bases = np.stack([row_of(parents, d) for _, parents in families])
        nodes = np.array([node for node, _ in families])
        owner, dropped = np.nonzero(bases)
        parents = bases[owner]
        parents[np.arange(len(dropped)), dropped] = False
        values = self._value(nodes[owner], parents)
        best = [(-np.inf, 0)] * len(families)
        for number, bit, value in zip(owner, dropped, values, strict=True):
            if value > best[number][0]:
                best[number] = (float(value), families[number][1] & ~(1 << int(bit)))
        return best

    def _value(self, nodes: np.ndarray, parents: Bool[np.ndarray, "m d"]) -> np.ndarray:
        return self.scores(nodes, parents) + self.penalty[parents.sum(axis=1)]
