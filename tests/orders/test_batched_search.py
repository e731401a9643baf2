"""Expensive scores: what is asked for, in which batches, and that the answers are the same."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from bayesdag import read
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.graphs.bitsets import mask_of
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.orders import batched_parent_search, batched_search, search
from bayesdag.orders.batched_parent_search import BatchedParentSearch
from bayesdag.orders.local_scores import BatchedScores, LocalScores
from bayesdag.orders.parent_search import ParentTrees
from bayesdag.orders.strategies import CheapSearch, ExpensiveSearch, strategy_for
from bayesdag.runs.recording import recorder_of
from bayesdag.scores.bge import BGe
from bayesdag.types import ExpensiveScore


@dataclass
class Trained:
    """BGe in the dress of a score that trains networks; counts what it would have to train."""

    asked: list[int] = field(default_factory=list)
    known: set[tuple] = field(default_factory=set)
    changed: bool = False
    queued: int = 0
    bonus: float = 0.0

    def prepare(self, data, recorder=None):
        return BGe().prepare(data)

    def log_evidence(self, stats, node, parents):
        return BGe().log_evidence(stats, node, parents)

    def log_evidence_of_families(self, stats, nodes, parents):
        rows = list(zip(nodes, parents, strict=True))
        fresh = {(int(i), tuple(p)) for i, p in rows} - self.known
        self.known |= fresh
        self.asked += [len(fresh)] if fresh else []
        values = np.array([self.log_evidence(stats, int(i), p[None])[0] for i, p in rows])
        return values + self.bonus * parents[:, 0]

    def approximate_gain(self, stats, nodes, parents):
        now = self.log_evidence_of_families(stats, nodes, parents)
        return BGe().log_evidence_of_additions(stats, nodes, parents) - now[:, None]

    def surrogate(self, stats):
        return BGe(), stats

    def queue_retraining(self, stats, nodes, parents):
        self.queued += int(parents.sum())

    def retrain_queued(self, stats):
        changed, self.changed = self.changed, False
        return {(i, mask_of(np.array(p))) for i, p in self.known} if changed else set()

    def power(self, stats):
        return 1.0

    def scm(self, data):
        return BGe().scm(data)

    def draw(self, key, stats, graphs):
        return BGe().draw(key, stats, graphs)


PENALTY = -2.0 * np.arange(7)


def both(monkeypatch, num_tried=7):
    monkeypatch.setattr(batched_parent_search, "NUM_TRIED", num_tried)
    monkeypatch.setattr(batched_parent_search, "LEAST_GAIN", -np.inf)
    make = Synthetic(num_variables=7, mechanism="signed_linear", num_train=300, num_test=0)
    data = read(make(5).train)
    free, score = Constraints.free(data.names), Trained()
    plain = LocalScores(BGe(), BGe().prepare(data), free)
    batched = BatchedScores(score, score.prepare(data), free, recorder_of(None))
    return ParentTrees(plain, PENALTY), BatchedParentSearch(batched, PENALTY), score


def test_the_strategy_follows_from_the_score():
    assert isinstance(Trained(), ExpensiveScore)
    assert not isinstance(BGe(), ExpensiveScore)
    free = Constraints.free(("a", "b"))
    expensive = strategy_for(Trained(), None, free, recorder_of(None))
    assert isinstance(expensive, ExpensiveSearch)
    assert isinstance(strategy_for(BGe(), None, free, recorder_of(None)), CheapSearch)


def test_trying_everything_chooses_what_plain_grow_shrink_chooses(monkeypatch):
    plain, batched, _ = both(monkeypatch)
    tasks = [(node, before & ~(1 << node)) for node in range(7) for before in range(0, 128, 5)]
    for one, other in zip(plain.choose(tasks), batched.choose(tasks), strict=True):
        assert one.parents == other.parents
        assert one.value == pytest.approx(other.value)


def test_what_is_not_watched_does_not_change_the_choice(monkeypatch):
    _, batched, _ = both(monkeypatch, num_tried=2)
    for node in range(7):
        for before in range(0, 128, 9):
            before &= ~(1 << node)
            choice = batched.choose([(node, before)])[0]
            for j in set(range(7)) - {node}:
                if not choice.watched >> j & 1:
                    assert batched.choose([(node, before ^ 1 << j)])[0].parents == choice.parents


def test_an_expensive_score_reaches_the_posterior_in_few_large_batches(key):
    make = Synthetic(num_variables=7, mechanism="signed_linear", num_train=300, num_test=0)
    data, score = read(make(5).train), Trained()
    free = Constraints.free(data.names)
    method = replace(Collapsed.PRESETS["quick"], score=score, max_candidates=6)
    found = method(key, data, free, None)
    exact = Exact(score=BGe())(key, data, free, None)
    assert abs(found.edge_matrix() - exact.edge_matrix()).max() < 0.1
    assert len(score.asked) < 40
    assert max(score.asked) > 100  # tables of all nodes at once


def test_a_set_that_was_badly_trained_is_trained_again_along_the_order(monkeypatch):
    _, batched, score = both(monkeypatch)
    order = np.arange(7)
    before = search.evaluate(batched, order)
    score.bonus, score.changed = 1e6, True  # training again makes a parent of 0 worth a lot
    after = batched_search.retrained(batched, order)
    assert score.queued >= before.graph.sum()
    assert after.graph[0, 1:].all()
    assert after.value > before.value + 1e5


def test_rounds_of_moves_find_an_order_that_no_single_move_improves(monkeypatch):
    plain, batched, score = both(monkeypatch)
    rng = np.random.default_rng(0)
    found = batched_search.batched_search(batched, np.arange(7))
    again = search.local_search(rng, plain, found.order, recorder_of(None))
    assert again.value == pytest.approx(found.value)
    assert score.queued == found.graph.sum()  # once, at the end
    assert max(score.asked) > 20  # batches, not single families


def test_values_are_looked_up_again_when_training_has_changed_them(monkeypatch):
    _, batched, score = both(monkeypatch)
    before = batched.choose([(3, 0b0000001)])[0]
    score.bonus, score.changed = 500.0, True
    assert batched.choose([(3, 0b0000001)])[0] == before  # within a round nothing changes
    assert batched.refresh()
    assert not batched.refresh()
    after = batched.choose([(3, 0b0000001)])[0]
    assert after.parents == 1
    assert after.value > before.value + 400


def test_a_tuck_gains_what_it_says_and_leaves_no_ancestor_behind(monkeypatch):
    _, batched, _ = both(monkeypatch)
    order = [6, 5, 4, 3, 2, 1, 0]
    start = search.evaluate(batched, np.array(order))
    changes = batched_search._tucks(batched, order)
    assert changes
    for gain, place, segment in changes:
        new = order[:place] + segment + order[place + len(segment) :]
        assert sorted(new) == sorted(order)
        assert search.evaluate(batched, np.array(new)).value == pytest.approx(start.value + gain)
        moved = new.index(order[place])
        for child, parent in zip(*np.nonzero(start.graph.T), strict=True):
            # Whoever was put ahead still finds its parents there, but for the one it left.
            if child in new[:moved] and parent != order[place]:
                assert new.index(parent) < new.index(child)


def test_ancestors_are_tucked_along_and_the_others_stay_behind():
    # 0 -> 1 -> 2: 2 is put before 0, and takes 1 along although 0 is a parent of it.
    assert batched_search._tucked([0, 1, 2], [0, 1 << 0, 1 << 1], 0, 2) == [1, 2, 0]
    # 1 -> 2 and 0 apart: 2 takes 1 along, 3 stays behind.
    assert batched_search._tucked([0, 3, 1, 2], [0, 0, 0, 1 << 1], 0, 3) == [1, 2, 0, 3]


class Blind(Trained):
    """Sees no gain in what only acts together with the parents that are there."""

    def approximate_gain(self, stats, nodes, parents):
        gains = np.full(parents.shape[1], 10.0)
        gains[[0, 3]] = 5.0, 11.0  # the substitute is among the first that are tried
        return np.broadcast_to(gains, parents.shape)

    def log_evidence_of_families(self, stats, nodes, parents):
        worth = 50.0 * (parents[:, 0] & (nodes == 6)) - 1.0 * parents.sum(axis=1)
        return worth + 20.0 * (parents[:, 3] & (nodes == 6)) * ~parents[:, 0]


def test_a_parent_of_little_approximate_gain_is_found_in_the_end_and_replaces_its_substitute():
    data = read(Synthetic(num_variables=7, num_train=200, num_test=0)(5).train)
    score = Blind()
    free = Constraints.free(data.names)
    scores = BatchedScores(score, score.prepare(data), free, recorder_of(None))
    trees = BatchedParentSearch(scores, PENALTY)
    before = 0b0111111
    assert trees.choose([(6, before)])[0].parents == 1 << 3
    assert not trees.exchange([(6, before)], [before & ~1])  # not if it is an effect
    assert trees.exchange([(6, before)], [before])
    assert trees.choose([(6, before)])[0].parents == 1 << 0
    without = trees.choose([(6, before & ~1)])[0]
    assert without.parents == 1 << 3  # where it does not precede
    assert without.watched & 1  # but it would be looked at
    assert not trees.exchange([(6, before)], [before])


def test_effects_are_no_candidates_for_an_exchange(monkeypatch):
    _, batched, _ = both(monkeypatch)
    asked = {}

    def exchange(tasks, allowed):
        asked.update(zip(tasks, allowed, strict=True))
        return False

    monkeypatch.setattr(batched, "exchange", exchange)
    order = [2, 0, 1, 3, 4, 5, 6]
    batched_search._exchanges(batched, order)
    graph = search.evaluate(batched, np.array(order)).graph != 0
    reach = np.linalg.matrix_power(graph + np.eye(7, dtype=int), 7) > 0
    for (node, _), allowed in asked.items():
        assert [not allowed >> j & 1 for j in range(7)] == reach[node].tolist()
