"""The collapsed engine as a user meets it: quick fits, judged by the exact posterior."""

import dataclasses

import jax
import numpy as np
import pytest

from bayesdag import fit, log_scores, read
from bayesdag.errors import InputError
from bayesdag.graphs import num_linear_extensions
from bayesdag.knowledge import Constraints
from bayesdag.methods.collapsed import Collapsed
from bayesdag.orders import noise_averaging, order_counting
from bayesdag.scores.bge import BGe
from tests.statistical import kit
from tests.toys import NAMES, TRUTH, toy_frame

QUICK = Collapsed.PRESETS["quick"]


def few_rows(seed: int = 1):
    """So few rows that many graphs are probable."""
    return read(toy_frame(40, seed))


@pytest.mark.parametrize("order_modular", [True, False])
def test_draws_agree_with_the_exact_posterior(order_modular):
    method = dataclasses.replace(QUICK, order_modular=order_modular)
    data = few_rows()
    posterior = fit(data, method, seed=1)
    truth = kit.truth_of(kit.same_model(method), data)
    effective = int(1 / (posterior.weights**2).sum())
    verdict = kit.judge(
        np.random.default_rng(0), truth, posterior.graphs, posterior.weights, effective
    )
    assert verdict.found.edge < verdict.limit.edge
    assert verdict.found.mmd < verdict.limit.mmd
    assert verdict.found.total_variation < verdict.limit.total_variation


KNOWN = {
    "nothing": {},
    "forbidden": {"forbidden": [["soil", "crop"]], "sinks": ["price"]},
    "required": {"required": [["crop", "soil"]]},
    "beliefs": {"beliefs": [["price", "crop", 0.9], ["rain", "price", 0.8]]},
}


@pytest.mark.parametrize("knowledge", KNOWN)
def test_knowledge_and_experiments_change_the_draws_as_they_change_the_exact_posterior(knowledge):
    mask = np.zeros((60, 4), dtype=bool)
    mask[40:, 2] = True
    data = read(toy_frame(60, seed=3), interventions=mask)
    drawn = fit(data, QUICK, knowledge=KNOWN[knowledge], seed=8).edge_matrix()
    exact = fit(data, kit.same_model(QUICK), knowledge=KNOWN[knowledge]).edge_matrix()
    # Half of the thousand draws allow for their correlation.
    error = np.sqrt(exact * (1 - exact) / 500)
    assert (np.abs(drawn - exact) < 5 * error + 0.005).all()
    blind = fit(read(toy_frame(60, seed=3)), kit.same_model(QUICK), knowledge=KNOWN[knowledge])
    assert np.abs(blind.edge_matrix() - exact).max() > 0.05


def test_the_units_of_the_columns_do_not_matter():
    frame = toy_frame(100)
    raw, standardised = (
        fit(f, QUICK, seed=2) for f in (frame, (frame - frame.mean()) / frame.std())
    )
    np.testing.assert_allclose(raw.edge_matrix(), standardised.edge_matrix())


def test_shuffled_columns_give_the_same_distribution():
    frame = toy_frame(40)
    order = [2, 0, 3, 1]
    straight = fit(frame, QUICK, seed=3)
    shuffled = fit(frame.iloc[:, order], QUICK, seed=4)
    expected = straight.edge_matrix()[np.ix_(order, order)]
    error = np.sqrt(2 * expected * (1 - expected) / 500) + 1e-3
    assert (np.abs(shuffled.edge_matrix() - expected) < 4 * error).all()


def test_the_score_of_the_true_graph_stands_beside_the_best_found():
    data = read(toy_frame())
    posterior = fit(data, QUICK, seed=5)
    scores = log_scores(posterior, data, TRUTH)
    assert scores["given graph"] == QUICK.log_score_of(data, Constraints.free(NAMES), TRUTH)
    assert list(scores)[:2] == ["given graph", "search"]
    assert scores["draws"] == posterior.stats["log_joint"].max()
    assert max(scores["search"], scores["draws"]) >= scores["given graph"] - 1e-6


def test_log_joint_and_log_score_are_the_same_thing():
    data = few_rows()
    posterior = fit(data, QUICK, seed=5)
    graph = posterior.graphs[1, 7]
    score = QUICK.log_score_of(data, Constraints.free(NAMES), graph)
    assert posterior.stats["log_joint"][1, 7] == pytest.approx(score)


def test_the_score_of_a_graph_is_its_log_posterior_with_one_of_its_orders():
    data = few_rows()
    dags, log_prob = kit.same_model(QUICK).log_posterior_of_all_dags(data, Constraints.free(NAMES))
    some = np.random.default_rng(0).choice(len(dags), size=12, replace=False)
    orders = np.array([num_linear_extensions(dag) for dag in dags[some]])
    scores = [QUICK.log_score_of(data, Constraints.free(NAMES), dag) for dag in dags[some]]
    constant = np.array(scores) + np.log(orders) - log_prob[some]
    np.testing.assert_allclose(constant, constant[0])


def wide_data():
    """Eight variables, of which the last has seven causes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 8))
    values[:, 7] += values[:, :7] @ np.linspace(0.5, 1.5, 7)
    return read(values)


def test_lists_that_are_too_narrow_say_what_they_leave_out():
    posterior = fit(few_rows(), dataclasses.replace(QUICK, max_candidates=1), seed=6)
    tables = posterior.provenance["tables"]
    assert sum(tables["candidates"].values()) < 12
    assert tables["crowded"]
    assert tables["missing_edges"] > 0.02
    assert tables["missing_log_mass"] > 0.02
    assert any("candidate lists leave out" in note for note in posterior.provenance["notes"])


@pytest.mark.slow
def test_narrow_lists_widen_until_the_mass_is_inside_and_say_what_is_left_out():
    narrow = dataclasses.replace(QUICK, max_candidates=4)
    posterior = fit(wide_data(), narrow, seed=6)
    tables = posterior.provenance["tables"]
    assert tables["core"].get("x7", 0) >= 3
    assert 0 < tables["missing_log_mass"] < 5
    assert posterior.edge_matrix()[:7, 7].min() > 0.9
    assert any("candidate lists leave out" in note for note in posterior.provenance["notes"])


def test_where_all_variables_are_candidates_nothing_is_missing():
    tables = fit(few_rows(), QUICK, seed=7).provenance["tables"]
    assert set(tables["candidates"].values()) == {3}
    assert tables["missing_log_mass"] == 0
    assert tables["not_representable"] == {}


def test_too_few_effective_draws_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(order_counting, "MIN_EFFECTIVE", 10**9)
    skewed = np.zeros((100, 3, 3), dtype=bool)
    with pytest.raises(InputError, match=r"effective draws of 100.*order_modular=True"):
        order_counting.graph_modular_weights(skewed, np.linspace(0, 900, 100))


def test_graphs_whose_orders_cannot_be_counted_are_refused_in_words():
    with pytest.raises(InputError, match=r"too many to count.*order_modular=True"):
        order_counting.log_num_orders(np.zeros((200, 200), dtype=bool))


def test_re_weighting_counts_each_graph_once():
    empty, chain = np.zeros((3, 3), dtype=bool), np.zeros((3, 3), dtype=bool)
    chain[0, 1] = chain[1, 2] = True
    # Six orders of the empty graph for one of the chain.
    drawn = np.stack([empty] * 60 + [chain] * 10)
    weights, effective = order_counting.graph_modular_weights(drawn, np.zeros(70))
    assert weights[:60].sum() == pytest.approx(0.5)
    assert effective == pytest.approx(1 / (60 * (0.5 / 60) ** 2 + 10 * 0.05**2))


def test_prior_and_model_are_stated_in_words():
    method = dataclasses.replace(QUICK, order_modular=False)
    provenance = fit(few_rows(), method, seed=1).provenance
    assert provenance["prior"].startswith("graph-modular: edge probability marginalised")
    assert "BGe" in provenance["model"]
    assert any("effective draws" in note for note in provenance["notes"])


@pytest.mark.parametrize(
    ("setting", "value"), [("num_chains", 0), ("num_samples", 0), ("hottest", 0.5)]
)
def test_settings_without_a_meaning_are_refused(setting, value):
    with pytest.raises(InputError, match=setting):
        Collapsed(**{setting: value})


def test_chains_are_independent_runs(key):
    posterior = QUICK(key, few_rows(), Constraints.free(NAMES), None)
    assert posterior.graphs.shape[:2] == (QUICK.num_chains, QUICK.num_samples)
    assert not np.array_equal(posterior.graphs[0], posterior.graphs[1])
    weights = jax.tree.leaves(posterior.params)[0]
    assert weights.shape[:2] == (QUICK.num_chains, QUICK.num_samples)


class Interrupted(Exception):
    pass


class Keeper:
    """Keeps the state of a run, and stops the first one after its first chunk."""

    state = None

    def resume(self, template):
        return self.state

    def chunk(self, step, total, state, stats):
        fresh = self.state is None
        self.state = jax.tree.map(np.asarray, state)
        if fresh:
            assert step < total
            raise Interrupted


def test_an_interrupted_run_ends_in_the_same_draws(key):
    data, known = few_rows(), Constraints.free(NAMES)
    keeper = Keeper()
    with pytest.raises(Interrupted):
        QUICK(key, data, known, keeper)
    resumed = QUICK(key, data, known, keeper)
    straight = QUICK(key, data, known, None)
    np.testing.assert_array_equal(resumed.graphs, straight.graphs)


class TwoMinds(BGe):
    """A score that cannot make up its mind about one edge."""

    def noise_hypotheses(self):
        return OfOneMind(+40.0), OfOneMind(-40.0)

    def describe_noise(self):
        return "of two minds"


class OfOneMind(BGe):
    """As BGe, but fond of the edge from the first variable to the last, or averse to it."""

    log_evidence_of_subsets = None  # pyright: ignore (no short cut to what is overridden)

    def describe_noise(self):
        return "of its own"

    def __init__(self, bonus: float) -> None:
        super().__init__()
        object.__setattr__(self, "bonus", bonus)

    def log_evidence(self, stats, node, parents):
        own = self.bonus * parents[:, 0] if node == parents.shape[1] - 1 else 0.0  # pyright: ignore
        return super().log_evidence(stats, node, parents) + own

    def log_evidence_of_additions(self, stats, nodes, parents):
        d = parents.shape[1]
        values = super().log_evidence_of_additions(stats, nodes, parents)
        has = parents[:, [0]] | (np.arange(d) == 0)[None, :]
        return values + self.bonus * has * (nodes == d - 1)[:, None]  # pyright: ignore


def test_noise_models_share_every_chain_alike():
    data = few_rows()
    key, free = jax.random.key(1), Constraints.free(NAMES)
    both = dataclasses.replace(QUICK, score=TwoMinds(), num_samples=101)
    found = both(key, data, free, None)
    assert found.graphs.shape[:2] == (QUICK.num_chains, 101)
    drawn = found.graphs[:, :, 0, -1]
    np.testing.assert_allclose(drawn.mean(axis=1), 0.5, atol=0.02)
    # In turn, so that no stretch of a chain is of one mind: 50 and 51 of 101.
    np.testing.assert_allclose(drawn[:, :50].mean(axis=1), 0.5, atol=0.05)
    alone = [
        dataclasses.replace(QUICK, score=one)(key, data, free, None)
        for one in TwoMinds().noise_hypotheses()
    ]
    expected = np.mean([one.edge_matrix() for one in alone], axis=0)
    assert np.abs(found.edge_matrix() - expected).max() < 0.12
    assert "in equal shares" in found.provenance["model"]
    # The log joint of a draw is that of its own model, which likes or dislikes the edge.
    plain = dataclasses.replace(QUICK, score=BGe())
    own = plain.log_score_of(data, Constraints.free(NAMES), found.graphs[0, 0])
    bonus = 40.0 * found.graphs[0, 0, 0, -1]
    assert found.stats["log_joint"][0, 0] == pytest.approx(own + bonus)
    liked = found.graphs[0, :, 0, -1] == 1
    first = found.provenance["noise_models"][0]["search"]["stages"][-1]["best"]
    assert found.stats["log_joint"][0, liked].max() <= first
    assert len(found.provenance["noise_models"]) == 2


def test_too_few_draws_for_all_noise_models_are_refused():
    method = dataclasses.replace(QUICK, score=TwoMinds(), num_samples=1)
    with pytest.raises(InputError, match="2 noise models share the draws"):
        method(jax.random.key(0), few_rows(), Constraints.free(NAMES), None)


def test_noise_models_with_functions_of_different_sizes_are_put_together():
    small, large = np.ones((4, 3, 2)), np.full((6, 3, 5), 2.0)
    whole = noise_averaging.interleaved([small, large], num_chains=2)
    assert whole.shape == (10, 3, 5)
    assert sorted(whole[:, 0, 0]) == [1.0] * 4 + [2.0] * 6
    assert (whole[whole[:, 0, 0] == 1][:, :, 2:] == 0).all()


def test_evidence_counts_less_where_the_rows_contradict_the_model():
    rng = np.random.default_rng(0)
    a, other = rng.normal(size=(2, 400))
    bent = np.column_stack([a, np.abs(a) + 0.2 * a + 0.3 * rng.normal(size=400), other])

    def drawn(rows, coarsened):
        data, method = read(rows), dataclasses.replace(QUICK, coarsened=coarsened)
        return method(jax.random.key(0), data, Constraints.free(data.names), None)

    plain, careful = drawn(bent, False), drawn(bent, True)
    adjacent = [p.edge_matrix()[0, 1] + p.edge_matrix()[1, 0] for p in (plain, careful)]
    assert adjacent[1] < adjacent[0]
    assert careful.provenance["temperature"] > 1.5
    assert "the estimated misfit is" in careful.provenance["notes"][0]
    straight = np.column_stack([a, a + 0.3 * rng.normal(size=400), other])
    np.testing.assert_array_equal(drawn(straight, False).graphs, drawn(straight, True).graphs)
