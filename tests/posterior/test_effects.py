"""Effects, samples and counterfactuals against closed forms and simulated experiments."""

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import graphs
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, effects, from_draws, simulation
from bayesdag.posterior.effect_result import Effect
from tests.posteriors import STATED, linear, random_dags, random_linear, table

seeds = st.integers(0, 2**31)
beyond_the_data = pytest.mark.filterwarnings("ignore:.*outside the range that was seen")


@dataclass(frozen=True)
class Bent:
    """x_j = Σ w_ij x_i + ½ (Σ w_ij x_i)²: a plug-in whose interactions are known."""

    def __call__(self, params, x, graph):
        total = x @ (params["weights"] * graph.astype(x.dtype))
        return total + 0.5 * total**2

    def node(self, params, x, parents, i):
        total = x @ (params["weights"][:, i] * parents.astype(x.dtype))
        return total + 0.5 * total**2

    def init(self, key, d):
        return {"weights": jax.random.normal(key, (d, d))}


def bent_posterior(graph, weights, *, num_draws=12, scaling=None, log_scale=-0.5) -> Posterior:
    """The same graph and functions in every draw."""
    d = len(graph)
    names = tuple("abcdefgh"[:d])
    data = Dataset(np.random.default_rng(0).normal(size=(20, d)), names)
    scaling = scaling or Scaling(np.zeros(d), np.ones(d))
    shape = (1, num_draws)
    params = {
        "mechanism": {"weights": np.broadcast_to(np.float32(weights), (*shape, d, d))},
        "noise": {"log_scale": np.full((*shape, d), log_scale, dtype=np.float32)},
    }
    stack = np.broadcast_to(np.int8(graph), (*shape, d, d))
    model = SCM(Bent(), Gaussian(), scaling)
    return from_draws(stack, model, params, data, log_joint=np.zeros(shape), provenance=STATED)


def closed_form(posterior, cause, outcome):
    """(I - B)⁻¹ of every draw, in original units, for a unit change of the cause."""
    weights = posterior.params["mechanism"]["weights"] * posterior.graphs
    total = np.linalg.inv(np.eye(posterior.num_variables) - weights)
    scale = posterior.model.scaling.scale
    return total[:, :, cause, outcome] * scale[outcome] / scale[cause]


@beyond_the_data
@given(seed=seeds)
@settings(max_examples=4, deadline=None)
def test_linear_effects_equal_the_closed_form(seed):
    posterior = random_linear(seed, d=5)
    effect = posterior.effect("b", "e", values=(-1.0, 3.0))
    expected = 4.0 * closed_form(posterior, 1, 4)
    np.testing.assert_allclose(effect.draws, expected, rtol=2e-4, atol=1e-5 * np.ptp(expected))
    assert effect.mean == pytest.approx((posterior.weights * effect.draws).sum())
    no_path = ~graphs.ancestors(posterior.graphs)[:, :, 1, 4]
    assert effect.prob_no_path == pytest.approx(posterior.weights[no_path].sum())
    assert (effect.draws[no_path] == 0).all()


def test_one_row_of_a_linear_model_equals_many(seed, monkeypatch):
    posterior = random_linear(seed, d=5)
    exact = posterior.effect("a", "c")
    monkeypatch.setattr(simulation, "Linear", type("NotThisOne", (), {}))
    simulation.contrasts.compiled.clear_cache()  # pyright: ignore[reportFunctionMemberAccess]
    sampled = posterior.effect("a", "c", num_rows=16)
    np.testing.assert_allclose(sampled.draws, exact.draws, rtol=1e-3, atol=1e-4)
    simulation.contrasts.compiled.clear_cache()  # pyright: ignore[reportFunctionMemberAccess]


def test_a_column_far_from_zero_keeps_its_effect(seed):
    """Float32 resolves the years 2000 to 2020 to a thousandth at best."""
    rng = np.random.default_rng(seed)
    year = rng.uniform(2000, 2020, 500)
    data = Dataset(np.c_[year, 1e-4 * year + 1e6 + 1e-5 * rng.normal(size=500)], ("year", "level"))
    graph = np.array([[[[0, 1], [0, 0]]]], dtype=np.int8)
    effect = linear(graph, data).effect("year", "level", values=(2001.0, 2002.0))
    assert effect.mean == pytest.approx(1e-4, rel=0.02)


def test_nonlinear_effects_agree_with_the_generators_own_experiments(seed):
    graph = [[0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    weights = 0.6 * np.sign(np.random.default_rng(seed).normal(size=(4, 4)))
    scaling = Scaling(np.array([5.0, -1.0, 0.0, 100.0]), np.array([2.0, 1.0, 0.5, 10.0]))
    posterior = bent_posterior(graph, weights, scaling=scaling)
    effect = posterior.effect("b", "d", values=(-1.0, 1.0), num_rows=4000)
    model, theta = (
        posterior.model,
        jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), posterior.params),
    )

    @jax.jit
    def experiment(value, key):
        do = jnp.full((4000, 4), value)
        mask = jnp.arange(4) == 1
        return model.sample(theta, key, jnp.asarray(graph), 4000, mask, do)[:, 3].mean()

    keys = jax.random.split(jax.random.key(seed), 2 * 12).reshape(2, 12)
    high = np.array([experiment(np.float32(1), key) for key in keys[0]])
    low = np.array([experiment(np.float32(-1), key) for key in keys[1]])
    reference = high - low
    error = np.hypot(reference.std(ddof=1), np.std(effect.draws, ddof=1)) / np.sqrt(12)
    assert abs(effect.mean - reference.mean()) < 4 * error
    # The same noise in both arms makes the difference steadier than two experiments.
    assert effect.draws.std() < reference.std()


def test_noise_between_cause_and_outcome_counts(seed):
    """a -> b -> c -> d, each bent: the mean of d depends on how far b scatters."""
    chain = np.diag([1, 1, 1], k=1)
    posterior = bent_posterior(chain, 0.7 * np.ones((4, 4)), log_scale=0.0)
    effect = posterior.effect("a", "d", values=(0.0, 1.0), num_rows=4000)
    noise = np.random.default_rng(seed).normal(size=(2, 12, 40_000))

    def last(a):
        for extra in (*noise, 0.0):
            a = 0.7 * a + 0.5 * (0.7 * a) ** 2 + extra
        return a

    expected = np.mean(last(1.0) - last(0.0), axis=1)
    error = np.hypot(expected.std(ddof=1), np.std(effect.draws, ddof=1)) / np.sqrt(12)
    assert abs(effect.mean - expected.mean()) < 4 * error
    noise = np.zeros((2, 1, 1))
    assert effect.mean - np.mean(last(1.0) - last(0.0)) > 8 * error


@beyond_the_data
def test_a_conditional_effect_is_that_of_units_seen_with_those_values(seed):
    """a -> c <- b with c = t + t²/2, t = a + b: the slope in a grows with b, exactly by b."""
    graph = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    posterior = bent_posterior(graph, np.ones((3, 3)))
    for b in (-1.0, 0.0, 2.0):
        effect = posterior.effect("a", "c", values=(0.0, 1.0), given={"b": b}, num_rows=4000)
        np.testing.assert_allclose(effect.draws, 1.0 + (0.5 + b), rtol=1e-4)


@beyond_the_data
def test_conditioning_on_a_descendant_is_abduction(seed):
    """Units with a high outcome were met by unusual causes: checked by brute force."""
    graph = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    posterior = bent_posterior(graph, np.ones((3, 3)))
    effect = posterior.effect("a", "c", (0, 1), given={"c": 2.0}, num_rows=4000)
    rng = np.random.default_rng(seed)
    noise = np.exp(-0.5) * rng.normal(size=(12, 200_000, 3))
    total = noise[..., 0] + noise[..., 1]
    near = np.abs(total + 0.5 * total**2 + noise[..., 2] - 2.0) < 0.05
    expected = np.array([1.5 + b[keep].mean() for b, keep in zip(noise[..., 1], near, strict=True)])
    error = np.hypot(expected.std(ddof=1), np.std(effect.draws, ddof=1)) / np.sqrt(12)
    assert abs(effect.mean - expected.mean()) < 4 * error


@beyond_the_data
def test_linear_effects_do_not_depend_on_who_is_asked_about(seed):
    posterior = random_linear(seed)
    everyone, some = posterior.effect("a", "d"), posterior.effect("a", "d", given={"b": 9.0})
    np.testing.assert_allclose(everyone.draws, some.draws, rtol=1e-6)


@beyond_the_data
def test_rare_units_bring_a_warning():
    graph = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    posterior = bent_posterior(graph, np.ones((3, 3)))
    with pytest.warns(BayesdagWarning, match="c = 200 are rare"):
        posterior.effect("a", "c", given={"c": 200}, num_rows=4000)


def by_hand(values, structure, weights=None) -> Effect:
    values = np.asarray(values, dtype=float).reshape(1, -1)
    weights = np.ones_like(values) if weights is None else np.reshape(weights, (1, -1))
    structure = np.asarray(structure).reshape(1, -1)
    return Effect("a", "b", (0.0, 1.0), {}, values, weights / weights.sum(), structure)


def test_the_sign_flips_where_structures_disagree():
    effect = by_hand([2, 2, -1, 0], [0, 0, 1, -1])
    assert effect.sign_flips == pytest.approx(1 / 3)
    assert effect.prob_positive == 0.5
    assert effect.prob_negative == effect.prob_no_path == 0.25
    assert by_hand([0, 0], [-1, -1]).sign_flips == 0


def test_the_variance_split_finds_what_the_draws_were_made_of(seed):
    """Effect = m(structure) + noise, with structures drawn anew each time."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(200):
        structure = rng.integers(0, 12, size=60)
        centre = rng.normal(0, 2.0, size=12)
        values = centre[structure] + rng.normal(0, 1.0, size=60)
        found.append(by_hand(values, structure).variance[:2])
    structural, parametric = np.mean(found, axis=0)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert abs(parametric - 1.0) < 4 * error[1]
    # 60 draws see 12 structures, whose sample variance is 11/12 of 4 times 60/59.
    assert abs(structural - 4.0 * (11 / 12) * (60 / 59)) < 4 * error[0] + 0.02


def test_the_variance_split_admits_ignorance():
    never_twice = by_hand([1, 2, 3, 4], [0, 1, 2, 3]).variance
    assert np.isnan(never_twice.structural)
    assert never_twice.replicated == 0
    assert by_hand([0, 0], [-1, -1]).variance.structural == 0
    only_graphs = by_hand([1, 1, 5, 5, 0, 0], [0, 0, 1, 1, -1, -1]).variance
    assert only_graphs.parametric == 0
    assert only_graphs.structural_fraction == 1


def test_only_what_lies_on_the_paths_tells_structures_apart():
    """x -> y with an unrelated edge between u and v: one structure, whatever u and v do."""
    base = np.zeros((4, 4), dtype=np.int8)
    base[0, 1] = 1
    other, more, none = base.copy(), base.copy(), base.copy()
    other[2, 3] = 1
    more[2, 1] = 1  # another parent of the outcome changes what is adjusted for
    none[0, 1] = 0
    found = effects.carriers(np.array([[base, other, more, none]]), 0, 1)[0]
    assert found[0] == found[1] != found[2]
    assert found[3] == -1


def test_the_interval_is_the_shortest_and_counts_the_weights(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=4000)
    low, high = by_hand(values, np.zeros(4000, dtype=int)).hdi(0.9)
    inside = (values >= low) & (values <= high)
    assert inside.mean() == pytest.approx(0.9, abs=0.01)
    weights = np.where(values > 0, 9.0, 1.0)
    effect = by_hand(values, np.zeros(4000, dtype=int), weights)
    low, high = effect.hdi(0.8)
    kept = effect.weights[(effect.draws >= low) & (effect.draws <= high)].sum()
    assert kept == pytest.approx(0.8, abs=0.01)
    assert by_hand([0, 0, 0, 1], [-1, -1, -1, 0]).hdi(0.7) == (0.0, 0.0)


def test_the_summary_is_plain_data_and_the_table_has_its_numbers(seed):
    effect = random_linear(seed).effect("a", "d")
    facts = effect.summary()
    assert facts["mean"] == effect.mean
    assert facts["hdi_low"] <= facts["mean"] <= facts["hdi_high"]
    assert all(isinstance(v, float | str | list | dict | None) for v in facts.values())
    assert effect.mean in effect.table().iloc[:, 1].tolist()


def test_samples_have_the_moments_of_the_intervened_model(seed):
    rng = np.random.default_rng(seed)
    graph = np.array([[[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]], dtype=np.int8)
    posterior = linear(np.repeat(graph, 5, axis=1), table(rng, 4000, 3))
    rows = posterior.sample(8192, do={"b": 2.0}, seed=seed)
    assert list(rows.columns) == ["a", "b", "c"]
    assert (rows["b"] == 2.0).all()  # pyright: ignore[reportGeneralTypeIssues]
    free, scaling = posterior.sample(8192, seed=seed), posterior.model.scaling
    for column, do_rows in (("a", rows["a"]), ("c", rows["c"])):
        assert np.isfinite(do_rows).all(), column
    # a is not downstream of b: its distribution is that of the data.
    assert abs(rows["a"].mean() - scaling.shift[0]) < 5 * scaling.scale[0] / np.sqrt(4000)
    assert abs(free["c"].std() / scaling.scale[2] - 1) < 0.1
    weights = posterior.params["mechanism"]["weights"][0, :, 1, 2]
    bias = posterior.params["mechanism"]["bias"][0, :, 2]
    engine = (2.0 - scaling.shift[1]) / scaling.scale[1]
    expected = scaling.shift[2] + scaling.scale[2] * (weights * engine + bias).mean()
    spread = rows["c"].std() / np.sqrt(8192)
    between = scaling.scale[2] * np.std(weights * engine + bias) / np.sqrt(8192 / 5)
    assert abs(rows["c"].mean() - expected) < 4 * (spread + between)


def test_the_same_seed_draws_the_same_rows(seed):
    posterior = random_linear(seed)
    assert posterior.sample(1024, seed=1).equals(posterior.sample(1024, seed=1))
    assert not posterior.sample(1024, seed=1).equals(posterior.sample(1024, seed=2))


def test_a_counterfactual_without_a_change_is_what_happened(seed):
    posterior = random_linear(seed)
    row = {name: [float(i)] for i, name in enumerate(posterior.names)}
    same = posterior.counterfactual(row, do={"a": 0.0})
    assert same.draws.shape == (2, 30, 1, 4)
    np.testing.assert_allclose(same.mean().to_numpy(), [[0, 1, 2, 3]], atol=1e-3)


def test_linear_counterfactuals_move_by_the_effect(seed):
    posterior = random_linear(seed, d=5)
    row = {name: [0.5, -1.0] for name in posterior.names}
    moved = posterior.counterfactual(row, do={"b": 3.0})
    change = closed_form(posterior, 1, 4)
    for unit, start in enumerate((0.5, -1.0)):
        expected = start + (3.0 - start) * change
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(moved.draws[:, :, unit, 4] / scale, expected / scale, atol=1e-4)
    low, high = moved.hdi(0.9)
    assert (low.to_numpy() <= high.to_numpy()).all()


def test_nonlinear_counterfactuals_keep_the_noise(seed):
    """c = t + t²/2 + noise: changing a by one changes t by one, and nothing else."""
    graph = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    posterior = bent_posterior(graph, np.ones((3, 3)))
    moved = posterior.counterfactual({"a": [1.0], "b": [0.5], "c": [7.0]}, do={"a": 2.0})
    noise = 7.0 - (1.5 + 0.5 * 1.5**2)
    np.testing.assert_allclose(moved.draws[..., 2], 2.5 + 0.5 * 2.5**2 + noise, rtol=1e-5)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda p: p.effect("a", "zz"), "no column is called 'zz'"),
        (lambda p: p.effect("a", "b", values=(0, np.nan)), "two values"),
        (lambda p: p.effect("a", "b", values=(0, 1, 2)), "two values"),
        (lambda p: p.effect("a", "b", given={"q": 1}), "no column is called 'q'"),
        (lambda p: p.effect("a", "b", values=(0, 1e300)), "cannot be 1e\\+300, which is too far"),
        (lambda p: p.effect("a", "b", given={"c": 1e300}), "'c' cannot be 1e\\+300"),
        (
            lambda p: p.effect("a", "b", num_rows=0),
            "num_rows is 0; it must be a whole",
        ),
        (lambda p: p.effect("a", "b").hdi(1.0), "prob is 1; it must lie"),
        (lambda p: p.effect("a", "b").summary(prob=-0.5), "prob is -0.5; it must lie"),
        (
            lambda p: p.counterfactual({n: [0.0] for n in "abcd"}, do={}).hdi(2.0),
            "prob is 2; it must lie",
        ),
        (lambda p: p.sample(0), "num_rows is 0; it must be a whole"),
        (lambda p: p.sample(-1), "num_rows is -1"),
        (lambda p: p.sample(3, do={"a": 1e300}), "cannot be 1e\\+300, which is too far"),
        (lambda p: p.sample(3, do={"a": np.inf}), "finite"),
        (lambda p: p.counterfactual({"a": [1.0]}, do={}), "lack the column 'b'"),
        (lambda p: p.counterfactual({n: ["x"] for n in "abcd"}, do={}), "not a number"),
        (lambda p: p.counterfactual({n: [np.nan] for n in "abcd"}, do={}), "missing"),
    ],
)
def test_bad_questions_are_refused_in_words(question, words):
    with pytest.raises(InputError, match=words):
        question(random_linear(0))


def test_an_effect_compares_the_usual_levels_of_the_data(seed):
    """One standard deviation either side of the mean, or both values of a binary column."""
    rng = np.random.default_rng(seed)
    drug = np.repeat([3.0, 5.0], 50)
    dose = rng.normal(20, 4, size=100)
    data = Dataset(np.c_[drug, dose, drug + dose + rng.normal(size=100)], ("drug", "dose", "pain"))
    graph = np.array([[[[0, 0, 1], [0, 0, 1], [0, 0, 0]]]], dtype=np.int8)
    posterior = linear(graph, data)
    assert posterior.effect("drug", "pain").values == (3.0, 5.0)
    low, high = posterior.effect("dose", "pain").values
    assert (low, high) == pytest.approx((dose.mean() - dose.std(), dose.mean() + dose.std()))


def test_values_outside_the_data_bring_a_warning(seed):
    posterior = random_linear(seed)
    facts = posterior.summary["columns"]["a"]
    seen = f"{facts['min']:g} to {facts['max']:g}"
    with pytest.warns(
        BayesdagWarning, match="a = 1000 lies outside the range that was seen"
    ) as told:
        posterior.effect("a", "d", values=(facts["min"], 1000))
    assert [seen in str(warning.message) for warning in told] == [True]
    with pytest.warns(BayesdagWarning, match="b = -1000 lies outside"):
        posterior.effect("a", "d", given={"b": -1000})


def test_overflowing_functions_are_refused_in_words():
    """b = t + t²/2 of t = 1e20 a, which single precision still holds."""
    posterior = bent_posterior([[0, 1], [0, 0]], np.full((2, 2), 1e20))
    with pytest.raises(InputError, match="the effect of a from 0 to 1 overflows"):
        posterior.effect("a", "b", values=(0, 1), num_rows=4)
    with pytest.raises(InputError, match="a sample with a = 1 overflows"):
        posterior.sample(5, do={"a": 1})
    with pytest.raises(InputError, match="a counterfactual with a = 1 overflows"):
        posterior.counterfactual({"a": [0.0], "b": [0.0]}, do={"a": 1})


def test_probabilities_never_exceed_one():
    """Weights sum to 1 but for rounding, which must not be seen."""
    effect = by_hand(np.ones(10), np.zeros(10, dtype=int))
    rounded = dataclasses.replace(effect, weights=effect.weights * (1 + 1e-15))
    assert rounded.weights.sum() > 1
    assert rounded.prob_positive == 1


def test_answers_are_described_in_one_line(seed):
    posterior = random_linear(seed)
    effect = posterior.effect("a", "d")
    assert repr(effect).startswith("Effect of a from ")
    assert f"mean {effect.mean:.3g}, 95% HDI " in repr(effect)
    assert f"P(> 0) {effect.prob_positive:.3f}, P(no path) " in repr(effect)
    moved = posterior.counterfactual({name: [0.0, 1.0] for name in posterior.names}, do={"a": 0.5})
    assert repr(moved).startswith("Counterfactual of 2 rows, 60 draws: means over rows a 0.5, b ")
    for answer in (effect, moved):
        assert "\n" not in repr(answer)
        assert len(repr(answer)) < 160


def test_the_interval_says_what_it_is(seed):
    effect = random_linear(seed).effect("a", "d")
    quantities = effect.table(0.9)["quantity"].tolist()
    assert "90% HDI, low" in quantities
    assert "90% HDI, high" in quantities
    assert effect.summary(0.9)["hdi_prob"] == 0.9


@beyond_the_data
def test_an_effect_is_compiled_once_for_all_pairs(seed):
    posterior = random_linear(seed, d=5)
    posterior.effect("a", "b")
    before = simulation.contrasts.compiled._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    posterior.effect("a", "e", values=(3.0, 4.0))
    posterior.effect("c", "b")
    assert simulation.contrasts.compiled._cache_size() == before  # pyright: ignore[reportFunctionMemberAccess]


def test_nonlinear_effects_are_compiled_once_too():
    graph = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    posterior = bent_posterior(graph, 0.5 * np.ones((3, 3)))
    posterior.effect("a", "b", num_rows=8)
    before = simulation.contrasts.compiled._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    posterior.effect("a", "c", num_rows=8)
    posterior.effect("b", "c", values=(0.0, 0.5), num_rows=8)
    assert simulation.contrasts.compiled._cache_size() == before  # pyright: ignore[reportFunctionMemberAccess]


def test_the_noise_of_the_outcome_is_left_out():
    """b = f(a) + noise: every row gives the same difference, so one row is exact."""
    posterior = bent_posterior([[0, 1], [0, 0]], np.ones((2, 2)), num_draws=3)
    few, many = (posterior.effect("a", "b", (0, 1), num_rows=n).draws for n in (1, 100))
    np.testing.assert_allclose(few, 1.5, rtol=1e-6)
    np.testing.assert_allclose(many, 1.5, rtol=1e-6)


def test_random_graphs_keep_their_shape(seed):
    stack = random_dags(np.random.default_rng(seed), (2, 3), 5)
    assert graphs.is_acyclic(stack).all()
