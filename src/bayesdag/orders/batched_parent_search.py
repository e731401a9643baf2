"""Grow-shrink choice of parents where every score costs a training.

As in `parent_search`, with one difference: a set is not compared with all its extensions but
with the few of the largest approximate gain among the predecessors. Whatever must be scored
for many nodes at once is scored in one batch.
"""

from collections.abc import Generator, Iterable, Iterator
from math import log
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from bayesdag.graphs.bitsets import mask_of, members_of, row_of
from bayesdag.orders.local_scores import BatchedScores
from bayesdag.orders.parent_search import TOLERANCE, Choice

Family = tuple[int, int]  # a node and its parents
# Extensions of a set that are scored before the best of them is taken.
NUM_TRIED = 2
# The same, once for every node when nothing else helps: approximate gains are rough.
MORE_TRIED = 12
# Nats of approximate gain below which no extension is tried; noise alone has 3.3 on average, and
# the largest of more variables than these more by the logarithm of their number.
LEAST_GAIN, FEW_VARIABLES = 3.0, 10


class _ScoredSet(NamedTuple):
    """Value of a set, and the variables worth adding to it, largest approximate gain first."""

    value: float
    ranked: list[int]


End = TypeVar("End")
Walk = Generator[set[Family], None, End]  # what must be scored first, and the end


class BatchedParentSearch:
    """Grow-shrink choices of every node under one structure prior, in batches.

    Args:
        scores: local scores with approximate gains.
        penalty: log prior of a node with k parents, for k = 0 ... d-1.
    """

    def __init__(self, scores: BatchedScores, penalty: Float[np.ndarray, " d"]) -> None:
        self.scores, self.penalty = scores, penalty
        self._required = [mask_of(column) for column in scores.knowledge.required.T]
        self._stages: dict[Family, _ScoredSet] = {}
        self._choices: dict[Family, Choice] = {}
        self._better: list[list[int]] = [[] for _ in self._required]

    def choose(self, tasks: Iterable[Family]) -> list[Choice]:
        """Choice for each (node, predecessors), all of them in step."""
        tasks = list(tasks)
        walks = {task: self._walk(*task) for task in tasks if task not in self._choices}
        self._choices.update(self._in_step(walks))
        return [self._choices[task] for task in tasks]

    def _in_step(self, walks: dict[Family, Walk[End]]) -> dict[Family, End]:
        """Ends of walks that are made together, so that each batch serves all of them."""
        ends: dict[Family, End] = {}
        walks = dict(walks)
        while walks:
            missing: set[Family] = set()
            for task, walk in list(walks.items()):
                try:
                    missing |= next(walk)
                except StopIteration as end:
                    ends[task] = end.value
                    del walks[task]
            self._score(missing)
        return ends

    def refresh(self) -> bool:
        """Look values up again that training has changed; whether there are any.

        Only here, so that the choices of one round are made on the same values: a round would
        otherwise ask for few scores at a time, over and over.
        """
        changed = self.scores.retrain_queued()
        nodes = {node for node, _ in changed}
        self._choices = {task: one for task, one in self._choices.items() if task[0] not in nodes}
        self._score(family for family in changed if family in self._stages)
        return bool(changed)

    def queue_retraining(self, tasks: Iterable[Family]) -> None:
        """Queue the sets without one of the chosen parents: they may be badly trained."""
        tasks = list(tasks)
        d = self.scores.num_variables
        parents = np.stack([row_of(choice.parents, d) for choice in self.choose(tasks)])
        self.scores.queue_retraining(np.array([node for node, _ in tasks]), parents)

    def exchange(self, tasks: Iterable[Family], allowed: Iterable[int]) -> bool:
        """Whether chosen parents can be exchanged for allowed ones, or joined by them.

        Where several variables stand in for one that is missing, it adds little to all of
        them and is never taken up, but it may well replace one, and then the others go. What
        is found is remembered, and chosen wherever it precedes.
        """
        tasks = list(tasks)
        chosen = [choice.parents for choice in self.choose(tasks)]
        exchanges = {
            task: self._exchanged(task[0], parents, others)
            for task, parents, others in zip(tasks, chosen, allowed, strict=True)
        }
        before = sum(map(len, self._better))
        ends = self._in_step(exchanges)
        for task, parents in zip(tasks, chosen, strict=True):
            known = self._better[task[0]]
            if ends[task] != parents and ends[task] not in known:
                known.append(ends[task])
        found = sum(map(len, self._better)) > before
        if found:
            self._choices.clear()
        return found

    def _walk(self, node: int, before: int) -> Walk[Choice]:
        """Grow, then shrink; waits for the families that have to be scored first."""
        required = self._required[node]
        if required & ~before:
            return Choice(-np.inf, required, required)
        parents, watched = yield from self._grown(node, required, before)
        parents = yield from self._shrunk(node, parents)
        known = self._better[node]
        yield from self._wait([(node, mask) for mask in known])
        for mask in known:
            watched |= mask
        possible = [(node, mask) for mask in (parents, *known) if not mask & ~before]
        best = max(possible, key=self._value)
        return Choice(self._value(best), best[1], watched)

    def _grown(self, node: int, parents: int, before: int) -> Walk[tuple[int, int]]:
        """The parents, and more of those before while that helps; and whom it looked at."""
        watched = parents
        while True:
            yield from self._wait([(node, parents)])
            stage = self._stages[node, parents]
            tried, seen = _largest_gains(stage.ranked, before)
            watched |= seen
            larger = [(node, parents | bit) for bit in tried]
            yield from self._wait(larger)
            best = max(larger, key=self._value, default=None)
            if best is None or self._value(best) <= stage.value + TOLERANCE:
                return parents, watched
            parents = best[1]

    def _shrunk(self, node: int, parents: int) -> Walk[int]:
        """The parents, without those that do not help."""
        while True:
            smaller = [(node, parents & ~bit) for bit in self._optional(node, parents)]
            yield from self._wait([(node, parents), *smaller])
            best = max(smaller, key=self._value, default=None)
            if best is None or self._value(best) <= self._value((node, parents)) + TOLERANCE:
                return parents
            parents = best[1]

    def _exchanged(self, node: int, parents: int, allowed: int) -> Walk[int]:
        """The parents, after exchanges and additions that help."""
        while True:
            value = self._value((node, parents))
            without = [(bit, parents & ~bit) for bit in self._optional(node, parents)]
            yield from self._wait([(node, mask) for _, mask in without])
            others = [
                (node, mask | new)
                for bit, mask in without
                for new in _largest_gains(self._stages[node, mask].ranked, allowed & ~bit)[0]
            ]
            ranked = self._stages[node, parents].ranked
            others += [
                (node, parents | new) for new in _largest_gains(ranked, allowed, MORE_TRIED)[0]
            ]
            yield from self._wait(others)
            best = max(others, key=self._value, default=None)
            if best is None or self._value(best) <= value + TOLERANCE:
                return parents
            parents = yield from self._shrunk(node, best[1])

    def _optional(self, node: int, parents: int) -> list[int]:
        return [1 << j for j in members_of(parents & ~self._required[node])]

    def _wait(self, families: list[Family]) -> Iterator[set[Family]]:
        """Hand out the families that nobody has scored yet."""
        if missing := {family for family in families if family not in self._stages}:
            yield missing

    def _value(self, family: Family) -> float:
        return self._stages[family].value

    def _score(self, families: Iterable[Family]) -> None:
        families = sorted(families)  # batches must not depend on the order in a set
        if not families:
            return
        d = self.scores.num_variables
        nodes = np.array([node for node, _ in families])
        parents = np.stack([row_of(mask, d) for _, mask in families])
        values = self.scores(nodes, parents) + self.penalty[parents.sum(axis=1)]
        gain = self.scores.approximate_gain(nodes, parents)
        best_first = np.argsort(-gain, axis=1, kind="stable")
        worth_it = (gain > LEAST_GAIN + max(0.0, log(d / FEW_VARIABLES))).sum(axis=1)
        for family, value, order, count in zip(families, values, best_first, worth_it, strict=True):
            ranked = [1 << j for j in order[:count].tolist()]
            self._stages[family] = _ScoredSet(float(value), ranked)


def _largest_gains(
    ranked: list[int], before: int, most: int | None = None
) -> tuple[list[int], int]:
    """The first few that precede, and everyone who could have been among them."""
    tried, seen = [], 0
    for bit in ranked:
        seen |= bit
        if bit & before:
            tried.append(bit)
            if len(tried) == (most or NUM_TRIED):
                break
    return tried, seen
