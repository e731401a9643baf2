import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import graphs as facts
from bayesdag.data import read
from bayesdag.graphs.bitsets import mask_of, row_of
from bayesdag.knowledge import Constraints
from bayesdag.orders import candidates, search
from bayesdag.orders.local_scores import LocalScores
from bayesdag.orders.parent_search import ParentTrees
from bayesdag.orders.prior import Components
from bayesdag.orders.search import Found
from bayesdag.orders.strategies import CheapSearch
from bayesdag.runs.recording import recorder_of
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian
from tests.orders.test_score_tables import local_scores, set_score
from tests.toys import toy_frame

SILENT = recorder_of(None)


def grow_and_shrink(scores, penalty, node: int, before: set[int]) -> tuple[float, set[int]]:
    """The plain rule: add the best while it helps, then drop the worst while it helps."""

    def value(parents):
        return set_score(scores, node, parents) + penalty[len(parents)]

    chosen, now = set(), value(set())
    while before - chosen:
        best = max(before - chosen, key=lambda j: value(chosen | {j}))
        if not value(chosen | {best}) > now:
            break
        chosen, now = chosen | {best}, value(chosen | {best})
    while chosen:
        worst = max(chosen, key=lambda j: value(chosen - {j}))
        if not value(chosen - {worst}) > now:
            break
        chosen, now = chosen - {worst}, value(chosen - {worst})
    return now, chosen


@given(st.sets(st.integers(0, 130)))
def test_sets_survive_the_way_to_an_integer_and_back(chosen):
    present = np.isin(np.arange(131), list(chosen))
    np.testing.assert_array_equal(row_of(mask_of(present), 131), present)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_trees_choose_what_grow_and_shrink_would_choose(seed):
    d = 7
    scores = local_scores(seed, d)
    trees = ParentTrees(scores, np.linspace(0, -6, d))
    rng = np.random.default_rng(seed)
    # Asked in batches and again, so that answers come from memory as well.
    tasks = [(int(i), int(rng.integers(1 << d)) & ~(1 << int(i))) for i in rng.integers(d, size=40)]
    for batch in (tasks[:20], tasks):
        for (node, before), choice in zip(batch, trees.choose(batch), strict=True):
            predecessors = {j for j in range(d) if before >> j & 1}
            value, chosen = grow_and_shrink(scores, trees.penalty, node, predecessors)
            assert choice.value == pytest.approx(value)
            assert choice.parents == sum(1 << j for j in chosen)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_variables_that_are_not_watched_cannot_change_the_choice(seed):
    d = 7
    trees = ParentTrees(local_scores(seed, d), np.full(d, 0.0))
    everyone = (1 << d) - 1
    for node in range(d):
        before = int(np.random.default_rng(seed + node).integers(1 << d)) & ~(1 << node)
        choice = trees.choose([(node, before)])[0]
        unwatched = everyone & ~choice.watched & ~(1 << node)
        for j in range(d):
            if unwatched >> j & 1:
                assert trees.choose([(node, before ^ (1 << j))])[0].parents == choice.parents


def test_every_set_is_scored_once(seed):
    scores = local_scores(seed, 8)
    trees = ParentTrees(scores, np.zeros(8))
    for start in range(3):
        search.local_search(np.random.default_rng(start), trees, np.arange(8), SILENT)
    handed_over = scores._score.handed_over  # pyright: ignore[reportAttributeAccessIssue]
    assert len(set(handed_over)) == len(handed_over)


def test_no_single_move_improves_what_the_search_returns(seed):
    d = 7
    scores = local_scores(seed, d)
    trees = ParentTrees(scores, np.zeros(d))
    start = np.arange(d)
    found = search.local_search(np.random.default_rng(seed), trees, start, SILENT)
    assert found.value >= search.evaluate(trees, start).value
    assert facts.is_acyclic(found.graph)
    for node in range(d):
        rest = [j for j in found.order if j != node]
        for place in range(d):
            moved = np.array([*rest[:place], node, *rest[place:]])
            assert search.evaluate(trees, moved).value <= found.value + 1e-6


def test_the_value_of_a_result_is_the_score_of_its_graph(seed):
    scores = local_scores(seed, 6)
    trees = ParentTrees(scores, np.linspace(0, -3, 6))
    found = search.local_search(np.random.default_rng(seed), trees, np.arange(6), SILENT)
    direct = (
        scores.of_graphs(found.graph[None]).sum() + trees.penalty[found.graph.sum(axis=0)].sum()
    )
    assert found.value == pytest.approx(direct)


def test_required_edges_hold_in_starts_and_results_and_forbidden_ones_never(seed):
    required = [("v4", "v1"), ("v1", "v0"), ("v2", "v0")]
    scores = local_scores(seed, 6, required=required, forbidden=[("v5", "v0"), ("v3", "v2")])
    trees = ParentTrees(scores, np.zeros(6))
    rng = np.random.default_rng(seed)
    for start in search.starting_orders(rng, trees, 4, SILENT):
        assert np.isfinite(search.evaluate(trees, start).value)
        assert scores.knowledge.allows(search.local_search(rng, trees, start, SILENT).graph)


@pytest.mark.parametrize("score", [BGe(), LinearGaussian()], ids=["bge", "linear"])
def test_on_a_toy_the_search_finds_the_best_graph_there_is(score):
    data = read(toy_frame())
    scores = LocalScores(score, score.prepare(data), Constraints.free(data.names))
    trees = ParentTrees(scores, np.zeros(4))
    starts = search.starting_orders(np.random.default_rng(0), trees, 4, SILENT)
    best = max(
        search.local_search(np.random.default_rng(0), trees, s, SILENT).value for s in starts
    )
    everything = scores.of_graphs(facts.all_dags(4)).sum(axis=1)
    assert best == pytest.approx(everything.max())


def test_the_short_cut_to_one_more_parent_equals_the_long_way(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6))
    mask = rng.random((60, 6)) < 0.1
    data = read(values, interventions=mask)
    bound = Constraints.free(data.names)
    scores = LocalScores(BGe(), BGe().prepare(data), bound)
    nodes = rng.integers(6, size=20)
    parents = rng.random((20, 6)) < 0.3
    parents[np.arange(20), nodes] = False
    found = scores.additions(nodes, parents)
    for row, (node, base) in enumerate(zip(nodes, parents, strict=True)):
        for j in range(6):
            if base[j] or j == node:
                assert found[row, j] == -np.inf
            else:
                expected = set_score(scores, int(node), {*np.flatnonzero(base).tolist(), j})
                assert found[row, j] == pytest.approx(expected)


def test_probable_parents_become_candidates_and_certain_ones_the_core():
    probability = np.zeros((12, 12))
    probability[1:11, 0] = [1, 1, 1, 1, 1, 0.6, 0.4, 0.01, 0.002, 0.0001]
    required = np.zeros((12, 12), dtype=bool)
    required[11, 0] = True
    roomy = candidates.choose(probability, required, candidates.Limits(12, 3))
    assert roomy.core[0] == ()
    assert roomy.uncertain[0] == (1, 2, 3, 4, 5, 6, 7, 8, 9, 11)
    assert not roomy.crowded.any()
    tight = candidates.choose(probability, required, candidates.Limits(6, 3))
    assert tight.core[0] == (1, 2, 3, 4, 5, 11)
    assert tight.uncertain[0] == (6, 7, 8)
    assert tight.crowded.tolist() == [True] + [False] * 11


def test_what_the_lists_leave_out_is_estimated_from_the_draws(seed):
    d = 4
    scores = local_scores(seed, d, spread=1.0)
    lists = candidates.Lists(((),) * d, ((1,), (0,), (0,), (0,)), np.zeros(d, dtype=bool))
    orders = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    graphs = np.zeros((2, d, d), dtype=bool)
    found = candidates.outside(scores, np.zeros(d), lists, orders, graphs)
    # Node 3 comes last in the first order only; variables 1 and 2 are no candidates of it.
    gains = [set_score(scores, 3, {j}) - set_score(scores, 3, set()) for j in (1, 2)]
    for j, gain in zip((1, 2), gains, strict=True):
        assert found.probability[j, 3] == pytest.approx(0.5 / (1 + np.exp(-gain)))
    expected = 0.5 * np.log1p(np.exp(gains).sum())
    assert found.log_mass[3] == pytest.approx(expected)
    assert found.probability[0, 3] == 0


def test_reversals_of_found_edges_are_candidates_too(seed):
    scores = local_scores(seed, 4)
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[2, 1] = 1
    found = [Found(np.array([2, 1, 0, 3]), graph, 0.0)]
    rough = candidates.of_search(scores, np.full(4, -50.0) * np.arange(4), found, 30.0)
    assert rough[2, 1] > rough[1, 2] > 0.1 > rough[0, 3]


def test_other_parents_of_a_child_are_candidates_too(seed):
    scores = local_scores(seed, 4)
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[[0, 3], 1] = 1
    found = [Found(np.array([0, 3, 1, 2]), graph, 0.0)]
    rough = candidates.of_search(scores, np.full(4, -50.0) * np.arange(4), found, 30.0)
    assert rough[0, 3] == rough[3, 0] == 0.25
    assert rough[0, 1] > rough[1, 0] > rough[0, 3] > rough[2, 3]


def test_further_searches_start_from_the_best_result_and_lose_nothing(seed):
    scores = local_scores(seed, 9)
    prior = Components(np.zeros(1), np.zeros((1, 9)))
    strategy = CheapSearch(scores, SILENT)
    few, *_ = strategy.find(np.random.default_rng(seed), prior, 2)
    many, trees, _ = strategy.find(np.random.default_rng(seed), prior, 8)
    assert (len(few), len(many)) == (2, 8)
    assert many[0].value >= few[0].value
    assert [result.value for result in many] == sorted((f.value for f in many), reverse=True)
    assert many[0].value == pytest.approx(search.evaluate(trees, many[0].order).value)


def test_perturbed_orders_keep_required_edges_and_most_places(seed):
    required = np.zeros((20, 20), dtype=bool)
    required[3, 1] = required[5, 3] = True
    start = search.causes_first(np.arange(20), required)
    shaken = search.perturbed(np.random.default_rng(seed), start, required, 0.1)
    position = np.argsort(shaken)
    assert position[5] < position[3] < position[1]
    assert sorted(shaken) == list(range(20))
    assert not np.array_equal(shaken, start)
