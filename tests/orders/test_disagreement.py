"""Independent searches: that there are two, where chains start, and what their difference means."""

from dataclasses import replace

import numpy as np
import pytest

from bayesdag import read
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.orders import pipeline, run_report, strategies
from bayesdag.orders.local_scores import BatchedScores, LocalScores
from bayesdag.orders.prior import Components
from bayesdag.orders.run_report import Disagreement
from bayesdag.orders.search import Found
from bayesdag.orders.strategies import ExpensiveSearch
from bayesdag.runs.recording import recorder_of
from tests.orders.test_batched_search import Trained

SILENT = recorder_of(None)
PRIOR = Components(np.zeros(1), -2.0 * np.arange(7)[None])


def strategy(score=None):
    make = Synthetic(num_variables=7, mechanism="signed_linear", num_train=300, num_test=0)
    data = read(make(5).train)
    score = score or Trained()
    free = Constraints.free(data.names)
    return ExpensiveSearch(BatchedScores(score, score.prepare(data), free, SILENT), SILENT)


def test_two_searches_start_from_different_orders(seed, monkeypatch):
    starts = []
    original = strategies.batched_search

    def noted(parents, start):
        starts.append(start)
        return original(parents, start)

    monkeypatch.setattr(strategies, "batched_search", noted)
    found = strategy().find(np.random.default_rng(seed), PRIOR, 2)
    assert len(starts) == len(found.independent) == 2
    assert not np.array_equal(*starts)
    assert [f.value for f in found.found] == sorted((f.value for f in found.found), reverse=True)
    # On so small a problem both end in graphs that are equally good.
    assert found.independent[0].value == pytest.approx(found.independent[1].value, abs=1e-6)


def test_the_second_search_costs_few_new_families(seed):
    alone, both = Trained(), Trained()
    one, two = strategy(alone), strategy(both)
    rng = np.random.default_rng(seed)
    rough, _ = one._starts(rng, PRIOR, 2)
    parents = strategies.BatchedParentSearch(one.scores, PRIOR.penalty[0])
    strategies.batched_search(parents, rough.order)
    two.find(np.random.default_rng(seed), PRIOR, 2)
    assert len(alone.known) < len(both.known) < 2 * len(alone.known)


def effort(num_chains: int, num_ladders: int, num_rungs: int) -> pipeline.Effort:
    whole = Collapsed(num_chains=num_chains)._effort(4, strategy())
    return replace(whole, num_ladders=num_ladders, num_rungs=num_rungs)


def test_each_chain_starts_from_one_search_and_its_neighbour_from_the_other():
    found = [Found(np.arange(4), np.zeros((4, 4), np.int8), 0.0)]
    found.append(Found(np.arange(4)[::-1].copy(), np.zeros((4, 4), np.int8), 0.0))
    starts = pipeline._by_chain(found, effort(4, 12, 3))
    cold = starts[:, 0].reshape(4, 3, 4)
    for chain, expected in enumerate([0, 1, 0, 1]):
        np.testing.assert_array_equal(cold[chain], np.tile(found[expected].order, (3, 1)))
    assert not np.array_equal(starts[0, 0], starts[0, 1])  # and hotter ones from the other


def judged(first, second, log_joint):
    """The disagreement of two graphs of three variables, by a score that counts edges."""

    class Counting:
        def log_evidence(self, stats, node, parents):
            return 20.0 * parents.sum(axis=1)

    graphs = [np.array(graph, dtype=np.int8) for graph in (first, second)]
    results = tuple(Found(np.arange(3), graph, 0.0) for graph in graphs)
    scores = LocalScores(Counting(), None, Constraints.free(("a", "b", "c")))
    prior = Components(np.zeros(1), np.zeros((1, 3)))
    found = run_report.disagreement(scores, prior, results, np.asarray(log_joint))
    assert found is not None
    return found


CHAIN = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
FORK = [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
ONE = [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_a_search_that_ends_lower_is_named_with_what_it_missed():
    found = judged(CHAIN, ONE, [[-1.0, -2.0], [-1.5, -0.5]])
    assert found.gap == pytest.approx(20)
    assert found.missed == ("b → c",)
    assert not found.stuck
    assert "two searches from different starts ended 20.0 nats apart" in found.words
    assert "they disagree about b → c. All chains reached the better result" in found.words


def test_chains_that_stay_with_the_worse_result_are_named():
    found = judged(CHAIN, FORK, [[-1.0, -2.0], [-31.5, -30.5]])
    assert found.gap == 0
    assert found.stuck == (1,)
    assert (found.missed, found.edges) == (("b → c",), ("a → c",))
    assert "Chain 1 never came within 10 nats" in found.words


def test_searches_that_agree_need_no_words():
    assert judged(CHAIN, FORK, [[-1.0, -2.0], [-1.5, -0.5]]).words == ""
    assert judged(CHAIN, CHAIN, [[-1.0, -2.0], [-1.5, -0.5]]).edges == ()


def test_the_result_says_how_the_searches_ended(key):
    make = Synthetic(num_variables=5, mechanism="signed_linear", num_train=300, num_test=0)
    data = read(make(5).train)
    method = replace(Collapsed.PRESETS["quick"], score=Trained(), max_candidates=4)
    provenance = method(key, data, Constraints.free(data.names), None).provenance
    told = provenance["search"]["disagreement"]
    assert set(told) == {*Disagreement._fields, "words"}
    assert len(told["log_scores"]) == 2
    assert told["gap"] == pytest.approx(max(told["log_scores"]) - min(told["log_scores"]))
