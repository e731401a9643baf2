"""Metrics against values worked by hand, and against the same thing written slowly."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import graphs as graph_facts
from bayesdag import metrics
from bayesdag.errors import InputError

# The collider 0 → 2 ← 1 is the truth of the worked examples.
COLLIDER = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)  # 0 → 1 → 2
REVERSED_CHAIN = np.ascontiguousarray(CHAIN.T)  # 2 → 1 → 0
EMPTY = np.zeros((3, 3), dtype=np.int8)
DRAWS = np.stack([COLLIDER, CHAIN, EMPTY])
WEIGHTS = np.array([0.5, 0.25, 0.25])


def random_dags(rng: np.random.Generator, num: int, d: int) -> np.ndarray:
    """DAGs of all densities with nodes in random order."""
    upper = np.triu(rng.random((num, d, d)) < rng.random((num, 1, 1)), k=1)
    order = np.argsort(rng.random((num, d)), axis=1)
    mixed = np.take_along_axis(upper, order[:, :, None], axis=1)
    return np.take_along_axis(mixed, order[:, None, :], axis=2).astype(np.int8)


@st.composite
def weighted_draws(draw):
    """(graphs, weights, truth) with 1 to 6 nodes and 1 to 8 draws, ties and zeros included."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, num = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    weights = rng.integers(0, 4, num).astype(float)
    weights[0] += 1
    return random_dags(rng, num, d), weights / weights.sum(), random_dags(rng, 1, d)[0]


@st.composite
def forecasts(draw):
    """(probabilities, truth); a coarse grid of probabilities makes ties common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, levels = draw(st.integers(1, 7)), draw(st.sampled_from([1, 2, 4, 100]))
    truth = rng.random((d, d)) < rng.choice([0.0, 0.3, 1.0])
    return rng.integers(0, levels + 1, (d, d)) / levels, truth & ~np.eye(d, dtype=bool)


def plain_pairs(probabilities, truth):
    d = len(truth)
    return [(probabilities[i, j], truth[i, j]) for i, j in itertools.permutations(range(d), 2)]


def test_shd_counts_a_reversal_once():
    # The chain's reversal turns both edges: 2 unordered pairs differ, not 4 entries.
    assert metrics.shd(REVERSED_CHAIN, CHAIN) == 2


def test_expected_shd_of_a_worked_example():
    # To the collider {0→2, 1→2}: itself 0; chain {0→1, 1→2} has one too many and one too few,
    # 2; the empty graph 2. Expected: ½·0 + ¼·2 + ¼·2 = 1.
    assert metrics.shd(DRAWS, COLLIDER).tolist() == [0, 2, 2]
    assert metrics.expected_shd(DRAWS, COLLIDER, WEIGHTS) == 1.0
    assert metrics.expected_shd(DRAWS, COLLIDER) == pytest.approx(4 / 3)


def test_f1_of_a_worked_example():
    # Collider 1; chain shares 1→2 of 2 + 2 edges: 2·1/4 = ½; empty graph 0.
    # Expected: ½ + ¼·½ = .625.
    assert metrics.f1(DRAWS, COLLIDER).tolist() == [1.0, 0.5, 0.0]
    assert metrics.expected_f1(DRAWS, COLLIDER, WEIGHTS) == 0.625


def test_a_reversed_edge_does_not_count_for_f1():
    assert metrics.f1(REVERSED_CHAIN, CHAIN) == 0.0


def test_f1_of_two_empty_graphs_is_one():
    assert metrics.f1(EMPTY, EMPTY) == 1.0
    assert metrics.f1(EMPTY, CHAIN) == 0.0
    assert metrics.f1(CHAIN, EMPTY) == 0.0


def test_expected_number_of_edges_of_a_worked_example():
    assert metrics.expected_num_edges(DRAWS, WEIGHTS) == 0.5 * 2 + 0.25 * 2


def test_cpdag_shd_of_a_worked_example():
    # Classes: collider 0→2←1 stays directed; the chain becomes 0 — 1 — 2; empty stays empty.
    # To the collider: 0; chain differs in 01 (— for none), 02 (none for →), 12 (— for →): 3;
    # empty 2. Expected: ¼·3 + ¼·2 = 1.25.
    assert metrics.expected_cpdag_shd(DRAWS, COLLIDER, WEIGHTS) == 1.25


def test_equivalent_graphs_are_at_cpdag_distance_zero():
    assert metrics.expected_cpdag_shd(REVERSED_CHAIN[None], CHAIN) == 0.0


def test_pairs_undirected_in_the_truth_are_counted():
    # The truth 0 — 1 — 2 against nothing: two pairs differ.
    assert metrics.expected_cpdag_shd(EMPTY[None], CHAIN) == 2.0


def test_negative_log_likelihood_of_a_worked_example():
    # Row 1: ½·.2 + ½·.4 = .3, row 2: ½·.1 + ½·.7 = .4; −(log .3 + log .4)/2.
    log_likelihoods = np.log([[0.2, 0.1], [0.4, 0.7]])
    expected = -(math.log(0.3) + math.log(0.4)) / 2
    assert metrics.negative_log_likelihood(log_likelihoods) == pytest.approx(expected)
    # With weights ¼ and ¾: .05 + .3 = .35 and .025 + .525 = .55.
    weighted = metrics.negative_log_likelihood(log_likelihoods, np.array([0.25, 0.75]))
    assert weighted == pytest.approx(-(math.log(0.35) + math.log(0.55)) / 2)


def test_negative_log_likelihood_survives_tiny_densities_and_unused_draws():
    log_likelihoods = np.array([[-1e4, -1e4], [-np.inf, -np.inf]])
    one = metrics.negative_log_likelihood(log_likelihoods, np.array([1.0, 0.0]))
    both = metrics.negative_log_likelihood(log_likelihoods, np.array([0.5, 0.5]))
    assert one == 1e4
    assert both == pytest.approx(1e4 + math.log(2))
    assert metrics.negative_log_likelihood(log_likelihoods[1:]) == np.inf


def test_mmd_of_a_worked_example():
    # Chain and empty graph: marginals differ by 1 in two entries, √2·√2/3 = 2/3. By the kernel:
    # k(chain, chain) + k(empty, empty) − 2k(chain, empty) = 1 + 1 − 2(1 − 2/9) = 4/9 = (2/3)².
    assert metrics.mmd(CHAIN[None], EMPTY[None]) == pytest.approx(2 / 3)


def test_total_variation_of_a_worked_example():
    # (½, ¼, ¼) on collider, chain, empty against (0, ½, ½): ½(½ + ¼ + ¼) = ½.
    assert metrics.total_variation(DRAWS, DRAWS[1:], WEIGHTS) == pytest.approx(0.5)
    assert metrics.total_variation(DRAWS[:1], DRAWS[1:]) == 1.0


def test_total_variation_against_an_exact_distribution():
    everything = graph_facts.all_dags(3)
    exact = np.full(len(everything), 1 / 25)
    # One draw: |1 − 1/25| + 24·1/25, halved.
    assert metrics.total_variation(CHAIN[None], everything, None, exact) == pytest.approx(24 / 25)
    assert metrics.total_variation(everything, everything[::-1], exact, exact) == 0.0


# Probabilities of the six ordered pairs.
FORECAST = np.array([[0.0, 0.2, 0.8], [0.2, 0.0, 0.4], [0.4, 0.0, 0.0]])


def test_auroc_of_a_worked_example():
    # True: .8, .4. False: .2 (0→1), .2 (1→0), .4 (2→0), 0 (2→1).
    # .8 beats all 4; .4 beats 3 and ties with one: (4 + 3.5) / 8.
    assert metrics.auroc(FORECAST, COLLIDER) == 7.5 / 8


def test_auprc_of_a_worked_example():
    # Threshold .8: precision 1, recall ½. Threshold .4: both pairs enter together, 2 of 3.
    # ½·1 + ½·⅔ = 5/6.
    assert metrics.auprc(FORECAST, COLLIDER) == pytest.approx(5 / 6)


def test_brier_and_its_skill_of_a_worked_example():
    # True: .2² + .6² = .4; false: .2² + .2² + .4² + 0 = .24; .64/6. Share 1/3: ⅓·⅔ = 2/9.
    assert metrics.brier(FORECAST, COLLIDER) == pytest.approx(0.64 / 6)
    assert metrics.brier_skill(FORECAST, COLLIDER) == pytest.approx(1 - (0.64 / 6) / (2 / 9))


def test_log_score_of_a_worked_example():
    # log .8 + log .4 + 2 log .8 + log .6 + log(1 − floor), over 6; floor .001 for 2→1.
    total = math.log(0.8) + math.log(0.4) + 2 * math.log(0.8) + math.log(0.6) + math.log(0.999)
    assert metrics.log_score(FORECAST, COLLIDER) == pytest.approx(total / 6)


def test_a_confident_mistake_costs_the_floor_and_no_more():
    assert metrics.log_score(1.0 - COLLIDER, COLLIDER) == pytest.approx(math.log(0.001))
    assert metrics.log_score(1.0 - COLLIDER, COLLIDER, floor=0.25) == pytest.approx(math.log(0.25))


def test_calibration_of_a_worked_example():
    # In the band: .2 and .2 (false), .4 (true) and .4 (false), .8 (true); 0 is outside.
    # Bin [.15, .25): |.4 − 0|; bin [.35, .45): |.8 − 1|; bin [.75, .85): |.8 − 1|.
    # (.4 + .2 + .2) / 5 = .16.
    error, count = metrics.calibration_error(FORECAST, COLLIDER)
    assert (error, count) == (pytest.approx(0.16), 5)


def test_the_ends_of_the_calibration_band_are_outside():
    # .05 as a sum of weights, one bit off either way.
    for value in (0.05, np.nextafter(0.05, 1), 0.95, np.nextafter(0.95, 0)):
        assert metrics.calibration_error(np.full((3, 3), value), COLLIDER).num_pairs == 0


def test_reliability_of_a_worked_example():
    # Bins [0,.1): one pair; [.2,.3): two false; [.4,.5): one of two true; [.8,.9): one true.
    curve = metrics.reliability(FORECAST, COLLIDER)
    np.testing.assert_allclose(curve.lower, [0, 0.2, 0.4, 0.8])
    np.testing.assert_allclose(curve.upper, [0.1, 0.3, 0.5, 0.9])
    np.testing.assert_array_equal(curve.counts, [1, 2, 2, 1])
    np.testing.assert_allclose(curve.forecast, [0, 0.2, 0.4, 0.8])
    np.testing.assert_allclose(curve.observed, [0, 0, 0.5, 1])


def test_a_probability_at_the_border_lies_in_the_bin_it_begins():
    # .3 / .1 is a bit below 3 in floating point.
    assert metrics.reliability(np.full((3, 3), 0.3), COLLIDER).lower == pytest.approx([0.3])


def test_wilson_interval_has_its_published_values():
    # Newcombe (1998), Two-sided confidence intervals for the single proportion, method 3.
    low, high = metrics.wilson_interval(np.array([81, 15, 0, 1]), np.array([263, 148, 20, 29]))
    np.testing.assert_allclose(low, [0.2553, 0.0624, 0, 0.0061], atol=5e-5)
    np.testing.assert_allclose(high, [0.3662, 0.1605, 0.1611, 0.1718], atol=5e-5)


@pytest.mark.parametrize("truth", [EMPTY, 1 - np.eye(3, dtype=np.int8)], ids=["none", "all"])
def test_without_two_kinds_of_pairs_a_forecast_cannot_shine(truth):
    forecast = np.full((3, 3), 0.25)
    assert metrics.auroc(forecast, truth) == 0.5
    assert metrics.auprc(forecast, truth) == float(truth.any())
    assert metrics.brier_skill(forecast, truth) == -metrics.brier(forecast, truth)
    assert metrics.brier_skill(truth.astype(float), truth) == 0.0


def test_one_node_has_no_pairs_and_perfect_scores():
    graph = np.zeros((1, 1), dtype=np.int8)
    row = metrics.summary(graph[None], graph)
    assert row["expected_shd"] == row["expected_cpdag_shd"] == row["brier"] == 0.0
    assert row["log_score"] == row["calibration_error"] == row["calibration_count"] == 0.0
    assert row["edge_f1"] == row["ancestor_f1"] == 1.0
    assert row["auroc"] == 0.5
    assert row["auprc"] == row["brier_skill"] == 0.0


def test_the_empty_graph_has_no_pair_in_the_calibration_band():
    assert metrics.calibration_error(EMPTY.astype(float), CHAIN) == (0.0, 0)


def test_values_that_are_no_probabilities_are_refused():
    with pytest.raises(InputError, match="6 of 6 probabilities are not between 0 and 1"):
        metrics.brier(np.full((3, 3), 1.5), CHAIN)
    with pytest.raises(InputError, match="nan"):
        metrics.auroc(np.full((3, 3), np.nan), CHAIN)


def test_probabilities_may_miss_their_bounds_by_rounding():
    off = COLLIDER + 1e-9 * (2.0 * COLLIDER - 1.0)
    assert metrics.brier(off, COLLIDER) == 0.0
    assert metrics.auroc(off, COLLIDER) == 1.0


def test_weights_that_do_not_sum_to_one_are_refused():
    with pytest.raises(InputError, match="sum to 2"):
        metrics.expected_shd(DRAWS, CHAIN, 2 * WEIGHTS)


@given(weighted_draws())
def test_shd_is_the_count_of_differing_pairs(example):
    graphs, _, truth = example
    pairs = list(itertools.combinations(range(len(truth)), 2))
    for graph, distance in zip(graphs, metrics.shd(graphs, truth), strict=True):
        plain = sum((graph[i, j], graph[j, i]) != (truth[i, j], truth[j, i]) for i, j in pairs)
        assert distance == metrics.shd(truth, graph) == plain


@given(weighted_draws())
def test_expected_shd_depends_on_edge_probabilities_only(example):
    graphs, weights, truth = example
    edge = metrics.frequencies(graphs, weights)
    expected = metrics.expected_shd(graphs, truth, weights)
    assert metrics.shd_of_marginals(edge, truth) == pytest.approx(expected)


@given(weighted_draws())
def test_f1_is_the_harmonic_mean_of_precision_and_recall(example):
    graphs, _, truth = example
    for graph, value in zip(graphs, metrics.f1(graphs, truth), strict=True):
        hits = int((graph & truth).sum())
        if hits:
            precision, recall = hits / graph.sum(), hits / truth.sum()
            assert value == pytest.approx(2 * precision * recall / (precision + recall))
        else:
            assert value == float(not graph.any() and not truth.any())


@given(weighted_draws(), weighted_draws())
def test_mmd_is_the_double_sum_over_the_kernel(first, second):
    graphs, weights, _ = first
    d = graphs.shape[-1]
    others = random_dags(np.random.default_rng(len(second[0])), len(second[0]), d)

    def kernel_mean(a, p, b, q):
        hamming = (a[:, None] != b[None]).sum(axis=(2, 3))
        return p @ (1 - hamming / d**2) @ q

    squared = (
        kernel_mean(graphs, weights, graphs, weights)
        + kernel_mean(others, second[1], others, second[1])
        - 2 * kernel_mean(graphs, weights, others, second[1])
    )
    value = metrics.mmd(graphs, others, weights, second[1])
    assert value**2 == pytest.approx(squared, abs=1e-12)
    assert metrics.mmd(others, graphs, second[1], weights) == pytest.approx(value)
    assert metrics.mmd(graphs, graphs, weights, weights) == 0.0


@given(weighted_draws(), st.randoms(use_true_random=False))
def test_total_variation_is_symmetric_bounded_and_forgets_the_order(example, random):
    graphs, weights, truth = example
    shuffled = random.sample(range(len(graphs)), len(graphs))
    assert metrics.total_variation(graphs, graphs[shuffled], weights, weights[shuffled]) < 1e-12
    there = metrics.total_variation(graphs, truth[None], weights)
    back = metrics.total_variation(truth[None], graphs, None, weights)
    agreeing = weights[(graphs == truth).all(axis=(1, 2))].sum()
    assert there == pytest.approx(back)
    assert there == pytest.approx(1 - agreeing)
    assert 0 <= there <= 1


@given(weighted_draws())
def test_splitting_a_draw_in_two_changes_nothing(example):
    graphs, weights, truth = example
    twice = np.concatenate([graphs, graphs[:1]])
    split = np.concatenate([weights, weights[:1] / 2])
    split[0] /= 2
    before, after = (metrics.summary(*a) for a in ((graphs, truth, weights), (twice, truth, split)))
    assert after == pytest.approx(before, abs=1e-9)


@given(weighted_draws(), st.randoms(use_true_random=False))
def test_relabelling_the_nodes_changes_nothing(example, random):
    graphs, weights, truth = example
    order = random.sample(range(len(truth)), len(truth))
    moved = metrics.summary(graphs[:, order][:, :, order], truth[order][:, order], weights)
    assert moved == pytest.approx(metrics.summary(graphs, truth, weights), abs=1e-9)


@settings(max_examples=200)
@given(weighted_draws())
def test_every_measure_is_finite_and_within_its_bounds(example):
    graphs, weights, truth = example
    row = metrics.summary(graphs, truth, weights)
    num_pairs = len(truth) * (len(truth) - 1) / 2
    assert all(type(value) is float and math.isfinite(value) for value in row.values())
    for name in ("expected_shd", "expected_cpdag_shd", "expected_num_edges"):
        assert 0 <= row[name] <= num_pairs + 1e-9
    for name in ("auroc", "auprc", "brier", "calibration_error"):
        assert 0 <= row[name] <= 1
        assert 0 <= row[f"ancestor_{name}"] <= 1
    assert 0 <= row["edge_f1"] <= 1 + 1e-12
    assert row["brier_skill"] <= 1
    assert math.log(metrics.LOG_SCORE_FLOOR) <= row["log_score"] <= 0


@given(weighted_draws())
def test_the_truth_itself_is_perfect(example):
    truth = example[2]
    row = metrics.summary(truth[None], truth)
    assert row["expected_shd"] == row["expected_cpdag_shd"] == row["brier"] == 0
    assert row["edge_f1"] == row["ancestor_f1"] == 1
    if truth.sum() > 0:  # a DAG with two nodes or more always lacks some ordered pair
        assert row["auroc"] == row["auprc"] == row["brier_skill"] == 1


@given(forecasts())
def test_auroc_is_the_share_of_pairs_ranked_correctly(example):
    pairs = plain_pairs(*example)
    true, false = ([p for p, y in pairs if y == kind] for kind in (True, False))
    wins = sum((a > b) + 0.5 * (a == b) for a in true for b in false)
    plain = wins / (len(true) * len(false)) if true and false else 0.5
    assert metrics.auroc(*example) == pytest.approx(plain)


@given(forecasts())
def test_auprc_is_the_mean_precision_at_the_true_pairs(example):
    pairs = plain_pairs(*example)
    precisions = []
    for threshold in [p for p, y in pairs if y]:
        kept = [y for p, y in pairs if p >= threshold]
        precisions.append(sum(kept) / len(kept))
    plain = sum(precisions) / len(precisions) if precisions else 0.0
    assert metrics.auprc(*example) == pytest.approx(plain)


@given(forecasts())
def test_brier_and_log_score_are_plain_means(example):
    pairs = plain_pairs(*example)
    clipped = [(min(max(p, 0.001), 0.999), y) for p, y in pairs]
    squares = [(p - y) ** 2 for p, y in pairs] or [0.0]
    logs = [math.log(p if y else 1 - p) for p, y in clipped] or [0.0]
    assert metrics.brier(*example) == pytest.approx(sum(squares) / len(squares))
    assert metrics.log_score(*example) == pytest.approx(sum(logs) / len(logs))


@given(forecasts())
def test_reliability_accounts_for_every_pair(example):
    pairs = plain_pairs(*example)
    curve = metrics.reliability(*example)
    assert curve.counts.sum() == len(pairs)
    assert (curve.counts * curve.observed).sum() == pytest.approx(sum(y for _, y in pairs))
    assert np.all(curve.low <= curve.observed + 1e-12)
    assert np.all(curve.observed <= curve.high + 1e-12)
    assert np.all(curve.forecast >= curve.lower - 1e-12)
    assert np.all(curve.forecast <= curve.upper + 1e-12)


@given(weighted_draws())
def test_ancestor_measures_are_edge_measures_of_the_closures(example):
    graphs, weights, truth = example
    row = metrics.summary(graphs, truth, weights)
    closures, closed = (graph_facts.ancestors(g).astype(np.int8) for g in (graphs, truth))
    of_closures = metrics.summary(closures, closed, weights)
    for name in ("auroc", "auprc", "brier", "brier_skill", "log_score", "calibration_error"):
        assert row[f"ancestor_{name}"] == pytest.approx(of_closures[name])
    assert row["ancestor_f1"] == pytest.approx(of_closures["edge_f1"])


def test_a_calibrated_forecast_has_a_small_calibration_error(seed):
    # Facts drawn from the forecast itself. The sum of a bin's gaps has variance Σ p(1 − p) at
    # most n/4, so E|gap| ≤ √n/2, and over nine bins E[error] ≤ 9·√(n/9)/2/n = 1.5/√n.
    rng = np.random.default_rng(seed)
    forecast = rng.random((150, 150))
    truth = rng.random((150, 150)) < forecast
    error, count = metrics.calibration_error(forecast, truth)
    assert error < 4 * 1.5 / math.sqrt(count)
    assert metrics.calibration_error(forecast**2, truth).error > 0.1


def test_exact_marginals_are_preferred_to_the_draws():
    edge = np.array([[0.0, 0.5, 1.0], [0.0, 0.0, 0.75], [0.0, 0.0, 0.0]])
    row = metrics.summary(DRAWS, COLLIDER, WEIGHTS, marginals={"edge": edge, "ancestor": edge})
    # One of the true edges is missed with ¼, an extra one found with ½.
    assert row["expected_shd"] == 0.75
    assert row["expected_num_edges"] == 2.25
    assert row["brier"] == row["ancestor_brier"] == pytest.approx((0.5**2 + 0.25**2) / 6)
    assert row["edge_f1"] == 0.625


@given(weighted_draws(), st.integers(0, 2**32 - 1))
def test_whatever_is_said_of_unknown_entries_changes_nothing(drawn, seed):
    graphs, weights, truth = drawn
    d, rng = len(truth), np.random.default_rng(seed)
    unknown = (rng.random((d, d)) < 0.3) & ~np.eye(d, dtype=bool)
    edge = metrics.frequencies(graphs, weights)
    other = np.where(unknown, rng.random((d, d)), edge)
    assert metrics.judge(edge, truth, unknown) == metrics.judge(other, truth, unknown)
    said, otherwise = (metrics.without_unknown(m, unknown) for m in (edge, other))
    true = metrics.without_unknown(truth, unknown)
    expected = metrics.shd_of_marginals(said, true)
    assert metrics.shd_of_marginals(otherwise, true) == pytest.approx(expected)
    drawn_shd = metrics.expected_shd(metrics.without_unknown(graphs, unknown), true, weights)
    assert drawn_shd == pytest.approx(expected)


def test_unknown_entries_are_left_out_of_every_measure():
    unknown = np.zeros((3, 3), dtype=bool)
    unknown[0, 1] = unknown[1, 2] = True  # all that the chain gets right and wrong of 1
    found = metrics.summary(CHAIN[None], COLLIDER, unknown=unknown)
    assert found["expected_shd"] == 1.0  # 0 → 2 is missing
    assert found["num_true_edges"] == 1.0
    assert found["expected_num_edges"] == 0.0
    assert found["brier"] == pytest.approx(1 / 4)
    # Whether 1 reaches 2 is not known, and 0 reaches it in any case.
    expected = np.zeros((3, 3), dtype=bool)
    expected[0, 1] = expected[1, 2] = True
    np.testing.assert_array_equal(metrics.unknown_ancestors(COLLIDER, unknown), expected)
    assert metrics.unknown_ancestors(COLLIDER, None) is None


def test_nothing_unknown_is_as_if_nobody_had_asked():
    none = np.zeros((3, 3), dtype=bool)
    assert metrics.summary(DRAWS, COLLIDER, WEIGHTS, unknown=none) == metrics.summary(
        DRAWS, COLLIDER, WEIGHTS
    )


def test_the_base_rate_is_the_best_constant_forecast():
    rate = metrics.base_rate(COLLIDER)
    assert rate == pytest.approx(2 / 6)
    best = metrics.log_score(np.full((3, 3), rate), COLLIDER)
    for other in (rate - 0.05, rate + 0.05):
        assert metrics.log_score(np.full((3, 3), other), COLLIDER) < best
    unknown = COLLIDER.astype(bool) & (np.arange(3) == 0)[:, None]
    assert metrics.base_rate(COLLIDER, unknown) == pytest.approx(1 / 5)


def test_data_sets_that_are_right_or_wrong_as_a_whole_count_once_each():
    hits, counts = np.array([10.0, 0.0, 10.0, 0.0]), np.full(4, 10.0)
    low, high = metrics.clustered_interval(hits, counts)
    # As four independent trials, up to the correction for having estimated the share.
    narrow = np.ravel(metrics.wilson_interval(np.array([20.0]), np.array([40.0])))
    wide = np.ravel(metrics.wilson_interval(np.array([1.5]), np.array([3.0])))
    assert [low, high] == pytest.approx(wide)
    assert low < narrow[0]
    alike = metrics.clustered_interval(np.full(4, 5.0), counts)
    assert list(alike) == pytest.approx(narrow)
    assert metrics.clustered_interval(np.zeros(2), np.zeros(2)) == (0.0, 1.0)
