"""Order search: one variable at a time is moved to its best position.

One variable at a time is moved to its best position while the others keep theirs, until no
move helps (best order score search). The search sees every variable as a possible parent:
candidate lists come after it, from what it found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Int8

from bayesdag.graphs import ancestors, topological_order
from bayesdag.graphs.bitsets import mask_of, row_of
from bayesdag.orders.expensive_parent_search import ScreenedTrees
from bayesdag.orders.parent_search import TOLERANCE, Choice, Trees

# Rounds of moves made together; values may change between them, so they could go on.
MAX_ROUNDS = 40


class Found(NamedTuple):
    """Where one start of the search ended.

    Attributes:
        order: variables, sources first.
        graph: parents chosen among the predecessors.
        value: log score of the graph, the structure prior included.
    """

    order: Int[np.ndarray, " d"]
    graph: Int8[np.ndarray, "d d"]
    value: float


class Change(NamedTuple):
    """Another arrangement of some places of an order.

    Attributes:
        gain: what the log score gains.
        start: the first of the places.
        segment: their variables afterwards.
    """

    gain: float
    start: int
    segment: list[int]


def search(rng: np.random.Generator, trees: Trees, start: np.ndarray) -> Found:
    """The local optimum reached from `start` by moving one variable at a time."""
    order = [int(node) for node in start]
    if isinstance(trees, ScreenedTrees):
        return evaluate(trees, np.array(_in_rounds(trees, order)))
    moved = True
    while moved:
        moved = False
        for node in rng.permutation(len(order)):
            better = _best_position(trees, order, int(node))
            moved |= better is not None
            order = better or order
    return evaluate(trees, np.array(order))


def evaluate(trees: Trees, order: Int[np.ndarray, " d"]) -> Found:
    """The graph that grow-shrink chooses along an order."""
    trees.refresh()
    before = _prefixes([int(node) for node in order])
    choices = trees.choose(zip(order.tolist(), before, strict=False))
    value = float(sum(choice.value for choice in choices))
    return Found(np.asarray(order), _graph(order, choices), value)


def _graph(order: Sequence[int] | Int[np.ndarray, " d"], choices: list[Choice]) -> np.ndarray:
    """Of what is chosen for each variable of an order."""
    d = len(order)
    graph = np.zeros((d, d), dtype=np.int8)
    for node, choice in zip(order, choices, strict=True):
        graph[:, node] = row_of(choice.parents, d)
    return graph


def starting_orders(
    rng: np.random.Generator, trees: Trees, num: int
) -> list[Int[np.ndarray, " d"]]:
    """Orders to start from: least explained variables first, then random ones.

    How well the others explain a variable tends to grow along a causal order. All starts
    put the causes of required edges first.
    """
    required = trees.scores.knowledge.required
    d = len(required)
    everything = (1 << d) - 1
    full = trees.choose((i, everything & ~(1 << i)) for i in range(d))
    alone = trees.scores(np.arange(d), required.T) + trees.penalty[required.sum(axis=0)]
    gain = np.array([choice.value for choice in full]) - alone
    orders = [np.argsort(gain, kind="stable"), *(rng.permutation(d) for _ in range(num - 1))]
    return [causes_first(order, required) for order in orders]


def perturbed(
    rng: np.random.Generator, order: Int[np.ndarray, " d"], required: np.ndarray, share: float
) -> Int[np.ndarray, " d"]:
    """The order with a share of its variables put elsewhere at random; required edges hold."""
    changed = [int(node) for node in order]
    num_moves = min(len(order), max(2, round(share * len(order))))
    for node in rng.choice(len(order), size=num_moves, replace=False):
        changed.remove(int(node))
        changed.insert(int(rng.integers(len(changed) + 1)), int(node))
    return causes_first(np.array(changed), required)


def _in_rounds(trees: ScreenedTrees, order: list[int]) -> list[int]:
    """The local optimum where scores are dear: those of a round are asked for together.

    All single moves are valued from the same order; the best of those that do not get in
    one another's way are made at once. Where none helps, variables are moved together with
    their ancestors, then parents are exchanged, and where that does not help either, every
    parent is doubted.
    """
    for _ in range(MAX_ROUNDS):
        trees.choose(_neighbourhood(order))
        moves = [move for node in order if (move := _best_move(trees, order, node))]
        changes = [Change(gain, *_shifted(order, now, best)) for gain, now, best in moves]
        changes = changes or _tucks(trees, order)
        _make(order, changes)
        going_on = bool(changes) or _exchanges(trees, order)
        if not going_on:
            trees.doubt(zip(order, _prefixes(order), strict=False))
        if not (trees.refresh() or going_on):
            break
    return order


def _exchanges(trees: ScreenedTrees, order: list[int]) -> bool:
    """Whether some variable finds better parents among those that are not its effects."""
    tasks = list(zip(order, _prefixes(order), strict=False))
    effects = ancestors(_graph(order, trees.choose(tasks))) | np.eye(len(order), dtype=bool)
    return trees.exchange(tasks, [mask_of(~effects[node]) for node in order])


def _make(order: list[int], changes: list[Change]) -> None:
    """Make the changes, best first, that touch no place which an earlier one touched."""
    touched: set[int] = set()
    for _, start, segment in sorted(changes, reverse=True):
        span = range(start, start + len(segment))
        if touched.isdisjoint(span):
            touched.update(span)
            order[start : start + len(segment)] = segment


def _shifted(order: list[int], now: int, then: int) -> tuple[int, list[int]]:
    """Where the order changes when one variable moves, and to what."""
    changed = order.copy()
    changed.insert(then, changed.pop(now))
    start, stop = min(now, then), max(now, then) + 1
    return start, changed[start:stop]


def _tucks(trees: ScreenedTrees, order: list[int]) -> list[Change]:
    """Changes that help: a variable is put before its parent, or before one that would look at it.

    It takes its other ancestors along (the tucks of Lam, Andrews & Ramsey, 2022, "Greedy
    relaxations of the sparsest permutation algorithm"): alone it could not leave them behind.
    """
    before = _prefixes(order)
    now = trees.choose(zip(order, before, strict=False))
    parents = [choice.parents for choice in now]
    tried = [
        (place, _tucked(order, parents, place, later))
        for place, choice in enumerate(now)
        for later in range(place + 1, len(order))
        if choice.watched >> order[later] & 1 or parents[later] >> order[place] & 1
    ]
    tasks = [list(zip(new, _prefixes(new, before[place]), strict=False)) for place, new in tried]
    trees.choose(task for some in tasks for task in some)
    result = []
    for (place, new), some in zip(tried, tasks, strict=True):
        old = sum(choice.value for choice in now[place : place + len(new)])
        gain = sum(choice.value for choice in trees.choose(some)) - old
        if gain > TOLERANCE * (1 + abs(old)):
            result.append(Change(gain, place, new))
    return result


def _tucked(order: list[int], parents: list[int], place: int, later: int) -> list[int]:
    """The places from `place` to `later` after the tuck."""
    wanted, ahead, behind = 1 << order[later], [], []
    for k in range(later, place, -1):
        if wanted >> order[k] & 1:
            wanted |= parents[k]
            ahead.append(order[k])
        else:
            behind.append(order[k])
    return [*ahead[::-1], order[place], *behind[::-1]]


def _best_position(trees: Trees, order: list[int], node: int) -> list[int] | None:
    """The order with `node` at its best position, or None where it stands best already."""
    move = _best_move(trees, order, node)
    if move is None:
        return None
    rest = [other for other in order if other != node]
    return rest[: move[2]] + [node] + rest[move[2] :]


def _best_move(trees: Trees, order: list[int], node: int) -> tuple[float, int, int] | None:
    """What the best position of `node` gains, its place now and then; None if it gains none."""
    now = order.index(node)
    rest = order[:now] + order[now + 1 :]
    without, own, behind = _parts(trees, rest, node)
    ahead = np.concatenate([[0.0], np.cumsum(without)])
    after = np.concatenate([np.cumsum(behind[::-1])[::-1], [0.0]])
    total = own + ahead + after
    best = int(np.argmax(total))
    if not total[best] > total[now] + TOLERANCE * (1 + abs(total[now])):
        return None
    return float(total[best] - total[now]), now, best


def _parts(trees: Trees, rest: list[int], node: int) -> tuple[np.ndarray, ...]:
    """Values of the others without `node` before them, of `node` everywhere, and with it."""
    bit, before = 1 << node, _prefixes(rest)
    choices = trees.choose(
        [(other, seen) for other, seen in zip(rest, before, strict=False)]
        + [(node, seen) for seen in before]
    )
    without, own = choices[: len(rest)], choices[len(rest) :]
    # A node that would not look at the moved variable chooses as before.
    asked = [k for k, choice in enumerate(without) if choice.watched & bit]
    behind: list[Choice] = list(without)
    for k, choice in zip(
        asked, trees.choose((rest[k], before[k] | bit) for k in asked), strict=True
    ):
        behind[k] = choice
    return tuple(np.array([choice.value for choice in part]) for part in (without, own, behind))


def _neighbourhood(order: list[int]) -> set[tuple[int, int]]:
    """Nodes and predecessors in every order that differs by the place of one variable."""
    before = _prefixes(order)
    tasks = set()
    for place, node in enumerate(order):
        tasks |= {(node, seen) for seen in before[: place + 1]}
        tasks |= {(node, seen & ~(1 << node)) for seen in before[place + 1 :]}
        for other in order:
            if other != node:
                tasks.add((node, before[place] ^ 1 << other))
    return tasks


def _prefixes(order: list[int], before: int = 0) -> list[int]:
    """Sets of the first 0, 1, ... of these variables, and of those before them."""
    sets = [before]
    for node in order:
        sets.append(sets[-1] | 1 << node)
    return sets


def causes_first(order: Int[np.ndarray, " d"], required: np.ndarray) -> Int[np.ndarray, " d"]:
    """The order, changed as little as the required edges ask for."""
    return order[topological_order(required[np.ix_(order, order)])]
