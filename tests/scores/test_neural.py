"""The learned score: evidence by hand, what counts, what is remembered, what is drawn."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.model.mechanisms.networks import Networks
from bayesdag.model.noises.skewed_student_t import SkewedStudentT
from bayesdag.runs import processes
from bayesdag.scores._neural import (
    crossfit,
    folds,
    heteroscedastic,
    laplace,
    network,
    network_cache,
    noise_shape,
    parameter_draws,
    surrogate,
    training,
    whitening,
)
from bayesdag.scores._neural.function_classes import FunctionClass
from bayesdag.scores._neural.noise_forms import NoiseForm
from bayesdag.scores._sufficient_statistics import distinct
from bayesdag.scores.neural import NeuralScore
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS

FRUGAL = dataclasses.replace(SMALL_NETWORKS, trusted_rows=np.inf)
# Trains a network for every family, whatever a regression leaves.
SCORE = dataclasses.replace(FRUGAL, least_unexplained=-np.inf)
NAMES = ("a", "b", "c", "d")
NUM_ROWS = NETWORK_ROWS
log_prob = jax.jit(SkewedStudentT().log_prob)
sample_noise = jax.jit(SkewedStudentT().sample, static_argnums=2)


def kinked_rows(seed=0, heavy=False):
    """d = |a| + b + noise, with c a bystander."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(NUM_ROWS, 4))
    noise = rng.standard_t(3, NUM_ROWS) if heavy else rng.normal(size=NUM_ROWS)
    x[:, 3] = 2 * np.abs(x[:, 0]) + x[:, 1] + 0.3 * noise
    return x


def dataset(values, interventions=None):
    return Dataset(values, NAMES, interventions, Scaling.of(kinked_rows()))


def sets(*members):
    parents = np.zeros((len(members), 4), dtype=bool)
    for row, some in zip(parents, members, strict=True):
        row[["abcd".index(letter) for letter in some]] = True
    return parents


def test_the_true_parents_score_best():
    stats_ = SCORE.prepare(dataset(kinked_rows()))
    names = ["", "a", "b", "ab", "bc", "ac", "abc"]
    values = dict(zip(names, SCORE.log_evidence(stats_, 3, sets(*names)), strict=True))
    assert values["ab"] > max(values["a"], values["b"]) + 50
    assert values["a"] > values[""] + 20  # a parabola-like effect without correlation
    assert values["abc"] < values["ab"] + 10


@pytest.mark.slow
def test_the_evidence_is_one_half_of_the_rows_and_the_other_given_it_by_hand():
    data = dataset(kinked_rows(heavy=True))
    prepared = SCORE.prepare(data)
    found = SCORE.log_evidence(prepared, 3, sets("ab"))[0]
    folds = np.asarray(prepared.folds.values)
    total = 0.0

    def trained(pilot, rows, used, plan):
        return laplace.fit(training.finish(pilot, rows, used, plan), rows, used)

    jitted = jax.jit(trained, static_argnums=3)
    used = jnp.asarray([1.0, 1.0, 0.0, 0.0])
    pooled = jnp.asarray(folds.reshape(-1, folds.shape[2]))
    every = (pooled[:, np.array([0, 1, 2, 2])] * used[None, :], pooled[:, 3], jnp.ones(len(pooled)))
    by_all = whitening.whitening(*every, used)
    nobody = network.Network(jnp.zeros((1, 4, 3)), jnp.zeros((1, 3)), jnp.zeros((1, 8)))
    known, plan = jnp.zeros(1, dtype=bool), SCORE._plan()
    pilot = training.pilot(whitening.whitened(by_all, *every, used), used, nobody, known, plan)
    pilot = whitening.in_engine_units(by_all, pilot)
    for held_out, other in ((0, 1), (1, 0)):
        inputs = jnp.asarray(folds[other][:, [0, 1, 2, 2]]) * used[None, :]
        rows = (inputs, jnp.asarray(folds[other][:, 3]), jnp.ones(len(inputs)))
        by = whitening.whitening(*rows, used)
        whitened = whitening.whitened(by, *rows, used)
        fit = jitted(whitening.in_whitened_units(by, pilot), whitened, used, plan)
        test = jnp.asarray(folds[held_out][:, [0, 1, 2, 2]]) * used[None, :]
        new = whitening.whitened(by, test, jnp.asarray(folds[held_out][:, 3]), rows[2], used)
        slopes = np.asarray(
            network.slopes(fit.network, new.inputs, network.units(fit.network, new.inputs)), float
        )
        leverage = ((np.asarray(fit.inverse, float) @ slopes.T) ** 2).sum(axis=0)
        scale = float(fit.noise.scale[NoiseForm.SYMMETRIC]) * np.sqrt(1 + leverage)
        residual = np.asarray(new.target - network.means(fit.network, new.inputs), float)
        degrees = noise_shape.SHAPES.degrees[int(fit.noise.shape[NoiseForm.SYMMETRIC])]
        total += stats.t.logpdf(residual, degrees, scale=scale).sum()
        total += marginal(fit, whitened, used)
        total -= (len(residual) + len(inputs)) * np.log(float(by.spread))
    odds = log_odds(prepared.cache.trained[3, 0b011])
    total = total / 2 + np.log((1 + np.exp(odds)) / 2)  # noise of one scale, or several
    assert found == pytest.approx(total, abs=1.0)


def log_odds(family, kind=FunctionClass.NETWORK):
    """Of a scale that depends on the parents, against a constant one."""
    evidence = family.log_evidence[kind]
    return evidence[NoiseForm.SYMMETRIC_HETEROSCEDASTIC] - evidence[NoiseForm.SYMMETRIC]


def marginal(fit, rows, used):
    """Laplace's approximation, in double precision and from its formula."""
    fitted, degrees = (
        fit.network,
        noise_shape.SHAPES.degrees[int(fit.noise.shape[NoiseForm.SYMMETRIC])],
    )
    residual = np.asarray(rows.target - network.means(fitted, rows.inputs), float)

    def log_likelihood(log_scale):
        return stats.t.logpdf(residual, degrees, scale=np.exp(log_scale)).sum()

    scale = np.exp(optimize.minimize_scalar(lambda s: -log_likelihood(s), (-3, 1)).x)  # pyright: ignore[reportAttributeAccessIssue]
    weight = (degrees + 1) / (degrees + (residual / scale) ** 2)
    slopes = np.asarray(
        network.slopes(fitted, rows.inputs, network.units(fitted, rows.inputs)), float
    )
    k = int(used.sum())
    free = np.concatenate([np.repeat(np.asarray(used) > 0, 3), np.ones(6, bool)])
    free = np.concatenate([free, np.asarray(used) > 0, [True]])
    precision = np.concatenate([np.full(12, k), np.ones(3), np.full(3, 3), np.full(4, k), [0.01]])
    curvature = (slopes * weight[:, None]).T @ slopes / scale**2 + np.diag(precision)
    flat = np.asarray(network.flat(fitted), float)
    value = log_likelihood(np.log(scale)) - 0.5 * (precision * flat**2)[free].sum()
    volume = np.linalg.slogdet(curvature[np.ix_(free, free)])[1]
    return value - 0.5 * (volume - np.log(precision[free]).sum())


def heteroscedastic_rows(seed=0, num=NUM_ROWS):
    """d = a + noise that reaches further where b is large; c a bystander."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 4))
    x[:, 3] = x[:, 0] + 0.3 * np.exp(0.7 * x[:, 1]) * rng.normal(size=num)
    return x


def test_the_scale_of_noise_is_found_where_it_depends_on_an_input():
    x = heteroscedastic_rows(num=600)
    residual = jnp.asarray(x[:, 3] - x[:, 0], jnp.float32) / 0.3
    features = jnp.asarray(np.c_[x[:, :3], np.ones(len(x))], jnp.float32)
    ones = jnp.ones(len(x))
    fit = jax.jit(heteroscedastic.fit)(features, residual, ones, jnp.float32(1000.0))
    np.testing.assert_allclose(fit.weights[:3], [0, 0.7, 0], atol=0.1)

    def loss(v):  # in double precision, by an optimiser that knows nothing of the problem
        log_scale = (x[:, :3] - x[:, :3].mean(axis=0)) @ v[:3] + v[3]
        density = stats.t.logpdf(np.asarray(residual, float), 1000, scale=np.exp(log_scale))
        return 0.5 * (precision * v[:3] ** 2).sum() - density.sum()

    precision = 3 * x[:, :3].var(axis=0) / 0.5**2
    best = optimize.minimize(loss, np.zeros(4)).x
    np.testing.assert_allclose(fit.weights[:3], best[:3], atol=2e-3)
    centred = x[:, :3] - x[:, :3].mean(axis=0)
    curvature = 2 * 1000 / 1003 * centred.T @ centred + np.diag(precision)
    volume = np.linalg.slogdet(curvature)[1] - np.log(precision).sum()
    log_volume = -0.5 * (precision * best[:3] ** 2).sum() - 0.5 * volume
    assert float(fit.log_volume) == pytest.approx(log_volume, abs=0.1)


def test_a_parent_of_the_scale_alone_is_found_and_its_effect_is_drawn(key):
    data = Dataset(heteroscedastic_rows(), NAMES, None, Scaling.of(heteroscedastic_rows()))
    prepared = SCORE.prepare(data)
    with_b, without = SCORE.log_evidence(prepared, 3, sets("ab", "a"))
    assert with_b > without + 20
    assert log_odds(prepared.cache.trained[3, 0b11]) > 20
    graph = np.zeros((1, 4, 4), dtype=np.int8)
    graph[0, [0, 1], 3] = 1
    params = SCORE.draw(key, prepared, graph)
    drawn, graph = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), (params, graph))
    scm, rows = SCORE.scm(data), np.zeros((4000, 4), dtype=np.float32)
    deviation, set_to = [], jnp.array([True, True, False, False])
    sample = jax.jit(lambda values: scm.sample(drawn, key, graph, 4000, set_to, values))
    for level in (-1.5, 1.5):
        x = sample(rows + np.array([0, level, 0, 0], dtype=np.float32))
        deviation.append(np.asarray(x)[:, 3].std())
    assert 4 < deviation[1] / deviation[0] < 16  # exp(2.1) = 8
    residual = jax.jit(lambda x: scm.abduct(drawn, graph, x))(x)
    again = jax.jit(lambda left, x: scm.predict(drawn, graph, left, set_to, x))(residual, x)
    np.testing.assert_allclose(again, x, rtol=1e-3, atol=1e-3)


def test_even_noise_pays_little_for_the_doubt():
    prepared = SCORE.prepare(dataset(kinked_rows()))
    SCORE.log_evidence(prepared, 3, sets("ab", ""))
    assert -30 < log_odds(prepared.cache.trained[3, 0b11]) < 0
    alone = prepared.cache.trained[3, 0]
    assert log_odds(alone, FunctionClass.LINEAR) == pytest.approx(0, abs=1e-2)  # no question


def product_rows(seed=0):
    """d = a b + noise, with c a bystander: nothing that a sum of curves could say."""
    x = np.random.default_rng(seed).normal(size=(NUM_ROWS, 4))
    x[:, 3] += 2 * x[:, 0] * x[:, 1]
    return x


def test_networks_are_trained_where_regressions_leave_something_and_not_elsewhere():
    wanted, nodes = sets("ab", "a", "c", ""), np.full(4, 3)
    frugal = FRUGAL.prepare(dataset(product_rows()))
    FRUGAL.log_evidence(frugal, 3, wanted)
    trained = [frugal.cache.trained[3, mask].has_networks for mask in (0b011, 0b001, 0b100, 0)]
    assert trained == [True, False, False, False]
    every = SCORE.prepare(dataset(product_rows()))
    lost = SCORE.log_evidence(every, 3, wanted) - FRUGAL.log_evidence(frugal, 3, wanted)
    # Knots that are not needed cost a sum of curves some nats, none of which decides.
    assert (abs(lost) < 10).all()
    weights = FRUGAL.function_weights(frugal, np.zeros((1, 4, 4), dtype=np.int8))
    assert weights["network"].tolist() == [0, 0, 0, 0]
    assert len(FRUGAL.approximate_gain(frugal, nodes, wanted)) == 4


def test_a_family_without_networks_is_neither_queued_nor_handed_on():
    stats_ = FRUGAL.prepare(dataset(product_rows()))
    FRUGAL.log_evidence(stats_, 3, sets("c", ""))
    FRUGAL.queue_retraining(stats_, np.array([3]), sets("c"))
    assert not stats_.cache.queue
    assert stats_.cache._relatives((3, 0b101), 4) == network_cache.Relatives(None, None)


def test_few_values_are_always_looked_at_by_a_network():
    x = kinked_rows()
    x[:, 3] = np.digitize(x[:, 2], [-0.5, 0.5])
    stats_ = FRUGAL.prepare(dataset(x))
    FRUGAL.log_evidence(stats_, 3, sets("b"))
    assert stats_.cache.trained[3, 0b010].has_networks


def test_rows_that_repeat_one_another_are_never_on_both_sides_of_a_fold():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 4))[rng.integers(30, size=200)]
    halves = np.asarray(folds.fold(rng, values, np.ones((200, 4), bool), 2).values)
    one, other = ({tuple(row) for row in half if row.any()} for half in halves)
    assert len(one & other) <= 1  # the one that the cut goes through


def test_sums_of_curves_are_a_regression_with_a_prior_worth_one_row():
    data = dataset(kinked_rows())
    score = surrogate.AdditiveSurrogate()
    found = score.log_evidence(score.prepare(data), 3, sets("", "a", "ab", "c"))
    shapes = surrogate.curves(data.scaled).reshape(NUM_ROWS, 4, -1) * NUM_ROWS**0.5
    by_hand = []
    for some in ([], [0], [0, 1], [2]):
        x, y = shapes[:, some].reshape(NUM_ROWS, -1), data.scaled[:, 3]
        x, y = x - x.mean(axis=0), y - y.mean()
        covariance = np.eye(NUM_ROWS) + x @ x.T
        left = y @ np.linalg.solve(covariance, y) / NUM_ROWS
        volume = np.linalg.slogdet(covariance)[1]
        by_hand.append(-0.5 * volume - 0.5 * NUM_ROWS * np.log(left))
    np.testing.assert_allclose(found, by_hand, rtol=1e-6, atol=1e-9)
    assert found[2] > found[1] > found[0] > found[3]


def test_sums_of_curves_know_a_short_cut_to_one_parent_more():
    additive = surrogate.AdditiveSurrogate()
    moments = additive.prepare(dataset(kinked_rows()))
    parents = sets("b", "", "ac")
    found = additive.log_evidence_of_additions(moments, np.array([3, 3, 1]), parents)
    for node, chosen, row in zip([3, 3, 1], parents, found, strict=True):
        for j in set(range(4)) - {node, *np.flatnonzero(chosen)}:
            larger = chosen.copy()
            larger[j] = True
            one = additive.log_evidence(moments, node, larger[None])[0]
            assert row[j] == pytest.approx(one, rel=1e-9, abs=1e-6)


def test_the_same_questions_get_the_same_answers():
    data = dataset(kinked_rows(1))
    wanted = sets("ab", "a", "abc")
    once, again = (SCORE.log_evidence(SCORE.prepare(data), 3, wanted) for _ in range(2))
    np.testing.assert_array_equal(once, again)


def test_a_new_fit_does_not_go_on_from_the_networks_of_another():
    data = dataset(kinked_rows(1))
    alone = SCORE.log_evidence(SCORE.prepare(data), 3, sets("a"))
    SCORE.log_evidence(SCORE.prepare(data), 3, sets("ab", "a"))
    np.testing.assert_array_equal(alone, SCORE.log_evidence(SCORE.prepare(data), 3, sets("a")))


def test_a_network_is_handed_on_to_a_larger_set_unchanged():
    stats_ = SCORE.prepare(dataset(kinked_rows()))
    SCORE.log_evidence(stats_, 3, sets("ab"))
    small = stats_.cache.trained[3, 0b0011]
    (_, group), *_ = folds.families_by_size(stats_.folds, np.array([3]), sets("abc"))
    relatives = [network_cache.Relatives(smaller=small, larger=None)]
    given = network_cache.starting_networks(group, relatives, [-np.inf], SCORE.width)
    assert given.known.tolist() == [[True, False]]
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    larger = network.Network(*(jnp.asarray(leaf[0, 0]) for leaf in given.networks))
    smaller = network.Network(*(jnp.asarray(leaf[0]) for leaf in small.folds.networks))
    np.testing.assert_allclose(
        network.means(larger, x[:, group.members[0]] * group.used[0]),
        network.means(smaller, x[:, small.members] * small.used),
        rtol=1e-5,
    )


def test_units_can_be_changed_and_changed_back(key):
    keys = jax.random.split(key, 3)
    x = jax.random.normal(keys[0], (50, 3)) @ jnp.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 1]])
    fitted = network.Network(
        jax.random.normal(keys[1], (3, 4)), jnp.ones(4), jax.random.normal(keys[2], (8,))
    )

    @jax.jit
    def there_and_back(x, fitted):
        by = whitening.whitening(x, x[:, 0], jnp.ones(50), jnp.ones(3))
        rows = whitening.whitened(by, x, x[:, 0], jnp.ones(50), jnp.ones(3))
        there = whitening.in_engine_units(by, fitted)
        means = network.means(there, x), network.means(fitted, rows.inputs)
        return *means, whitening.in_whitened_units(by, there)

    found, expected, back = there_and_back(x, fitted)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    for one, other in zip(fitted, back, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_cells_that_were_set_neither_train_nor_count():
    values, mask = kinked_rows(), np.zeros((NUM_ROWS, 4), dtype=bool)
    mask[:40, 3] = True
    spoiled = values.copy()
    spoiled[:40, 3] = 3.0
    one, other = (
        SCORE.log_evidence(SCORE.prepare(dataset(v, mask)), 3, sets("ab"))[0]
        for v in (values, spoiled)
    )
    assert one == pytest.approx(other, abs=0.05)
    everything = SCORE.log_evidence(SCORE.prepare(dataset(values)), 3, sets("ab"))[0]
    assert abs(everything - one) > 1


def test_a_cache_trains_each_family_once(monkeypatch):
    stats_ = SCORE.prepare(dataset(kinked_rows()))
    before = SCORE.log_evidence(stats_, 3, sets("ab"))

    def refuse(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(crossfit, "without_networks", refuse)
    monkeypatch.setattr(crossfit, "networks", refuse)
    np.testing.assert_array_equal(before, SCORE.log_evidence(stats_, 3, sets("ab")))
    with pytest.raises(AssertionError, match="trained again"):
        SCORE.log_evidence(SCORE.prepare(dataset(kinked_rows())), 3, sets("ab"))


def test_a_queued_set_is_trained_again_from_the_larger_one():
    stats_ = SCORE.prepare(dataset(kinked_rows()))
    both_, one = sets("ab", "a")
    nodes = np.array([3])
    SCORE.log_evidence_of_families(stats_, nodes, one[None])
    known = stats_.cache.trained[3, 0b01]
    # As if its training had gone badly.
    ruined = known.folds._replace(
        networks=jax.tree.map(np.zeros_like, known.folds.networks),
        log_posterior=known.folds.log_posterior - 900,
    )
    networks = np.arange(len(FunctionClass))[:, None] == FunctionClass.NETWORK
    evidence = np.where(networks, -9e9, known.log_evidence)
    worse = known._replace(folds=ruined, log_evidence=evidence.astype(np.float32))
    stats_.cache.trained[3, 0b01] = worse
    SCORE.log_evidence_of_families(stats_, nodes, both_[None])
    assert not SCORE.retrain_queued(stats_)  # so large a gain is not put down to bad training
    SCORE.queue_retraining(stats_, nodes, both_[None])
    assert SCORE.retrain_queued(stats_)
    assert (abs(stats_.cache.trained[3, 0b01].log_evidence - known.log_evidence) < 20).all()
    assert not SCORE.retrain_queued(stats_)


def test_evidence_of_many_rows_is_coarsened():
    stats_ = SCORE.prepare(dataset(kinked_rows()))
    careful = NeuralScore(**vars(SCORE) | {"trusted_rows": NUM_ROWS / 3})
    plain = SCORE.log_evidence(stats_, 3, sets("ab", "a"))
    np.testing.assert_allclose(careful.log_evidence(stats_, 3, sets("ab", "a")), plain / 4)


def test_of_a_long_table_some_rows_drawn_at_random_are_learned_from():
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=(3000, 3)), rng.random(3000) < 0.5])
    frugal = dataclasses.replace(SCORE, most_rows=1000)
    stats_ = frugal.prepare(dataset(values))
    assert (stats_.num_rows, stats_.num_given) == (1000, 3000)
    assert "from 1000 of the 3000 rows" in frugal.notes(stats_)[0]
    assert frugal.log_evidence(stats_, 0, sets(""))[0] > -1500 * frugal.power(stats_)
    again = frugal.prepare(dataset(values))
    np.testing.assert_array_equal(stats_.folds.values, again.folds.values)
    assert not SCORE.notes(SCORE.prepare(dataset(values)))


def test_rows_are_not_spared_where_a_column_would_be_constant():
    values = np.random.default_rng(0).normal(size=(3000, 3))
    rare = (np.arange(3000) == 7).astype(float)
    stats_ = dataclasses.replace(SCORE, most_rows=1000).prepare(dataset(np.c_[values, rare]))
    assert stats_.num_rows == 3000


def test_residuals_say_which_variable_could_add_most():
    stats_ = SCORE.prepare(dataset(kinked_rows()))
    gain = SCORE.approximate_gain(stats_, np.array([3, 3]), sets("b", "a"))
    assert np.argmax(gain[0][:3]) == 0
    assert np.argmax(gain[1][:3]) == 1


def test_residuals_show_a_parent_whose_effect_changes_sign():
    rng = np.random.default_rng(5)
    a, b, c = rng.standard_normal((3, NUM_ROWS))
    d = np.where(a > 0, 1, -1) * (1 + 0.5 * b) + 0.3 * rng.standard_normal(NUM_ROWS)
    stats_ = SCORE.prepare(dataset(np.stack([a, b, c, d], axis=1)))
    gain = SCORE.approximate_gain(stats_, np.array([3]), sets("a"))[0]
    assert gain[1] > 10 + gain[2]


def test_drawn_functions_explain_the_rows_they_were_trained_on(key):
    data = dataset(kinked_rows())
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[[0, 1], 3] = 1
    params = SCORE.draw(key, SCORE.prepare(data), np.stack([graph, graph, graph.T * 0]))
    scm = SCORE.scm(data)
    assert jax.tree.leaves(params)[0].shape[:2] == (3, 4)
    rows, unset = data.values.astype(np.float32), np.zeros(data.values.shape, dtype=bool)
    values = [
        float(scm.log_prob(jax.tree.map(lambda leaf, k=k: leaf[k], params), g, rows, unset).sum())
        for k, g in enumerate([graph, graph, 0 * graph])
    ]
    assert values[0] != values[1]
    assert abs(values[0] - values[1]) < 30
    assert values[0] > values[2] + 100


def test_fewer_columns_than_places_do_not_count_a_parent_twice(key):
    """Places without a column are filled up with the first, which is the parent here."""
    x = kinked_rows()[:, [0, 3, 2]]
    data, graph = Dataset(x, ("a", "d", "c")), np.zeros((3, 3), dtype=np.int8)
    graph[0, 1] = 1
    params = SCORE.draw(key, SCORE.prepare(data), np.stack([graph] * 8))
    abduct = jax.jit(SCORE.scm(data).abduct)
    for s in range(8):
        one = jax.tree.map(lambda leaf, s=s: np.asarray(leaf)[s], params)
        residual = np.asarray(abduct(one, graph, x.astype(np.float32)))[:, 1]
        assert residual.std() < 1.3 * np.exp(float(one["noise"]["log_scale"][1]))


def test_units_that_agree_do_not_keep_functions_from_being_drawn():
    agreeing = np.full((3, 3), 4.0) + np.diag([0.0, -1e-9, 4.0])
    root = parameter_draws._inverse_root(agreeing)
    assert np.isfinite(root).all()
    regular = np.diag([4.0, 9.0, 1.0]) + 0.5
    root = parameter_draws._inverse_root(regular)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(regular))


def test_a_network_depends_on_its_parents_alone(key):
    mechanism = Networks(num_members=3)
    params = mechanism.init(key, 4)
    graph = jnp.zeros((4, 4)).at[0, 3].set(1).at[1, 2].set(1)
    x = jax.random.normal(jax.random.fold_in(key, 1), (5, 4))
    jacobian = jax.jit(jax.jacobian(lambda row: mechanism(params, row[None], graph)[0]))(x[0])
    assert ((np.asarray(graph) != 0) >= (np.asarray(jacobian) != 0).T).all()
    assert np.asarray(jacobian)[3, 0] != 0
    node = jax.jit(mechanism.node)
    one = np.stack([node(params, x, graph[:, i], jnp.asarray(i)) for i in range(4)], axis=1)
    np.testing.assert_allclose(jax.jit(mechanism)(params, x, graph), one, rtol=1e-5)


@pytest.mark.parametrize("degrees", [3.0, 5.0, 1000.0])
def test_noise_without_a_skew_is_students_distribution(degrees, key):
    params = {"log_scale": jnp.log(jnp.array([2.0])), "log_degrees": jnp.log(jnp.array([degrees]))}
    x = np.linspace(-8, 8, 41)
    density = np.asarray(log_prob(params, jnp.asarray(x, jnp.float32)[:, None]))[:, 0]
    np.testing.assert_allclose(density, stats.t.logpdf(x, degrees, scale=2.0), atol=2e-4)
    grid = np.linspace(-400, 400, 200_001)
    whole = np.exp(np.asarray(log_prob(params, jnp.asarray(grid, jnp.float32)[:, None])))
    assert integrate.trapezoid(whole[:, 0], grid) == pytest.approx(1, abs=1e-3)
    drawn = np.asarray(sample_noise(params, key, (4000, 1)))[:, 0]
    assert stats.kstest(drawn / 2, stats.t(degrees).cdf).pvalue > 1e-4


@pytest.mark.parametrize("which", [0, 3, 4, 15, 27])
def test_skewed_noise_has_mean_zero_and_is_found(which, key):
    """Drawn by the noise, described by the score, integrated by hand."""
    shape = {
        "log_degrees": noise_shape.SHAPES.degrees[which],
        "log_skew": noise_shape.SHAPES.skew[which],
    }
    params = {name: jnp.log(jnp.array([value])) for name, value in shape.items()}
    params["log_scale"] = jnp.log(jnp.array([0.5]))
    grid = np.sinh(np.linspace(-9, 9, 20_001))
    density = np.exp(np.asarray(log_prob(params, jnp.asarray(grid, jnp.float32)[:, None])))
    assert integrate.trapezoid(density[:, 0], grid) == pytest.approx(1, abs=1e-3)
    assert integrate.trapezoid(density[:, 0] * grid, grid) == pytest.approx(0, abs=5e-3)
    told = noise_shape.log_density(jnp.asarray(grid, jnp.float32) / 0.5, jnp.asarray(which))
    np.testing.assert_allclose(np.exp(told) / 0.5, density[:, 0], atol=1e-4)
    cumulative = integrate.cumulative_trapezoid(density[:, 0], grid, initial=0)
    drawn = np.asarray(sample_noise(params, key, (4000, 1)))[:, 0]
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, cumulative)).pvalue > 1e-4
    found = jax.jit(noise_shape.fit)(jnp.asarray(drawn), jnp.ones(4000)).any
    assert float(found.scale) == pytest.approx(0.5, rel=0.2)
    assert found.log_likelihood >= np.log(np.interp(drawn, grid, density[:, 0])).sum() - 1
    np.testing.assert_allclose(
        noise_shape.SHAPES.skew[int(found.shape)], noise_shape.SHAPES.skew[which], rtol=0.4
    )


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="num_folds is 1"):
        NeuralScore(num_folds=1)
    with pytest.raises(InputError, match="trusted_rows is 0"):
        NeuralScore(trusted_rows=0.0)
    with pytest.raises(InputError, match="most_rows is 10"):
        NeuralScore(most_rows=10)


def test_noise_hypotheses_learn_from_the_same_networks_and_differ_in_the_noise_only():
    hypotheses = NeuralScore(**vars(SCORE) | {"average_noise_models": True}).noise_hypotheses()
    assert [(one.heteroscedastic, one.skewed) for one in hypotheses] == [
        (True, False),
        (False, False),
        (True, True),
    ]
    alone = NeuralScore(average_noise_models=False, skewed=True)
    assert alone.noise_hypotheses() == (alone,)
    stats_ = hypotheses[0].prepare(dataset(heteroscedastic_rows()))
    first = hypotheses[0].log_evidence(stats_, 3, sets("ab"))
    before = dict(stats_.cache.trained)
    others = [one.log_evidence(stats_, 3, sets("ab")) for one in hypotheses[1:]]
    assert all(stats_.cache.trained[name] is family for name, family in before.items())
    assert others[0] < first - 20  # one scale does not suit these rows
    assert abs(others[1] - first) < 20  # and a skew is not needed


@pytest.mark.slow
def test_evidence_does_not_depend_on_how_many_processes_compute_it(monkeypatch):
    nodes, parents = np.array([3, 3, 3, 2]), np.concatenate([sets("", "a", "ab"), sets("ab")])
    values = []
    for number in ("1", "2"):
        monkeypatch.setenv(processes.VARIABLE, number)
        prepared = SCORE.prepare(dataset(kinked_rows()))
        values.append(SCORE.log_evidence_of_families(prepared, nodes, parents))
    np.testing.assert_array_equal(*values)


def test_families_wait_for_those_of_their_sets_that_are_trained_with_them():
    families = [(0, 0b111), (0, 0b11), (1, 0b11), (0, 0b1), (2, 0b1100), (2, 0)]
    first, second, third = network_cache._levels(families)
    assert first == [(1, 0b11), (0, 0b1), (2, 0b1100), (2, 0)]
    assert (second, third) == ([(0, 0b11)], [(0, 0b111)])
    assert network_cache._levels([]) == []


def test_different_families_stand_in_the_order_in_which_they_come_first():
    nodes = np.array([300, 2, 300, 2, 300])
    parents = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    first, own = distinct(nodes, parents)
    assert first.tolist() == [0, 1, 3, 4]
    assert own.tolist() == [0, 1, 0, 2, 3]
