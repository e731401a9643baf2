"""Rows that come in groups nobody marked: whether the rows suggest it, and what is fitted then.

A table put together from several, whose variables behave differently in each, is described by
no single graph with functions, and what is found instead is often certain and wrong. Clusters of
the rows are handed to the model as environments, with unknown targets. They are taken seriously
where the evidence on the best graph, so far, rises by more than the labels cost: the log
probability of labels and rows is then a lower bound on that of rows in groups, and above that
of rows in one. Which clusters are groups stays doubtful, so that half of the draws go without.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8

from bayesdag.data import Dataset
from bayesdag.data.groups import Groups, candidates
from bayesdag.methods._model_draws import Given
from bayesdag.orders import noise_averaging, strategies
from bayesdag.types import Graph, PlainData, Recorder, Score

WORTH = 10.0  # nats that groups have to gain
_COLUMN = "group"


class SuggestedGroups(NamedTuple):
    """Groups that the rows suggest.

    Attributes:
        given: the rows with their groups as environments, and knowledge of them.
        recorder: of what is fitted to them.
        gain: in log evidence, labels paid for.
        sizes: rows in each group.
    """

    given: Given
    recorder: Recorder
    gain: float
    sizes: Int[np.ndarray, " k"]

    @property
    def words(self) -> str:
        """What is done about them."""
        sizes = ", ".join(str(size) for size in sorted(self.sizes.tolist(), reverse=True))
        return (
            f"the rows seem to come in {len(self.sizes)} groups that nobody marked ({sizes} "
            f"rows; better by {self.gain:.0f} nats than one group): half of the draws allow for "
            "them. If a column says where rows come from, name it as the environment"
        )

    def as_data(self) -> PlainData:
        """For the provenance."""
        return {"sizes": sorted(self.sizes.tolist(), reverse=True), "gain": round(self.gain, 1)}


def suggested(
    score: Score, given: Given, graph: Graph, recorder: Recorder, rng: np.random.Generator
) -> SuggestedGroups | None:
    """The groups that gain most on this graph, if they are worth it.

    Environments that the user has named leave nothing to guess, and clusters are looked for among
    measurements only: every level of a column would be one.
    """
    if given.data.environment or given.data.kinds_present != {"continuous"}:
        return None
    divisions = candidates(given.data.scaled, rng)
    tried = [
        _tried(score, given, graph, groups, recorder.child(f"groups {number}"))
        for number, groups in enumerate(divisions, start=1)
    ]
    best = max(tried, key=lambda one: one.gain, default=None)
    return best if best is not None and best.gain > WORTH else None


def _tried(
    score: Score, given: Given, graph: Graph, groups: Groups, recorder: Recorder
) -> SuggestedGroups:
    data = _divided(given.data, groups)
    knowledge = given.knowledge.with_contexts(data.names)
    divided = Given(data, knowledge, strategies.prepare(score, data, recorder))
    gain = _gains(score, divided, graph, recorder).sum() + groups.log_odds
    return SuggestedGroups(divided, recorder, float(gain), np.bincount(groups.labels))


def _divided(data: Dataset, groups: Groups) -> Dataset:
    """The rows with their groups as an environment, under a name that no column has."""
    column = _COLUMN
    while any(name.startswith(column) for name in data.names):
        column = f"_{column}"
    labels = [str(1 + number) for number in groups.labels]
    return replace(data, environment={column: labels})


def _gains(score: Score, given: Given, graph: Graph, recorder: Recorder) -> Float[np.ndarray, " d"]:
    """Log evidence that each node gains by knowing its group; 0 where it does without.

    Parents that only stood for the groups are given up: what they cost is gained, too.
    """
    d, whole = len(graph), len(given.data.names)
    without = np.zeros((whole, whole), dtype=np.int8)
    without[:d, :d] = graph
    knowing = without.copy()
    knowing[d:, :d] = 1
    first = noise_averaging.noise_models(score, given.data.num_rows)[0].score
    scores = strategies.strategy_for(first, given.stats, given.knowledge, recorder).scores
    unaware, aware = scores.of_graphs(np.stack([without, knowing]))[:, :d]
    while (smaller := _without_one_parent(knowing, d)).size:
        values = scores.of_graphs(smaller)[:, :d]
        best, nodes = values.argmax(axis=0), np.arange(d)
        better = values[best, nodes] > aware
        if not better.any():
            break
        aware = np.maximum(aware, values.max(axis=0))
        knowing[:, nodes[better]] = smaller[best[better], :, nodes[better]].T
    return np.maximum(aware - unaware, 0.0)


def _without_one_parent(graph: Graph, d: int) -> Int8[np.ndarray, "k m m"]:
    """Graphs of which the k-th lacks the k-th parent of each node, contexts apart; all of them."""
    number = graph[:d].cumsum(axis=0) * graph[:d]  # of each parent among those of its node
    smaller = np.repeat(graph[None], number.max(initial=0), axis=0)
    for k, one in enumerate(smaller, start=1):
        one[:d][number == k] = 0
    return smaller
