"""Expected gains against exact ones, where BGe has the evidence of new rows in closed form."""

import jax
import numpy as np
import pytest

from bayesdag.data import Dataset
from bayesdag.graphs import unique_graphs
from bayesdag.knowledge import Knowledge
from bayesdag.methods.exact import Exact
from bayesdag.posterior import information_gain
from bayesdag.posterior.experiment_design import NOTHING
from bayesdag.posterior.levels import usual_levels
from bayesdag.scores.bge import BGe
from tests.exact_gains import ExactGains, from_the_prior
from tests.posteriors import linear


def simulated(seed: int, num_rows: int, d: int, scale: float = 0.7) -> Dataset:
    """Rows of a random linear model whose columns are in random order."""
    rng = np.random.default_rng(seed)
    weights = np.triu(scale * rng.normal(size=(d, d)), k=1)
    rows = rng.normal(size=(num_rows, d)) @ np.linalg.inv(np.eye(d) - weights)
    return Dataset(rows[:, rng.permutation(d)], tuple("abcdef"[:d]))


def agree(exact: ExactGains, rng, *, num_rows, num, about=None, settings=None):
    """Every candidate's gain lies within four standard errors of the exact one."""
    table = exact.posterior.next_experiment(num_rows=num_rows, about=about, **settings or {})
    levels = usual_levels(exact.posterior.summary["columns"])
    for row in table.to_dict("records"):
        node = None if row["set"] == NOTHING else row["set"]
        truth, error = exact.expected_gain(node, levels.get(node), num_rows, num, rng, about)
        slack = 4 * np.hypot(row["error"], error)
        assert row["low"] - slack < truth < row["high"] + slack, row
        assert abs(row["gain"] - truth) < slack + (row["high"] - row["low"]) / 2, row


def test_rows_that_are_only_observed_say_nothing_of_equivalent_graphs(seed):
    """Correlated a and b: a -> b and b -> a, and no third graph worth mentioning."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=100)
    data = Dataset(np.c_[a, a + 0.7 * rng.normal(size=100)], ("a", "b"))
    exact = ExactGains(data)
    table = exact.posterior.next_experiment().set_index("set")
    observed = table.loc[NOTHING]
    assert observed["gain"] <= 3 * observed["error"] + 0.002
    assert observed["high"] < 0.01
    assert observed["fraction removed"] < 0.01
    assert table.loc["a", "low"] > 0.5


def test_gains_of_two_variables_are_exact(seed):
    exact = ExactGains(simulated(seed, 16, 2))
    agree(exact, np.random.default_rng(seed), num_rows=10, num=200)
    about = ("a", "b")
    agree(exact, np.random.default_rng(seed), num_rows=10, num=200, about=about)


@pytest.mark.filterwarnings("ignore:40 draws are too few")
def test_few_draws_bound_the_gain_from_both_sides(seed):
    """40 draws in place of 1000: the bounds are apart, and the truth lies between them."""
    found, truths = [], []
    for k in range(6):
        exact = ExactGains(simulated(seed + k, 30, 3), seed=k, num_samples=40)
        row = exact.posterior.next_experiment([], seed=k).iloc[0]
        found.append(row[["low", "high"]].to_numpy(dtype=float))
        truths.append(exact.expected_gain(None, None, 10, 60, np.random.default_rng(k))[0])
    low, high = np.mean(found, axis=0)
    error = np.std(np.mean(found, axis=1) - truths, ddof=1) / np.sqrt(len(truths))
    assert high - low > 0.05
    assert low - 4 * error < np.mean(truths) < high + 4 * error


def test_graphs_drawn_once_share_the_functions_of_their_families(seed):
    """Six variables and 41 rows: hardly a graph is drawn twice, but every family is."""
    data = simulated(seed, 41, 6, scale=0.7)
    posterior = Exact(num_samples=400)(
        jax.random.key(seed), data, Knowledge().bind(data.names), None
    )
    row = posterior.next_experiment([]).iloc[0]
    assert len(unique_graphs(posterior.graphs)[0]) > 200
    assert row["high"] - row["low"] < 0.6
    assert row["gain"] < 0.6  # functions that are recognised would count for a nat


def slope_variance(score: BGe, data: Dataset) -> float:
    """Posterior variance of the slope of b on a: E[σ²] / R_aa, with σ² inverse gamma."""
    stats = score.prepare(data)
    scale = stats.scale[stats.group[1]]
    shape = (stats.alpha_w + stats.num_rows[stats.group[1]] - 2 + 1 + 1) / 2
    left = scale[1, 1] - scale[0, 1] ** 2 / scale[0, 0]
    return left / 2 / (shape - 1) / scale[0, 0]


def test_the_variance_of_an_effect_falls_as_the_conjugate_posterior_says(seed):
    """Only a -> b, so that the effect is a slope, whose variance has a closed form."""
    rng, score, num_rows = np.random.default_rng(seed), BGe(), 20
    a = rng.normal(size=20)
    data = Dataset(np.c_[a, 0.5 * a + rng.normal(size=20)], ("a", "b"))
    graph = np.array([[0, 1], [0, 0]], dtype=np.int8)
    posterior = linear(np.tile(graph, (1, 1000, 1, 1)), data, seed=seed)
    effect = posterior.effect("a", "b")
    table = posterior.next_experiment(about=effect, num_rows=num_rows).set_index("set")
    levels = np.resize(usual_levels(posterior.summary["columns"])["a"], num_rows)
    left = []
    for do in ({"a": levels}, {}):
        after = []
        for s in range(200):
            rows = rows_of(posterior, s, num_rows, do, rng)
            mask = np.zeros(rows.shape, dtype=bool)
            mask[:, 0] = bool(do)
            cells = np.concatenate([np.zeros(data.values.shape, dtype=bool), mask])
            both = np.concatenate([data.values, rows])
            after.append(slope_variance(score, Dataset(both, data.names, cells, data.scaling)))
        left.append(np.mean(after) / slope_variance(score, data))
    for name, remaining in zip(("a", NOTHING), left, strict=True):
        row = table.loc[name]
        slack = 4 * 2 * (1 - row["fraction removed"]) * row["error"]
        assert row["fraction removed"] == pytest.approx(1 - remaining, abs=slack + 0.03)
        assert row["error"] < 0.15
    assert table.loc["b", "fraction removed"] < 0.05  # b then says nothing of its cause


def rows_of(posterior, s: int, num_rows: int, do, rng) -> np.ndarray:
    """Rows of one draw of a -> b, by numpy."""
    params, scaling = posterior.params, posterior.model.scaling
    weight = params["mechanism"]["weights"][0, s, 0, 1]
    bias, scale = params["mechanism"]["bias"][0, s], np.exp(params["noise"]["log_scale"][0, s])
    noise = scale * rng.normal(size=(num_rows, 2))
    set_to = do.get("a")
    first = bias[0] + noise[:, 0]
    if set_to is not None:
        first = (set_to - scaling.shift[0]) / scaling.scale[0]
    rows = np.c_[first, weight * first + bias[1] + noise[:, 1]]
    return scaling.shift + scaling.scale * rows


def test_the_entropy_allows_for_answers_that_were_never_drawn(seed):
    """200 draws of 500 equally probable answers; frequencies alone say at most log 200."""
    drawn = np.random.default_rng(seed).integers(0, 500, size=200)
    estimate = information_gain.entropy(drawn, np.full(200, 1 / 200))
    _, counts = np.unique(drawn, return_counts=True)
    plugged_in = -(counts / 200 * np.log(counts / 200)).sum()
    assert abs(estimate - np.log(500)) < 0.3 < np.log(500) - plugged_in
    halves = np.arange(1000) % 2
    assert information_gain.entropy(halves, np.full(1000, 1e-3)) == pytest.approx(np.log(2))
    assert information_gain.entropy(np.zeros(9, dtype=int), np.full(9, 1 / 9)) == 0


def test_the_functions_of_a_graph_are_integrated_out_node_by_node(seed):
    """Against the definition, in loops: averages over draws with the same parents."""
    rng = np.random.default_rng(seed)
    graphs = np.zeros((6, 2, 2), dtype=np.int8)
    graphs[2:4, 0, 1] = graphs[4:, 1, 0] = 1
    weights = rng.dirichlet(np.ones(6))
    truths = np.array([0, 2, 5])
    terms = rng.normal(size=(3, 6, 2))
    hypotheses = information_gain.Hypotheses(weights, graphs, truths)
    own = np.zeros((6, 2), dtype=bool)
    within, without = information_gain.log_evidence(terms, hypotheses, own)
    for e, truth in enumerate(truths):
        for s in range(6):
            expected = np.zeros(2)
            for node in range(2):
                pool = (graphs[:, :, node] == graphs[s, :, node]).all(axis=1)
                for k, members in enumerate((pool, pool & (np.arange(6) != truth))):
                    likelihood = np.exp(terms[e, members, node])
                    expected[k] += np.log(np.average(likelihood, weights=weights[members]))
            np.testing.assert_allclose([within[e, s], without[e, s]], expected)


def test_a_family_of_one_draw_borrows_the_functions_of_the_nearest(seed):
    """Node 2 of the truth has parents 0 and 1 as in no other draw; {0} is nearer than {}."""
    graphs = np.zeros((3, 3, 3), dtype=np.int8)
    graphs[0, :2, 2] = 1
    graphs[1, 0, 2] = 1
    terms = np.random.default_rng(seed).normal(size=(1, 3, 3))
    hypotheses = information_gain.Hypotheses(np.full(3, 1 / 3), graphs, np.array([0]))
    own = np.zeros((3, 3), dtype=bool)
    within, without = information_gain.log_evidence(terms, hypotheses, own)
    others = np.log(np.exp(terms[0, 1:, :2]).mean(axis=0)).sum()
    assert without[0, 0] == pytest.approx(others + terms[0, 1, 2])
    everyone = np.log(np.exp(terms[0, :, :2]).mean(axis=0)).sum()
    assert within[0, 0] == pytest.approx(everyone + terms[0, 0, 2])


@pytest.mark.slow
@pytest.mark.parametrize(("num_rows", "more"), [(30, 10), (100, 20)])
@pytest.mark.parametrize("about", [None, ("a", "b")], ids=["graph", "edge"])
def test_gains_of_three_variables_are_exact(seed, num_rows, more, about):
    exact = ExactGains(simulated(seed, num_rows, 3))
    settings = {"num_experiments": 512}
    rng = np.random.default_rng(seed)
    agree(exact, rng, num_rows=more, num=500, about=about, settings=settings)


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 4])
def test_gains_are_realised(seed, d):
    """41 rows promise what 10 more rows then bring, on the average over tables.

    Graphs and functions come from the assumed prior: under another one the posterior itself,
    not the gain computed from it, would be off.
    """
    realised, claimed, stated = [], [], []
    for k in range(100):
        table = from_the_prior(np.random.default_rng(seed + k), 51, d)
        first = Dataset(table.values[:41], table.names, None, table.scaling)
        exact = ExactGains(first, seed=k)
        after = exact.log_posterior(table.values[41:], np.zeros((10, d), dtype=bool))
        row = exact.posterior.next_experiment([], seed=k).iloc[0]
        realised.append(exact.entropy(exact.log_prior) - exact.entropy(after))
        claimed.append(row["gain"])
        stated.append(row["error"])
    error = np.hypot(np.std(realised, ddof=1), np.sqrt(np.mean(np.square(stated)))) / 10
    assert abs(np.mean(claimed) - np.mean(realised)) < 3 * error
    # Draws that are each their own explanation claim several times as much.
    assert np.mean(claimed) < 0.4


@pytest.mark.slow
def test_the_stated_error_is_that_of_repeated_fits(seed):
    """The same table, other draws: gains vary as much as their errors say."""
    data = simulated(seed, 60, 3)
    rows = [
        ExactGains(data, seed=k).posterior.next_experiment(["a"], seed=k).set_index("set")
        for k in range(16)
    ]
    for name in ("a", NOTHING):
        gains = np.array([row.loc[name, "gain"] for row in rows])
        stated = np.sqrt(np.mean([row.loc[name, "error"] ** 2 for row in rows]))
        # The ratio of 15 degrees of freedom lies in this range with probability 0.999.
        assert 0.4 < gains.std(ddof=1) / stated < 1.7


def test_the_same_seed_gives_the_same_table():
    posterior = ExactGains(simulated(0, 30, 2)).posterior
    first, second = (posterior.next_experiment(num_experiments=8, seed=3) for _ in range(2))
    assert first.equals(second)
