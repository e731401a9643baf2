from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.graphs.bitsets import log_subset_sums
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.orders import pipeline, score_tables
from bayesdag.orders.candidates import CERTAIN, Limits, choose
from bayesdag.orders.local_scores import LocalScores


class MadeUpScore:
    """Evidence that is different for every set and asymmetric in every pair."""

    def __init__(self, seed: int, d: int, spread: float = 2.0) -> None:
        rng = np.random.default_rng(seed)
        self.linear = rng.normal(0, spread, (d, d))
        self.pairs = rng.normal(0, spread / 2, (d, d, d))
        self.handed_over: list[tuple[int, bytes]] = []

    def prepare(self, data):
        return None

    def log_evidence(self, stats, node, parents):
        self.handed_over += [(node, row.tobytes()) for row in parents]
        rows = parents.astype(float)
        return rows @ self.linear[node] + np.einsum("ma,mb,ab->m", rows, rows, self.pairs[node])

    def scm(self, data):
        return None

    def draw(self, key, stats, graphs):
        return {}


def local_scores(seed: int, d: int, spread: float = 2.0, **knowledge) -> LocalScores:
    names = [f"v{i}" for i in range(d)]
    bound = Knowledge(**knowledge).bind(names) if knowledge else Constraints.free(names)
    return LocalScores(MadeUpScore(seed, d, spread), None, bound)


def subsets(members):
    return [set(s) for size in range(len(members) + 1) for s in combinations(members, size)]


def set_score(scores: LocalScores, node: int, parents: set[int]) -> float:
    row = np.zeros((1, scores.num_variables), dtype=bool)
    row[0, list(parents)] = True
    return float(scores.of_node(node, row)[0])


def order_sum(scores, table, penalty, before: set[int]) -> float:
    """T by its definition: the log sum over all parent sets among the predecessors."""
    taken = set(table.core) & before
    terms = [
        set_score(scores, table.node, taken | some) + penalty[len(taken | some)]
        for some in subsets(set(table.uncertain) & before)
    ]
    return float(np.logaddexp.reduce(terms))


@given(st.integers(0, 6), st.integers(0, 2**31))
def test_subset_sums_add_up_every_subset(num_bits, seed):
    values = np.random.default_rng(seed).normal(0, 2000, 1 << num_bits)
    found = log_subset_sums(values)
    for whole in range(1 << num_bits):
        inside = [s for s in range(1 << num_bits) if s & ~whole == 0]
        assert found[whole] == pytest.approx(np.logaddexp.reduce(values[inside]), abs=1e-9)


def test_subset_sums_keep_small_terms_beside_huge_ones():
    # One shift by the maximum would turn the first two entries into zeros.
    found = log_subset_sums(np.array([-5000.0, -5000.0, 0.0, -np.inf]))
    np.testing.assert_allclose(found, [-5000, -5000 + np.log(2), 0, 0])


@given(st.integers(0, 14))
def test_sums_of_core_strides_tell_which_members_are_late(num_core):
    strides = score_tables.core_strides(num_core)
    few = [sum(strides[list(s)]) for size in range(3) for s in combinations(range(num_core), size)]
    assert len(set(few)) == len(few)
    if num_core >= 3:
        assert max(few) < strides[:3].sum()
        assert 3 * (strides.min() - 1) <= strides[:3].sum()


@pytest.mark.parametrize(("core", "uncertain"), [((), (1, 3, 5)), ((2, 4, 5, 6), (0, 3))])
def test_a_table_holds_the_sum_over_parent_sets_for_every_predecessor_set(core, uncertain, seed):
    scores = local_scores(seed, 7)
    penalty = np.linspace(0, -4, 7)
    table = score_tables.tabulate(scores, 1 if core else 0, core, uncertain)
    others = [j for j in range(7) if j != table.node]
    sums, rows = table.log_sums(penalty), score_tables.core_strides(len(core))
    for before in subsets(others):
        late = [k for k, member in enumerate(core) if member not in before]
        row = min(int(rows[late].sum()), len(sums) - 1)
        column = sum(1 << k for k, member in enumerate(uncertain) if member in before)
        if len(late) <= 2:
            expected = order_sum(scores, table, penalty, before)
            assert sums[row, column] == pytest.approx(expected)
        else:
            assert sums[row, column] == sums[np.isfinite(sums)].min()


def test_a_core_that_must_precede_makes_other_orders_impossible(seed):
    scores = local_scores(seed, 6, required=[("v1", "v0")])
    sums = score_tables.tabulate(scores, 0, (1, 2, 3), (4,)).log_sums(np.zeros(6))
    assert sums[0, 0] > -np.inf
    assert sums[-1, 0] == -np.inf


@pytest.mark.parametrize("core", [(), (2, 4)])
def test_parents_are_drawn_with_their_exact_probability(core, seed):
    d, num = 6, 40_000
    scores = local_scores(seed, d, spread=1.0, forbidden=[("v3", "v0")])
    penalty = np.linspace(0, -3, d)
    table = score_tables.tabulate(scores, 0, core, tuple(j for j in range(1, d) if j not in core))
    allowed = {1, 2, 3, 5}
    before = np.tile(np.isin(np.arange(d), list(allowed)), (num, 1))
    drawn, inside = table.draw(np.random.default_rng(seed), before, penalty)
    assert inside.all()
    codes = drawn @ (1 << np.arange(d))
    total = order_sum(scores, table, penalty, allowed)
    for some in subsets(set(table.uncertain) & allowed):
        chosen = some | (set(core) & allowed)
        log_prob = set_score(scores, 0, chosen) + penalty[len(chosen)] - total
        share = np.mean(codes == sum(1 << j for j in chosen))
        error = np.sqrt(np.exp(log_prob) / num) + 1e-12
        assert abs(share - np.exp(log_prob)) < 4.5 * error
        if 3 in some:
            assert share == 0


def test_a_draw_outside_a_core_table_says_so(seed):
    table = score_tables.tabulate(local_scores(seed, 6), 0, (1, 2, 3, 4), (5,))
    before = np.array([[False, True, False, False, False, True], [True] * 6])
    parents, inside = table.draw(np.random.default_rng(0), before, np.zeros(6))
    assert inside.tolist() == [False, True]
    assert not (parents & ~before).any()


def test_an_order_outside_a_core_table_gets_less_than_the_node_without_its_core(seed):
    """Else chains turn the edges of a node with strong parents round."""
    scores = local_scores(seed, 6)
    table = score_tables.tabulate(scores, 0, (1, 2, 3, 4), (5,))
    alone = [set_score(scores, 0, chosen) for chosen in (set(), {5})]
    np.testing.assert_allclose(table.bare, alone)
    strong = replace(table, bare=table.bare - 5000)
    outside = strong.log_sums(np.zeros(6))[-1]
    assert (outside <= min(alone) - 5000 - 99).all()
    assert len(set(outside)) == 1  # an index that is cut off has lost its column


def test_a_core_member_without_which_the_node_does_as_well_is_dispensable():
    """Alone, or together with another: each of two false parents may cover for the other."""
    worth = {1: 50.0, 2: 0.5, 3: 0.0, 4: 0.0}

    class Score(MadeUpScore):
        def log_evidence(self, stats, node, parents):
            alone = parents @ np.array([0.0, *worth.values(), 0.0])
            return alone - 40.0 * (parents[:, 3] ^ parents[:, 4])

    scores = LocalScores(Score(0, 6), None, Constraints.free([f"v{i}" for i in range(6)]))
    table = score_tables.tabulate(scores, 0, (1, 2, 3, 4), (5,))
    assert table.dispensable(np.zeros(6), 7.0) == {3, 4}
    assert score_tables.tabulate(scores, 0, (1, 2), (5,)).dispensable(np.zeros(6), 7.0) == {2}
    assert score_tables.tabulate(scores, 0, (1,), (5,)).dispensable(np.zeros(6), 7.0) == set()
    assert table.dispensable(100.0 * np.arange(6), 7.0) == set()


def test_of_two_parents_that_could_be_missed_alone_only_one_is_given_up():
    class Score(MadeUpScore):
        def log_evidence(self, stats, node, parents):
            return 2000.0 * (parents[:, 1] | parents[:, 2]) + 90.0 * parents[:, 3] + parents[:, 1]

    scores = LocalScores(Score(0, 5), None, Constraints.free([f"v{i}" for i in range(5)]))
    table = score_tables.tabulate(scores, 0, (1, 2, 3), (4,))
    assert table.dispensable(np.zeros(5), 7.0) == {2}


def test_a_core_that_the_tables_do_not_bear_out_is_given_up(seed):
    """What a search was sure of cannot be dropped by chains once it is in a core."""
    d, limits = 9, Limits(plain=4, beside_core=2)
    scores = local_scores(seed, d, spread=3.0)
    certain = np.where(np.eye(d, dtype=bool), 0.0, CERTAIN)
    none_required = np.zeros((d, d), dtype=bool)
    assert all(choose(certain, none_required, limits).core)
    lists, found = pipeline._tables(scores, certain, np.zeros(d), limits, {})
    kept = [table for table in found if table.core]
    assert len(kept) < d
    for table in kept:
        assert not table.dispensable(np.zeros(d), -np.log1p(-CERTAIN))
    assert [table.core for table in found] == list(lists.core)


def test_every_pair_is_scored_once_and_forbidden_sets_never(seed):
    scores = local_scores(seed, 5, forbidden=[("v1", "v0")])
    for _ in range(2):
        score_tables.tabulate(scores, 0, (), (1, 2, 3, 4))
        score_tables.tabulate(scores, 0, (), (2, 3, 4))
    handed_over = scores._score.handed_over  # pyright: ignore[reportAttributeAccessIssue]
    assert len(set(handed_over)) == len(handed_over) == 8 == scores.num_computed - 8
