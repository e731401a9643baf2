"""Diagnostics: a verdict that names what has not mixed, and is calm when all is well."""

import json

import numpy as np
import pytest

from bayesdag.posterior import diagnostics
from bayesdag.posterior.chain_comparison import (
    CONSTANT,
    MIXED,
    NOT_MIXED,
    STUCK,
    UNKNOWN,
    outliers,
)
from tests.posteriors import linear, random_dags, random_linear, table

NAMES = ("a", "b", "c", "d")


def chains(rng, probability, num_chains=4, num_draws=200):
    """Graphs over an order a, b, c, d whose edges come and go independently."""
    on = rng.random((num_chains, num_draws, 4, 4)) < np.asarray(probability)
    return np.triu(on, k=1).astype(np.int8)


def diagnose(graphs, log_joint=None, rng=None, independent=False, members=()):
    weights = np.full(graphs.shape[:2], 1 / graphs[..., 0, 0].size)
    rng = rng or np.random.default_rng(0)
    log_joint = rng.normal(size=graphs.shape[:2]) if log_joint is None else log_joint
    stats = {"log_joint": log_joint, "num_edges": graphs.sum(axis=(2, 3)).astype(float)}
    return diagnostics.diagnose(graphs, weights, stats, NAMES, independent, members)


def state(found, name):
    return next(q.state for q in found.quantities if q.name == name)


def test_independent_draws_are_calm(seed):
    found = diagnose(chains(np.random.default_rng(seed), 0.5))
    assert found.converged
    assert found.verdict.startswith("The chains agree (largest R-hat 1.0")
    assert all(q.state in (MIXED, CONSTANT) for q in found.quantities)
    assert found.num_distinct > 10


def test_short_chains_of_independent_draws_are_not_called_unmixed(seed):
    rng = np.random.default_rng(seed)
    alarms = [bool(diagnose(chains(rng, 0.5, 4, 12), rng=rng).unmixed) for _ in range(40)]
    assert np.mean(alarms) < 0.2


def test_an_edge_with_different_probabilities_is_named(seed):
    rng = np.random.default_rng(seed)
    probability = np.full((4, 1, 4, 4), 0.5)
    probability[:2, 0, 0, 2] = 0.1
    probability[2:, 0, 0, 2] = 0.9
    found = diagnose(chains(rng, probability))
    assert state(found, "a → c") == NOT_MIXED
    assert "a → c" in found.verdict
    assert found.verdict.startswith("NOT MIXED")
    assert "num_warmup" in found.verdict
    assert found.scatter[0, 2] == pytest.approx(0.4, abs=0.05)
    assert found.scatter[0, 1] < 0.1
    assert not found.converged


def test_chains_stuck_at_different_values_have_not_mixed(seed):
    rng = np.random.default_rng(seed)
    graphs = chains(rng, 0.5)
    graphs[:2, :, 0, 1], graphs[2:, :, 0, 1] = 0, 1
    found = diagnose(graphs)
    assert state(found, "a → b") == STUCK
    assert "a → b (chains stuck at different values)" in found.verdict
    assert np.isinf(found.unmixed[0].rhat)


def test_what_never_changes_has_no_r_hat(seed):
    graphs = chains(np.random.default_rng(seed), 0.5)
    graphs[..., 0, 1] = 1
    found = diagnose(graphs, log_joint=np.zeros((4, 200)))
    assert state(found, "log joint") == CONSTANT
    assert np.isnan(next(q.rhat for q in found.quantities if q.name == "log joint"))
    assert "a → b" not in [q.name for q in found.quantities]
    assert found.converged


def test_the_log_joint_and_the_order_are_watched(seed):
    rng = np.random.default_rng(seed)
    graphs = chains(rng, 0.5)
    climbing = rng.normal(size=(4, 200)) + np.linspace(0, 30, 200)
    assert state(diagnose(graphs, climbing), "log joint") == NOT_MIXED
    turned = graphs.copy()
    turned[2:] = graphs[2:].swapaxes(2, 3)  # these chains have every arrow the other way
    assert state(diagnose(turned), "ancestors of a") == NOT_MIXED


def test_sticky_chains_are_told_how_much_longer_to_run(seed):
    """An AR(1) log joint: effective size (1 - ρ)/(1 + ρ) of the draws."""
    rng = np.random.default_rng(seed)
    walk = np.zeros((4, 600))
    for t in range(1, 600):
        walk[:, t] = 0.97 * walk[:, t - 1] + rng.normal(size=4)
    found = diagnose(chains(rng, 0.5, 4, 600), walk)
    size = next(q.ess for q in found.quantities if q.name == "log joint")
    assert size < 150
    if not found.unmixed:
        assert "log joint has only" in found.verdict


def test_one_run_says_so_instead_of_an_r_hat(seed):
    found = diagnose(chains(np.random.default_rng(seed), 0.5, num_chains=1))
    assert all(np.isnan(q.rhat) for q in found.quantities)
    assert {q.state for q in found.quantities} <= {UNKNOWN, CONSTANT}
    assert found.verdict.startswith("One run of 200 draws")
    assert "num_chains=4" in found.verdict
    assert found.converged is None


def test_draws_without_a_chain_need_not_mix(seed):
    found = diagnose(chains(np.random.default_rng(seed), 0.5, num_chains=1), independent=True)
    assert found.verdict.startswith("200 independent draws")
    assert "num_chains" not in found.verdict


def test_chains_too_short_to_split_say_so(seed):
    found = diagnose(chains(np.random.default_rng(seed), 0.5, num_draws=3))
    assert "too short" in found.verdict
    assert not found.unmixed


def test_a_few_heavy_draws_are_noticed(seed):
    weights = np.full((1, 100), 1e-6)
    weights[0, 3] = 1.0
    found = random_linear(seed, num_chains=1, num_draws=100, weights=weights).diagnostics()
    assert found.kish_ess == pytest.approx(1, abs=0.01)
    assert "100 draws count like 1.0" in found.verdict


def test_the_summary_is_plain_and_the_table_starts_with_the_statistics(seed):
    found = random_linear(seed).diagnostics()
    assert json.loads(json.dumps(found.summary()))["num_chains"] == 2
    shown = found.table(top=3)
    assert shown["quantity"].tolist()[:2] == ["log joint", "num edges"]
    assert list(shown.columns) == ["quantity", "rhat", "ess", "state"]


def test_a_hundred_variables_are_diagnosed_in_seconds(seed):
    rng = np.random.default_rng(seed)
    common = random_dags(rng, (1, 1), 100, p=0.03)
    flips = rng.random((4, 100, 100, 100)) < 0.005
    graphs = (common & ~flips).astype(np.int8)
    found = linear(graphs, table(rng, 300, 100)).diagnostics()
    assert len([q for q in found.quantities if q.kind == "order"]) == 100


def edge_draws(rng, probability, num_draws=500, num_edges=30, stay=0.0):
    """Indicators (chain, draw, edge) that keep their value with probability `stay`."""
    p = np.broadcast_to(np.asarray(probability, dtype=float), (len(probability), num_edges))
    on = np.empty((len(p), num_draws, num_edges))
    on[:, 0] = rng.random(p.shape) < p
    for t in range(1, num_draws):
        fresh = rng.random(p.shape) < p
        on[:, t] = np.where(rng.random(p.shape) < stay, on[:, t - 1], fresh)
    return on


def found_outliers(values):
    weights = np.full(values.shape[:2], 1 / values[..., 0].size)
    return outliers([f"edge {k}" for k in range(values.shape[2])], values, weights)


def test_one_chain_at_80_beside_three_at_65_is_reported(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        graphs = chains(rng, 0.65, 4, 500)
        for c, probability in enumerate((0.65, 0.65, 0.65, 0.80)):
            graphs[c, :, 0, 1] = rng.permutation(500) < 500 * probability
        found = diagnose(graphs)
        assert found.converged is False
        assert found.verdict.startswith("NOT MIXED")
        assert "chain 4 gives a → b the probability 0.80, the others 0.65" in found.verdict
        assert {(o.edge, o.chain) for o in found.outliers} == {("a → b", 4)}


@pytest.mark.parametrize(
    "stay", [0.0, 0.5, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.8, 0.95, 0.98))]
)
def test_chains_with_the_same_probability_are_not_outliers(seed, stay):
    """At most 3 of 300 fits of 30 edges: one percent."""
    rng = np.random.default_rng(seed)
    same = [[0.65]] * 4
    alarms = [bool(found_outliers(edge_draws(rng, same, stay=stay))) for _ in range(300)]
    assert sum(alarms) <= 3


def test_autocorrelated_chains_need_a_larger_difference(seed):
    """At 0.95, 500 draws count like 13: the same difference that 500 independent ones show."""
    rng = np.random.default_rng(seed)
    probability = [[0.65], [0.65], [0.65], [0.80]]
    at_once = [found_outliers(edge_draws(rng, probability, num_edges=5)) for _ in range(10)]
    slowly = [
        found_outliers(edge_draws(rng, probability, num_edges=5, stay=0.95)) for _ in range(10)
    ]
    assert np.mean([len(found) for found in at_once]) > 4
    assert np.mean([len(found) for found in slowly]) < 1


MEMBERS = [
    diagnostics.member(f"bag {number}", 2, {"independent": independent})
    for number, independent in ((1, False), (2, False))
]


def test_members_may_differ_but_their_own_chains_may_not(seed):
    rng = np.random.default_rng(seed)
    probability = np.full((4, 1, 4, 4), 0.5)
    probability[2:, 0, 0, 2] = 0.9
    found = diagnose(chains(rng, probability), members=MEMBERS)
    assert found.converged
    assert "The chains agree within each of 2 members, bag 1 to bag 2" in found.verdict
    probability[3, 0, 0, 2] = 0.1
    found = diagnose(chains(rng, probability), members=MEMBERS)
    assert found.converged is False
    assert found.verdict.startswith("bag 2, the worst of 1 with poor chains: NOT MIXED")
    assert {q.name for q in found.unmixed} >= {"bag 2: a → c"}
    assert not any(q.name.startswith("bag 1") for q in found.unmixed)
    assert json.loads(json.dumps(found.summary()))["members"][0]["converged"] is True


def test_members_of_one_chain_are_not_said_to_agree(seed):
    alone = [diagnostics.member(f"bag {k}", 1, {}) for k in range(4)]
    found = diagnose(chains(np.random.default_rng(seed), 0.5), members=alone)
    assert found.converged is None
    assert found.verdict.startswith("bag 0, like 3 more: One run of 200 draws")


def test_the_text_of_diagnostics_is_short(seed):
    rng = np.random.default_rng(seed)
    assert repr(diagnose(chains(rng, 0.5))) == "<Diagnostics of 4 × 200 draws: converged>"
    one = diagnose(chains(rng, 0.5, num_chains=1))
    assert repr(one) == "<Diagnostics of 1 × 200 draws: nothing to compare>"
