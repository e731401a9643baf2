"""Order search where scores are expensive: those of a round are asked for together."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from bayesdag.graphs import ancestors
from bayesdag.orders.batched_parent_search import BatchedParentSearch
from bayesdag.orders.parent_search import TOLERANCE, ParentSearch, mask_of
from bayesdag.orders.search import Found, best_move, evaluate, graph_of, prefixes

# Rounds of moves made together; values may change between them, so they could go on.
MAX_ROUNDS = 40


class Change(NamedTuple):
    """Another arrangement of some consecutive positions of an order.

    Attributes:
        gain: what the log score gains.
        start: the first of the positions.
        segment: their variables afterwards.
    """

    gain: float
    start: int
    segment: list[int]


def batched_search(parents: BatchedParentSearch, start: Int[np.ndarray, " d"]) -> Found:
    """The local optimum reached from `start`, a round of moves at a time.

    All single moves are valued from the same order; the best of those that do not get in
    one another's way are made at once. Where none helps, variables are moved together with
    their ancestors, then parents are exchanged, and where that does not help either, every
    set without one of the chosen parents is trained again.
    """
    order = [int(node) for node in start]
    for _ in range(MAX_ROUNDS):
        parents.choose(_neighbourhood(order))
        changes = _moves(parents, order) or _tucks(parents, order)
        _make(order, changes)
        going_on = bool(changes) or _exchanges(parents, order)
        if not going_on:
            parents.queue_retraining(zip(order, prefixes(order), strict=False))
        if not (parents.refresh() or going_on):
            break
    return evaluate(parents, np.array(order))


def retrained(parents: ParentSearch, order: Int[np.ndarray, " d"]) -> Found:
    """The graph along an order, once no set without one of its parents gains by more training.

    A parent that only makes up for a badly trained network is dropped.
    """
    tasks = list(zip(order.tolist(), prefixes(order.tolist()), strict=False))
    for _ in range(MAX_ROUNDS):
        parents.queue_retraining(tasks)
        if not parents.refresh():
            break
    return evaluate(parents, order)


def _moves(parents: BatchedParentSearch, order: list[int]) -> list[Change]:
    """Changes of one variable's position that help."""
    found = [move for node in order if (move := best_move(parents, order, node))]
    return [Change(move.gain, *_shifted(order, move.now, move.best)) for move in found]


def _exchanges(parents: BatchedParentSearch, order: list[int]) -> bool:
    """Whether some variable finds better parents among those that are not its effects."""
    tasks = list(zip(order, prefixes(order), strict=False))
    effects = ancestors(graph_of(order, parents.choose(tasks))) | np.eye(len(order), dtype=bool)
    return parents.exchange(tasks, [mask_of(~effects[node]) for node in order])


def _make(order: list[int], changes: list[Change]) -> None:
    """Make the changes, best first, that touch no position which an earlier one touched."""
    touched: set[int] = set()
    for _, start, segment in sorted(changes, reverse=True):
        span = range(start, start + len(segment))
        if touched.isdisjoint(span):
            touched.update(span)
            order[start : start + len(segment)] = segment


def _shifted(order: list[int], now: int, then: int) -> tuple[int, list[int]]:
    """Positions of the order that change when one variable moves, and their new entries."""
    changed = order.copy()
    changed.insert(then, changed.pop(now))
    start, stop = min(now, then), max(now, then) + 1
    return start, changed[start:stop]


def _tucks(parents: BatchedParentSearch, order: list[int]) -> list[Change]:
    """Changes that help: a variable is put before its parent, or before one that would look at it.

    It takes its other ancestors along (the tucks of Lam, Andrews & Ramsey, 2022, "Greedy
    relaxations of the sparsest permutation algorithm"): alone it could not leave them behind.
    """
    before = prefixes(order)
    now = parents.choose(zip(order, before, strict=False))
    chosen = [choice.parents for choice in now]
    tried = [
        (position, _tucked(order, chosen, position, later))
        for position, choice in enumerate(now)
        for later in range(position + 1, len(order))
        if choice.watched >> order[later] & 1 or chosen[later] >> order[position] & 1
    ]
    tasks = [list(zip(new, prefixes(new, before[start]), strict=False)) for start, new in tried]
    parents.choose(task for some in tasks for task in some)
    result = []
    for (start, new), some in zip(tried, tasks, strict=True):
        old = sum(choice.value for choice in now[start : start + len(new)])
        gain = sum(choice.value for choice in parents.choose(some)) - old
        if gain > TOLERANCE * (1 + abs(old)):
            result.append(Change(gain, start, new))
    return result


def _tucked(order: list[int], chosen: list[int], position: int, later: int) -> list[int]:
    """The positions from `position` to `later` after the tuck."""
    wanted, ahead, behind = 1 << order[later], [], []
    for k in range(later, position, -1):
        if wanted >> order[k] & 1:
            wanted |= chosen[k]
            ahead.append(order[k])
        else:
            behind.append(order[k])
    return [*ahead[::-1], order[position], *behind[::-1]]


def _neighbourhood(order: list[int]) -> set[tuple[int, int]]:
    """Nodes and predecessors in every order that differs by the position of one variable."""
    before = prefixes(order)
    tasks = set()
    for position, node in enumerate(order):
        tasks |= {(node, seen) for seen in before[: position + 1]}
        tasks |= {(node, seen & ~(1 << node)) for seen in before[position + 1 :]}
        for other in order:
            if other != node:
                tasks.add((node, before[position] ^ 1 << other))
    return tasks
