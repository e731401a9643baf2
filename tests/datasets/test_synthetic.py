import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bayesdag import data
from bayesdag.data import sortability
from bayesdag.datasets import Benchmark, _graphs, _mechanisms, _noises
from bayesdag.datasets._streams import stream
from bayesdag.datasets._truth import Truth
from bayesdag.datasets.synthetic import SCALINGS, Synthetic
from bayesdag.errors import InputError
from bayesdag.graphs import ancestors, is_acyclic

every_mechanism = pytest.mark.parametrize("mechanism", _mechanisms.FAMILIES)
every_scaling = pytest.mark.parametrize("scaling", SCALINGS)


@given(d=st.integers(3, 12), seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=60, deadline=None)
def test_graphs_are_acyclic_and_have_the_exact_number_of_edges(d, seed, data):
    e = data.draw(st.integers(0, (d - 1) // 2))
    er = _graphs.erdos_renyi(stream(seed), d, e, expected=False)
    sf = _graphs.scale_free(stream(seed), d, e, expected=False)
    assert is_acyclic(er)
    assert is_acyclic(sf)
    assert er.sum() == e * d
    assert sf.sum() == e * d - e * (e + 1) // 2


@pytest.mark.parametrize("kind", _graphs.KINDS)
@pytest.mark.parametrize(("d", "e"), [(5, 1), (5, 2), (10, 2), (9, 4)])
def test_expected_edge_numbers_hold_on_average(kind, d, e, seed):
    rng = stream(seed)
    counts = [_graphs.KINDS[kind](rng, d, e, True).sum() for _ in range(400)]
    standard_error = np.std(counts) / 20
    assert abs(np.mean(counts) - e * d) <= 4 * standard_error
    # Full graphs are all alike: with 2 edges a node there is no room for chance at d = 5.
    assert len(set(counts)) > 1 or e * d == d * (d - 1) / 2


def test_scale_free_hubs_are_sinks_and_every_newcomer_brings_its_arrows(seed):
    graphs = [_graphs.scale_free(stream(seed, i), 50, 2, expected=False) for i in range(20)]
    assert all((np.sort(g.sum(axis=1)) == [0, 1] + 48 * [2]).all() for g in graphs)
    # The published sets have hubs of 12, 16 and 26 parents at d = 20, 30 and 50.
    assert 15 < np.mean([g.sum(axis=0).max() for g in graphs]) < 32


@pytest.mark.parametrize("kind", _graphs.KINDS)
def test_the_number_of_a_node_says_nothing_about_the_order(kind, seed):
    rng = stream(seed)
    graphs = np.array([_graphs.KINDS[kind](rng, 6, 1, False) for _ in range(1000)])
    upwards = np.triu(np.ones((6, 6)), 1)
    share = (graphs * upwards).sum(axis=(1, 2)) / graphs.sum(axis=(1, 2))
    assert abs(share.mean() - 0.5) < 4 * share.std() / len(share) ** 0.5


def test_all_pairs_are_equally_likely_in_an_erdos_renyi_graph(seed):
    rng = stream(seed)
    graphs = np.array([_graphs.erdos_renyi(rng, 5, 1, expected=False) for _ in range(4000)])
    share = (graphs | graphs.transpose(0, 2, 1)).mean(axis=0)[np.triu_indices(5, 1)]
    assert np.abs(share - 0.5).max() < 4 * (0.25 / 4000) ** 0.5


@every_mechanism
@pytest.mark.parametrize("num_parents", [1, 3])
def test_a_function_depends_on_every_parent_and_on_each_row_alone(mechanism, num_parents, seed):
    rng = stream(seed)
    function = _mechanisms.FAMILIES[mechanism](rng, num_parents)
    x = rng.standard_normal((1200, num_parents))
    means = function(x)
    assert means.shape == (1200,)
    np.testing.assert_allclose(function(x[700:705]), means[700:705], rtol=1e-5, atol=1e-6)
    for i in range(num_parents):
        moved = x.copy()
        moved[:, i] += 1
        assert np.std(function(moved) - means) + np.abs(np.mean(function(moved) - means)) > 1e-3


@pytest.mark.parametrize("mechanism", ["sigmoid", "additive"])
def test_additive_functions_have_no_interactions(mechanism, seed):
    function = _mechanisms.FAMILIES[mechanism](stream(seed), 2)
    corners = np.array([[0.0, 0.0], [0.0, 1.5], [-0.7, 0.0], [-0.7, 1.5]])
    a, b, c, d = function(corners)
    assert abs(a - b - c + d) < 1e-5


def test_network_weights_are_standard_normal_and_linear_weights_as_published(seed):
    rng = stream(seed)
    networks = [_mechanisms.mlp(rng, 4) for _ in range(200)]
    weights = np.concatenate([np.append(n.first.ravel(), n.second) for n in networks])
    assert stats.kstest(weights, "norm").pvalue > 1e-4
    positive = np.concatenate([_mechanisms.linear(rng, 4).weights for _ in range(200)])
    assert stats.kstest(positive - 0.5, "uniform").pvalue > 1e-4
    signed = np.concatenate([_mechanisms.linear(rng, 4, signed=True).weights for _ in range(200)])
    assert stats.kstest(np.abs(signed) - 0.5, "uniform").pvalue > 1e-4
    assert 0.4 < (signed < 0).mean() < 0.6


def test_gaussian_process_draws_have_the_squared_exponential_covariance(seed):
    rng, x = stream(seed), np.array([[0.0], [0.5], [1.0], [2.0]])
    draws = np.array([_mechanisms.gaussian_process(rng, 1)(x) for _ in range(4000)])
    products = draws[:, :1] * draws
    standard_error = products.std(axis=0) / len(draws) ** 0.5
    exact = np.exp(-0.5 * x[:, 0] ** 2)
    assert (np.abs(products.mean(axis=0) - exact) < 4 * standard_error).all()


@pytest.mark.parametrize("noise", _noises.NOISES)
def test_noise_has_mean_zero_and_variance_one(noise, seed):
    draws = _noises.NOISES[noise](stream(seed), (200, 500))
    means, variances = draws.mean(axis=1), draws.var(axis=1)
    assert abs(means.mean()) < 4 * means.std() / 200**0.5
    assert abs(variances.mean() - 1) < 4 * variances.std() / 200**0.5 + 2 / 500


def test_noises_are_the_distributions_they_are_named_after(seed):
    draws = {name: draw(stream(seed), (5000,)) for name, draw in _noises.NOISES.items()}
    assert stats.kstest(draws["gaussian"], "norm").pvalue > 1e-4
    assert stats.kstest(draws["laplace"] * 2**0.5, "laplace").pvalue > 1e-4
    assert stats.kstest(draws["student_t"] * (5 / 3) ** 0.5, "t", (5,)).pvalue > 1e-4


def test_noise_variances_are_inverse_gamma_or_as_given():
    setting = Synthetic(num_variables=50, num_train=10, num_test=0)
    variances = np.concatenate([setting(seed).truth.noise_scale ** 2 for seed in range(20)])
    assert stats.kstest(variances, stats.invgamma(1.5, scale=1).cdf).pvalue > 1e-4
    equal = Synthetic(num_train=10, num_test=0, noise_variance=0.25)(0)
    np.testing.assert_array_equal(equal.truth.noise_scale, 0.5)


def test_the_same_seed_gives_the_same_bytes():
    setting = Synthetic(num_train=50, num_test=20, num_interventions=2)
    first, second = setting(3), setting(3)
    assert first.train.hash == second.train.hash
    assert first.test.hash == second.test.hash
    assert [s.data.hash for s in first.interventional] == [
        s.data.hash for s in second.interventional
    ]


def largest_correlation(a: np.ndarray, b: np.ndarray) -> float:
    d = a.shape[1]
    return np.abs(np.corrcoef(a.T, b.T)[:d, d:]).max()


def test_neighbouring_seeds_share_no_column_and_no_noise():
    setting = Synthetic(num_variables=10, num_train=2000)
    sets = [setting(seed) for seed in range(6)]
    for one, other in zip(sets, sets[1:], strict=False):
        # The published generator reaches 0.99 here. 100 pairs of independent columns stay
        # below 4.5 standard errors; heavy tails are tamed by ranks.
        ranks = [stats.rankdata(s.train.values, axis=0) for s in (one, other)]
        assert largest_correlation(*ranks) < 4.5 / 2000**0.5
        assert not np.isin(one.truth.noise_scale, other.truth.noise_scale).any()


def test_training_test_and_other_settings_share_no_noise():
    base = Synthetic(num_train=1000, num_test=1000, noise_variance=1.0)
    roots = np.flatnonzero(~base(0).graph.any(axis=0))
    one = base(0)
    assert largest_correlation(one.train.values[:, roots], one.test.values) < 4.5 / 1000**0.5
    other = Synthetic(graph="sf", num_train=1000, noise_variance=1.0)(0)
    assert largest_correlation(one.train.values[:, roots], other.train.values) < 4.5 / 1000**0.5


def test_more_rows_continue_the_same_model():
    few, many = (Synthetic(num_train=n, num_test=0)(5).train.values for n in (100, 300))
    np.testing.assert_array_equal(few, many[:100])


@every_mechanism
@every_scaling
def test_every_mechanism_gives_finite_rows_in_every_unit(mechanism, scaling):
    setting = Synthetic(mechanism=mechanism, scaling=scaling, num_train=300, num_test=50)
    benchmark = setting(1)
    assert np.isfinite(benchmark.train.values).all()
    assert benchmark.train.values.shape == (300, 10)
    assert benchmark.test.values.shape == (50, 10)
    assert benchmark.test.scaling == benchmark.train.scaling
    assert benchmark.graph.sum() == 20


def test_linear_rows_follow_the_structural_equations():
    benchmark = Synthetic(mechanism="linear", num_train=20_000, num_test=0)(2)
    x = benchmark.train.values - benchmark.train.values.mean(axis=0)
    for j in range(10):
        parents = np.flatnonzero(benchmark.graph[:, j])
        weights, *_ = np.linalg.lstsq(x[:, parents], x[:, j], rcond=None)
        noise = benchmark.truth.noise_scale[j]
        covariance = np.linalg.inv(x[:, parents].T @ x[:, parents]) * noise**2
        error = np.abs(weights - benchmark.truth.functions[j](np.eye(len(parents))))
        assert (error < 4.5 * np.sqrt(np.diag(covariance))).all()
        residual = x[:, j] - x[:, parents] @ weights
        assert abs(residual.std() / noise - 1) < 4 / (2 * 20_000) ** 0.5


def test_raw_columns_betray_the_order_and_scaled_ones_do_not():
    share = {}
    for scaling in SCALINGS:
        sets = [Synthetic(20, scaling=scaling, num_train=1000)(seed) for seed in range(12)]
        share[scaling] = np.array(
            [sortability.varsortability(s.train.values, s.graph) for s in sets]
        )
    assert share["raw"].mean() > 0.85  # the published sets: 0.89 to 0.99
    internal = share["internal"]
    assert abs(internal.mean() - 0.5) < 4 * internal.std() / len(internal) ** 0.5


def test_standardised_columns_have_mean_zero_and_variance_one_on_the_training_rows():
    raw, scaled = (Synthetic(scaling=s, num_train=500)(4) for s in ("raw", "standardised"))
    np.testing.assert_allclose(scaled.train.values.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(scaled.train.values.std(axis=0), 1, rtol=1e-9)
    np.testing.assert_array_equal(raw.graph, scaled.graph)
    units = data.Scaling.of(raw.train.values)
    np.testing.assert_allclose(scaled.train.values, units.apply(raw.train.values), rtol=1e-9)
    np.testing.assert_allclose(scaled.test.values, units.apply(raw.test.values), rtol=1e-9)
    do = scaled.sample(50, 1, {2: 1.5}).values
    same = raw.sample(50, 1, {2: 1.5 * units.scale[2] + units.shift[2]}).values
    np.testing.assert_allclose(do, units.apply(same), rtol=1e-7, atol=1e-9)


def test_heteroscedastic_noise_has_the_scale_its_parents_give_it():
    benchmark = Synthetic(noise="heteroscedastic", num_train=4000, num_test=0)(0)
    truth, rows = benchmark.truth, benchmark.train.values
    for j, parents in enumerate(benchmark.graph.T):
        own = rows[:, parents != 0]
        residual = (rows[:, j] - truth.functions[j](own)) / truth.noise_scale[j]
        scale = truth.scales[j](own)
        assert (scale.std() > 0) == parents.any()
        assert np.exp(-1) <= scale.min() <= scale.max() <= np.exp(1)
        assert stats.kstest(residual / scale, "norm").pvalue > 1e-4


def test_heteroscedastic_rows_are_those_the_seed_had_under_the_noises_first_name():
    small = {"num_variables": 4, "edges_per_node": 1, "num_train": 20, "num_test": 0}
    row = Synthetic(noise="heteroscedastic", **small)(7).train.values[0]
    expected = [0.9858481590850298, -2.080075685479347, 0.15356431037496948, 0.3097688796001659]
    np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_an_internally_standardised_model_has_unit_columns_on_fresh_rows():
    benchmark = Synthetic(scaling="internal", num_train=4000, num_test=4000)(0)
    for rows in (benchmark.train.values, benchmark.test.values):
        assert np.abs(rows.mean(axis=0)).max() < 0.1
        assert np.abs(rows.std(axis=0) - 1).max() < 0.1


def shifted(one: np.ndarray, other: np.ndarray) -> bool:
    """Two samples differ beyond chance (one test in a million is wrong)."""
    return stats.ks_2samp(one, other).pvalue < 1e-6  # pyright: ignore[reportAttributeAccessIssue]


@every_scaling
def test_an_intervention_shifts_descendants_and_nothing_else(scaling):
    setting = Synthetic(mechanism="linear", scaling=scaling, noise_variance=1.0)
    benchmark = setting(1)
    reach = ancestors(benchmark.graph)
    before = benchmark.sample(4000, 1).values
    for target in np.flatnonzero(benchmark.graph.any(axis=1)):
        after = benchmark.sample(4000, 2, {int(target): 3 * before[:, target].std()})
        np.testing.assert_array_equal(after.observed.all(axis=0), np.arange(10) != target)
        children = benchmark.graph[target].astype(bool)
        others = ~reach[target] & (np.arange(10) != target)
        moved = [shifted(before[:, j], after.values[:, j]) for j in range(10)]
        assert np.array(moved)[children].all()
        assert not np.array(moved)[others].any()


def test_interventional_sets_are_interventional():
    benchmark = Synthetic(
        mechanism="linear", num_interventions=5, num_interventional=3000, noise_variance=1.0
    )(7)
    targets = [s.target for s in benchmark.interventional]
    assert len(set(targets)) == 5
    reach = ancestors(benchmark.graph)
    for one in benchmark.interventional:
        spread = benchmark.train.values[:, one.target].std()
        centre = benchmark.train.values[:, one.target].mean()
        assert (np.abs(one.values - centre) <= 3 * spread).all()
        assert np.ptp(one.values) > 5 * spread
        set_columns = ~one.data.observed.all(axis=0)
        assert np.flatnonzero(set_columns).tolist() == [one.target]
        assert not one.data.observed[:, one.target].any()
        high, low = one.data.values[one.values > centre], one.data.values[one.values < centre]
        for j in np.flatnonzero(benchmark.graph[one.target]):
            assert shifted(high[:, j], low[:, j])
        # Setting a variable cuts it off from its causes, and leaves those as they were.
        for j in np.flatnonzero(~reach[one.target] & (np.arange(10) != one.target)):
            assert not shifted(high[:, j], low[:, j])
            assert not shifted(one.data.values[:, j], benchmark.train.values[:, j])


def test_interventional_sets_share_no_noise_with_each_other():
    benchmark = Synthetic(mechanism="linear", num_interventions=3, num_interventional=2000)(7)
    rows = [stats.rankdata(s.data.values, axis=0) for s in benchmark.interventional]
    assert largest_correlation(rows[0], rows[1]) < 4.5 / 2000**0.5
    assert largest_correlation(rows[1], rows[2]) < 4.5 / 2000**0.5


def test_a_linear_effect_is_the_sum_over_paths_in_every_individual():
    weights = np.array([[0, 2.0, 0.5], [0, 0, -1.0], [0, 0, 0]])
    truth = Truth(
        graph=(weights != 0).astype(np.int8),
        functions=tuple(_mechanisms.LinearFunctions(w[w != 0]) for w in weights.T),
        noise=_noises.gaussian,
        noise_scale=np.ones(3),
    )
    rows = truth.sample(stream(0), 10)
    benchmark = Benchmark(data.Dataset(rows, ("a", "b", "c")), truth.graph, truth=truth)
    low, high = (benchmark.sample(30, 4, {"a": v}).values for v in (0.0, 1.0))
    np.testing.assert_allclose(high - low, np.tile([1.0, 2.0, 2.0 * -1.0 + 0.5], (30, 1)))


def test_values_may_be_set_row_by_row_and_come_back_exactly():
    benchmark = Synthetic(scaling="standardised", num_train=200)(0)
    values = np.linspace(-2, 2, 60)
    np.testing.assert_array_equal(benchmark.sample(60, 0, {3: values}).values[:, 3], values)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"graph": "tree"}, "no graph is called 'tree'; there are: er, sf"),
        ({"mechanism": "cubic"}, "no mechanism is called 'cubic'"),
        (
            {"noise": "cauchy"},
            "there are: gaussian, laplace, student_t, uniform, exponential, heteroscedastic",
        ),
        ({"scaling": "none"}, "there are: raw, standardised, internal"),
        ({"num_variables": 4}, "room for 0 to 1.5 edges a node"),
        ({"num_variables": 1}, "num_variables is 1; it must be 2 or more"),
        ({"num_train": 0}, "num_train is 0"),
        ({"noise_variance": 0.0}, "noise_variance is 0.0; it must be above 0"),
    ],
)
def test_impossible_settings_are_refused_in_words(setting, words):
    with pytest.raises(InputError, match=words):
        Synthetic(**setting)


def test_bad_seeds_and_variables_are_refused_in_words():
    with pytest.raises(InputError, match="seed is -1"):
        Synthetic()(-1)
    benchmark = Synthetic(num_train=10)(0)
    with pytest.raises(InputError, match="no variable is called 'sun'; there are: v0, v1"):
        benchmark.sample(5, 0, {"sun": 1.0})
    with pytest.raises(InputError, match="variable 10 does not exist; they run from 0 to 9"):
        benchmark.sample(5, 0, {10: 1.0})
