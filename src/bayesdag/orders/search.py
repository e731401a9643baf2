"""Order search: one variable at a time is moved to its best position.

The others keep their order, until no move helps (best order score search). Parents are chosen
among all predecessors: candidate lists come after the search, from what it found.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8

from bayesdag.graphs import topological_order
from bayesdag.graphs.bitsets import row_of
from bayesdag.orders.parent_search import TOLERANCE, Choice, ParentSearch
from bayesdag.runs.packing import fingerprint
from bayesdag.types import Recorder


class Found(NamedTuple):
    """Result of a search from one start.

    Attributes:
        order: variables, sources first.
        graph: parents chosen among the predecessors.
        value: log score of the graph, the structure prior included.
    """

    order: Int[np.ndarray, " d"]
    graph: Int8[np.ndarray, "d d"]
    value: float


class Move(NamedTuple):
    """A better position of one variable: what it gains, its position now and the best one."""

    gain: float
    now: int
    best: int


def local_search(
    rng: np.random.Generator,
    parents: ParentSearch,
    start: Int[np.ndarray, " d"],
    recorder: Recorder,
) -> Found:
    """The local optimum reached from `start` by moving one variable at a time.

    Variables are tried in random order, sweep by sweep. Where the search ended, and the random
    numbers it leaves, are recorded; now and then also where it stands.
    """
    name = f"local search {fingerprint(start, parents.penalty, _state_of(rng))}"
    begin = {"order": np.asarray(start), "waiting": np.zeros(0, int), "moved": np.array(True)}

    def climb() -> dict[str, np.ndarray]:
        stage = recorder.unfinished(name) or begin | {"rng": _state_of(rng)}
        return _climb(rng, parents, dict(stage), name, recorder)

    ended = recorder.recall(name, climb)
    _restore(rng, ended["rng"])
    return evaluate(parents, ended["order"])


def _climb(
    rng: np.random.Generator,
    parents: ParentSearch,
    stage: dict[str, np.ndarray],
    name: str,
    recorder: Recorder,
) -> dict[str, np.ndarray]:
    """Sweeps over all variables until one of them moves none, from any stage of a search."""
    _restore(rng, stage["rng"])
    order, waiting = stage["order"].tolist(), stage["waiting"].tolist()
    moved = bool(stage["moved"])

    def now() -> dict[str, np.ndarray]:
        arrays = {"order": np.array(order), "waiting": np.array(waiting, dtype=int)}
        return arrays | {"moved": np.array(moved), "rng": _state_of(rng)}

    while waiting or moved:
        if not waiting:
            waiting, moved = rng.permutation(len(order)).tolist(), False
        move = best_move(parents, order, waiting.pop(0))
        if move is not None:
            order.insert(move.best, order.pop(move.now))
            moved = True
        recorder.keep_unfinished(name, now)
    return now()


def _state_of(rng: np.random.Generator) -> np.ndarray:
    """The state of a random generator as bytes."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), dtype=np.uint8)


def _restore(rng: np.random.Generator, state: np.ndarray) -> None:
    rng.bit_generator.state = json.loads(state.tobytes())


def evaluate(parents: ParentSearch, order: Int[np.ndarray, " d"]) -> Found:
    """The graph that grow-shrink chooses along an order."""
    parents.refresh()
    before = prefixes([int(node) for node in order])
    choices = parents.choose(zip(order.tolist(), before, strict=False))
    value = float(sum(choice.value for choice in choices))
    return Found(np.asarray(order), graph_of(order, choices), value)


def graph_of(order: Sequence[int] | Int[np.ndarray, " d"], choices: list[Choice]) -> np.ndarray:
    """Of what is chosen for each variable of an order."""
    d = len(order)
    graph = np.zeros((d, d), dtype=np.int8)
    for node, choice in zip(order, choices, strict=True):
        graph[:, node] = row_of(choice.parents, d)
    return graph


def starting_orders(
    rng: np.random.Generator, parents: ParentSearch, num: int, recorder: Recorder
) -> list[Int[np.ndarray, " d"]]:
    """Orders to start from: least explained variables first, then random ones.

    How well the others explain a variable tends to grow along a causal order. All starts
    put the causes of required edges first, and contexts before them.
    """
    precedes = parents.scores.knowledge.precedes
    name = f"explained {fingerprint(parents.penalty)}"
    gain = recorder.recall(name, lambda: {"gain": _explained(parents)})["gain"]
    orders = [np.argsort(gain, kind="stable")]
    orders += [rng.permutation(len(precedes)) for _ in range(num - 1)]
    return [causes_first(order, precedes) for order in orders]


def _explained(parents: ParentSearch) -> Float[np.ndarray, " d"]:
    """Gain in score of each variable from all others."""
    required = parents.scores.knowledge.required
    d = len(required)
    everything = (1 << d) - 1
    full = parents.choose((i, everything & ~(1 << i)) for i in range(d))
    alone = parents.scores(np.arange(d), required.T) + parents.penalty[required.sum(axis=0)]
    return np.array([choice.value for choice in full]) - alone


def perturbed(
    rng: np.random.Generator, order: Int[np.ndarray, " d"], required: np.ndarray, fraction: float
) -> Int[np.ndarray, " d"]:
    """The order with a fraction of its variables put elsewhere at random; required edges hold."""
    changed = [int(node) for node in order]
    num_moves = min(len(order), max(2, round(fraction * len(order))))
    for node in rng.choice(len(order), size=num_moves, replace=False):
        changed.remove(int(node))
        changed.insert(int(rng.integers(len(changed) + 1)), int(node))
    return causes_first(np.array(changed), required)


def best_move(parents: ParentSearch, order: list[int], node: int) -> Move | None:
    """The best position of `node` given the order of the others; None where it stands best."""
    now = order.index(node)
    rest = order[:now] + order[now + 1 :]
    without, own, behind = _parts(parents, rest, node)
    ahead = np.concatenate([[0.0], np.cumsum(without)])
    after = np.concatenate([np.cumsum(behind[::-1])[::-1], [0.0]])
    total = own + ahead + after
    best = int(np.argmax(total))
    if not total[best] > total[now] + TOLERANCE * (1 + abs(total[now])):
        return None
    return Move(float(total[best] - total[now]), now, best)


def _parts(parents: ParentSearch, rest: list[int], node: int) -> tuple[np.ndarray, ...]:
    """Values of the others without `node` before them, of `node` everywhere, and with it."""
    bit, before = 1 << node, prefixes(rest)
    choices = parents.choose(
        [(other, seen) for other, seen in zip(rest, before, strict=False)]
        + [(node, seen) for seen in before]
    )
    without, own = choices[: len(rest)], choices[len(rest) :]
    # A node that would not look at the moved variable chooses as before.
    asked = [k for k, choice in enumerate(without) if choice.watched & bit]
    behind: list[Choice] = list(without)
    for k, choice in zip(
        asked, parents.choose((rest[k], before[k] | bit) for k in asked), strict=True
    ):
        behind[k] = choice
    return tuple(np.array([choice.value for choice in part]) for part in (without, own, behind))


def prefixes(order: list[int], before: int = 0) -> list[int]:
    """Sets of the first 0, 1, ... of these variables, and of those before them."""
    sets = [before]
    for node in order:
        sets.append(sets[-1] | 1 << node)
    return sets


def causes_first(order: Int[np.ndarray, " d"], required: np.ndarray) -> Int[np.ndarray, " d"]:
    """The order, changed as little as the required edges ask for."""
    return order[topological_order(required[np.ix_(order, order)])]
