"""Scores of levels, counts and measurements: proper, comparable, and without artefacts."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import multivariate_normal, nbinom, norm

from bayesdag.data import Dataset, Scaling
from bayesdag.data.kinds import CONTINUOUS, Kind
from bayesdag.errors import InputError
from bayesdag.graphs import iterate_dags
from bayesdag.scores._mixed import (
    features,
    gaussian,
    intervals,
    modes,
    newton,
    parameter_draws,
)
from bayesdag.scores._mixed.contingency import configurations
from bayesdag.scores._mixed.features import MixedClass, Scale
from bayesdag.scores._mixed.likelihoods import (
    MultinomialLogistic,
    NegativeBinomial,
    OrderedLogistic,
)
from bayesdag.scores._mixed.modes import CONSTANT_SCALE, WEIGHT_SCALES
from bayesdag.scores.bdeu import BDeu
from bayesdag.scores.bge import BGe
from bayesdag.scores.mixed import MixedScore
from bayesdag.types import ExpensiveScore

COUNT = Kind("count")


def levels(name, number):
    return Kind(name, tuple(f"l{k}" for k in range(number)))


def cut(values, number):
    """Codes of equally frequent classes."""
    inner = np.quantile(values, np.arange(1, number) / number)
    return np.searchsorted(inner, values).astype(float)


def table(columns, kinds, **more):
    values = np.stack(columns, axis=1).astype(float)
    return Dataset(values, tuple("abcdefgh"[: len(kinds)]), kinds=tuple(kinds), **more)


def evidence(score, data, node, *parents):
    chosen = np.zeros((1, data.num_variables), dtype=bool)
    chosen[0, list(parents)] = True
    return float(score.log_evidence(score.prepare(data), node, chosen)[0])


def log_posterior(score, data):
    """Every DAG, and the log evidence of each."""
    dags = np.concatenate(list(iterate_dags(data.num_variables)))
    stats, d = score.prepare(data), data.num_variables
    parents = np.swapaxes(dags != 0, 1, 2)
    values = [score.log_evidence(stats, i, parents[:, i]) for i in range(d)]
    return dags, np.sum(values, axis=0)


def edges(score, data):
    dags, value = log_posterior(score, data)
    weights = np.exp(value - logsumexp(value))
    return np.tensordot(weights, dags, axes=1)


def discrete_rows(num_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, num_rows)
    b = (a + (rng.random(num_rows) < 0.3)) % 2
    c = (a + b + rng.integers(0, 2, num_rows)) % 3
    return table([a, b, c], [levels("binary", 2), levels("ordinal", 2), levels("categorical", 3)])


def chain(num_rows=500, seed=0):
    """a -> b -> c, linear and Gaussian: no direction is identified."""
    rng = np.random.default_rng(seed)
    a, noise = rng.normal(size=num_rows), rng.normal(size=(2, num_rows))
    b = 0.8 * a + 0.6 * noise[0]
    return [a, b, 0.8 * b + 0.6 * noise[1]]


def test_the_mass_of_a_table_sums_to_one():
    parent = np.array([0.0, 1.0, 1.0, 0.0])
    kinds = [levels("binary", 2), levels("categorical", 3)]
    masses = [
        evidence(BDeu(), table([parent, np.array(codes, float)], kinds), 1, 0)
        for codes in product(range(3), repeat=4)
    ]
    assert logsumexp(masses) == pytest.approx(0, abs=1e-9)


def test_equivalent_graphs_of_levels_have_the_same_score():
    dags, value = log_posterior(BDeu(), discrete_rows())
    skeleton = (dags + np.swapaxes(dags, 1, 2)) != 0
    complete = value[skeleton.sum(axis=(1, 2)) == 6]
    assert len(complete) == 6
    assert np.ptp(complete) < 1e-9
    one_edge = [value[k] for k in range(len(dags)) if dags[k].sum() == 1 and skeleton[k, 0, 1]]
    assert one_edge[0] == pytest.approx(one_edge[1], abs=1e-9)


def test_bdeu_is_the_product_of_predictive_probabilities():
    """Row by row: a level is as probable as its cell is full, prior rows included."""
    data = discrete_rows(40)
    codes, ess = data.values.astype(int), 2.0
    cells, total = np.full((2, 2, 3), ess / 12), 0.0
    for a, b, c in codes:
        total += np.log(cells[a, b, c] / cells[a, b].sum())
        cells[a, b, c] += 1
    assert evidence(BDeu(ess=ess), data, 2, 0, 1) == pytest.approx(total, abs=1e-9)


def test_a_level_that_was_set_does_not_count():
    data = discrete_rows()
    mask = np.zeros(data.values.shape, dtype=bool)
    mask[:30, 2] = True
    half = table(data.values[30:].T, data.kinds)
    whole = Dataset(data.values, data.names, mask, kinds=data.kinds)
    assert evidence(BDeu(), whole, 2, 0) == pytest.approx(evidence(BDeu(), half, 2, 0), abs=1e-9)


def test_columns_without_levels_are_refused_by_bdeu_with_what_can():
    data = table(chain(20), [CONTINUOUS] * 3)
    with pytest.raises(InputError, match="score 'mixed'"):
        BDeu().prepare(data)


def test_lines_of_measurements_are_bge():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    x[:, 2] += x[:, 0]
    wide = np.concatenate([np.ones((50, 1)), x[:, :2]], axis=1)
    found = gaussian.regress(
        (wide.T @ wide)[None],
        (wide.T @ x[:, 2])[None],
        (x[:, 2] @ x[:, 2])[None],
        np.array([50.0]),
        np.array([2]),
        0.5,
    )
    from bayesdag.data import Scaling

    data = Dataset(x, ("a", "b", "c"), scaling=Scaling.of(x, "none"))
    assert found.log_evidence[0] == pytest.approx(evidence(BGe(), data, 2, 0, 1), abs=1e-8)


def test_a_gaussian_density_integrates_to_one():
    wide = np.array([[1.0, 0.3], [1.0, -1.0]])

    def density(y):
        target = np.array([0.4, y])
        found = gaussian.regress(
            (wide.T @ wide)[None],
            (wide.T @ target)[None],
            (target @ target)[None],
            np.array([2.0]),
            np.array([1]),
            0.05,
        )
        return np.exp(found.log_evidence[0])

    first = gaussian.regress(
        (wide[:1].T @ wide[:1])[None],
        (0.4 * wide[:1].T)[None, :, 0],
        np.array([0.16]),
        np.array([1.0]),
        np.array([1]),
        0.05,
    )
    total = integrate.quad(density, -200, 200, points=[0, 0.4], limit=400)[0]
    assert total == pytest.approx(np.exp(first.log_evidence[0]), rel=1e-3)


def quadrature(log_likelihood, deviations):
    """∫ exp(log likelihood) under independent normal priors of one or two parameters."""
    axes = [np.linspace(-6 * s, 6 * s, 161) for s in deviations]
    grid = np.meshgrid(*axes, indexing="ij")
    prior = sum(norm.logpdf(g, scale=s) for g, s in zip(grid, deviations, strict=True))
    step = np.prod([axis[1] - axis[0] for axis in axes])
    return logsumexp(log_likelihood(*grid) + prior) + np.log(step)


def laplace(model, scale):
    precision = np.array([CONSTANT_SCALE**-2, scale**-2])
    found = newton.laplace(model, model.prior(precision), model.start())
    return found.log_evidence[0] + model.log_constant


ROWS = np.random.default_rng(0).normal(size=80)
DESIGN = np.stack([np.ones(80), ROWS], axis=1)[None]


@pytest.mark.parametrize("scale", WEIGHT_SCALES)
def test_laplace_agrees_with_quadrature_for_two_levels(scale):
    codes = (np.random.default_rng(1).random(80) < expit(0.5 + ROWS)).astype(int)

    def log_likelihood(constant, slope):
        eta = constant[..., None] + slope[..., None] * ROWS
        return (codes * eta - np.logaddexp(0, eta)).sum(axis=-1)

    exact = quadrature(log_likelihood, [2**0.5 * CONSTANT_SCALE, 2**0.5 * scale])
    assert laplace(MultinomialLogistic(DESIGN, codes, 2), scale) == pytest.approx(exact, abs=0.1)


def test_two_ordered_levels_are_two_levels():
    codes = (np.random.default_rng(1).random(80) < expit(0.5 + ROWS)).astype(int)
    both = [
        laplace(model(DESIGN, codes, 2), 1.5) for model in (MultinomialLogistic, OrderedLogistic)
    ]
    assert both[0] == pytest.approx(both[1], abs=1e-3)


def test_laplace_agrees_with_quadrature_for_counts():
    counts = np.random.default_rng(1).poisson(np.exp(0.5 + 0.4 * ROWS)).astype(float)

    def log_likelihood(constant, slope):
        mean = np.exp(constant[..., None] + slope[..., None] * ROWS)
        return nbinom.logpmf(counts, 4.0, 4.0 / (4.0 + mean)).sum(axis=-1)

    exact = quadrature(log_likelihood, [5.0 / 4, 0.5])  # a narrower grid
    model = NegativeBinomial(DESIGN, counts, 4.0)
    prior = np.diag([(5.0 / 4) ** -2, 0.5**-2])
    found = newton.laplace(model, prior, model.start()).log_evidence[0]
    assert found == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("model", [MultinomialLogistic, OrderedLogistic])
def test_derivatives_are_those_of_the_log_likelihood(model, key):
    codes = np.random.default_rng(2).integers(0, 4, 80)
    found = model(DESIGN, codes, 4)
    theta = found.start() + 0.1 * np.asarray(jax.random.normal(key, found.start().shape))
    at = found.derivatives(theta)
    for k in range(theta.shape[1]):
        moved = np.eye(theta.shape[1])[[k]] * 1e-5
        ahead, behind = (found.derivatives(theta + s * moved) for s in (1, -1))
        slope = (ahead.value - behind.value) / 2e-5
        assert at.gradient[0, k] == pytest.approx(slope[0], rel=1e-4, abs=1e-4)
        bend = (behind.gradient - ahead.gradient)[0] / 2e-5
        np.testing.assert_allclose(at.hessian[0, k], bend, rtol=1e-4, atol=1e-3)


def test_masses_of_levels_and_counts_sum_to_about_one():
    """Over all codes of a new row: Laplace's approximation is not exact."""
    codes = cut(0.7 * ROWS + np.random.default_rng(3).normal(size=80), 3).astype(int)
    for model in (MultinomialLogistic, OrderedLogistic):
        all_rows = laplace(model(DESIGN[:, :-1], codes[:-1], 3), 1.5)
        with_last = [laplace(model(DESIGN, np.append(codes[:-1], k), 3), 1.5) for k in range(3)]
        assert logsumexp(with_last) - all_rows == pytest.approx(0, abs=0.02)


def test_thresholds_are_proper_however_many():
    """The evidence of ordered levels without parents lies near that of their table."""
    codes = np.random.default_rng(4).integers(0, 4, 400)
    counts = np.bincount(codes)
    exact = gammaln(1) - gammaln(401) + (gammaln(counts + 0.25) - gammaln(0.25)).sum()
    model = OrderedLogistic(np.ones((1, 400, 1)), codes, 4)
    mode = newton.laplace(model, model.prior(np.array([CONSTANT_SCALE**-2])), model.start())
    assert mode.log_evidence[0] + model.log_constant == pytest.approx(exact, abs=3)


KINDS = {
    "binary": (levels("binary", 2), lambda v: cut(v, 2)),
    "ordinal": (levels("ordinal", 4), lambda v: cut(v, 4)),
    "categorical": (levels("categorical", 3), lambda v: cut(v, 3)),
    "count": (COUNT, lambda v: np.maximum(np.round(3 * v + 6), 0)),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("which", [(0,), (1,)])
def test_a_discretised_copy_gives_no_certain_direction(name, which):
    kind, coded = KINDS[name]
    columns, kinds = chain(), [CONTINUOUS] * 3
    for j in which:
        columns[j], kinds[j] = coded(columns[j]), kind
    found = edges(MixedScore(), table(columns, kinds))
    for i, j in [(0, 1), (1, 2)]:
        assert found[i, j] + found[j, i] > 0.95
        assert 0.05 < found[i, j] < 0.95


def test_a_pair_of_kinds_has_the_same_evidence_in_both_directions():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 200)
    value = label * 2.0 + rng.normal(size=200) ** 3
    data = table([label, value], [levels("categorical", 3), CONTINUOUS])
    score = MixedScore()
    forward = evidence(score, data, 0) + evidence(score, data, 1, 0)
    backward = evidence(score, data, 1) + evidence(score, data, 0, 1)
    assert forward == pytest.approx(backward, abs=1e-9)
    assert forward > evidence(score, data, 0) + evidence(score, data, 1) + 20


def test_the_label_of_a_mixture_is_not_certain_to_be_its_cause():
    """Two bimodal measurements, and a level that is one of them cut in its valley."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 300)
    a = 3 * group + rng.normal(size=300)
    b = a + rng.normal(size=300)
    data = table([a, b, a > 1.5], [CONTINUOUS, CONTINUOUS, levels("binary", 2)])
    found = edges(MixedScore(), data)
    assert found[0, 2] + found[2, 0] > 0.95
    assert 0.05 < found[2, 0] < 0.95


def test_an_experiment_tells_the_direction_between_kinds():
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 2, 300).astype(float)
    mask = np.zeros((300, 2), dtype=bool)
    mask[:150, 1] = True
    effect = dose + rng.normal(size=300)
    effect[:150] = rng.normal(size=150)  # set, whatever the dose
    data = table([dose, effect], [levels("binary", 2), CONTINUOUS], interventions=mask)
    assert edges(MixedScore(), data)[0, 1] > 0.95


def test_names_of_levels_do_not_matter():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 150)
    value = np.array([0.0, 2.0, -1.0])[codes] + rng.normal(size=150)
    kinds = [levels("categorical", 3), CONTINUOUS]
    renamed = np.array([2, 0, 1])[codes]
    for node, parent in [(0, 1), (1, 0)]:
        both = [
            evidence(MixedScore(), table([c, value], kinds), node, parent) for c in (codes, renamed)
        ]
        assert both[0] == pytest.approx(both[1], abs=1e-5)


def test_levels_are_not_numbers():
    """A category whose middle code is extreme: a line of codes would see nothing."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    value = np.where(codes == 1, 2.0, 0.0) + rng.normal(size=300)
    data = table([codes, value], [levels("categorical", 3), CONTINUOUS])
    gain = evidence(MixedScore(), data, 1, 0) - evidence(MixedScore(), data, 1)
    assert gain > 50


def test_a_curve_between_measurements_still_tells_its_direction():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 400)
    y = x**2 + 0.5 * rng.normal(size=400)
    data = table([x, y, rng.integers(0, 2, 400)], [CONTINUOUS, CONTINUOUS, levels("binary", 2)])
    assert edges(MixedScore(), data)[0, 1] > 0.95


def test_an_environment_may_change_a_level():
    rng = np.random.default_rng(0)
    where = np.repeat(["here", "there"], 150)
    a = (rng.random(300) < np.where(where == "here", 0.2, 0.8)).astype(float)
    data = Dataset(
        np.stack([a, rng.normal(size=300)], axis=1),
        ("a", "b"),
        environment=where,
        kinds=(levels("binary", 2), CONTINUOUS),
    )
    gain = evidence(MixedScore(), data, 0, 2) - evidence(MixedScore(), data, 0)
    assert gain > 20
    assert evidence(MixedScore(), data, 1, 2) < evidence(MixedScore(), data, 1)


def test_the_score_knows_where_an_expensive_search_begins():
    score, data = (
        MixedScore(),
        table(
            [*chain(200)[:2], cut(chain(200)[2], 3)], [CONTINUOUS, CONTINUOUS, levels("ordinal", 3)]
        ),
    )
    assert isinstance(score, ExpensiveScore)
    stats = score.prepare(data)
    gain = score.approximate_gain(stats, np.array([2]), np.zeros((1, 3), dtype=bool))
    assert gain[0, 1] > gain[0, 0] > 0
    assert gain[0, 2] == 0


def mixed_rows(num_rows, seed):
    """Two measurements, a binary and an ordinal column, and a child of all of every kind."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, num_rows))
    c, d = rng.integers(0, 2, num_rows), rng.integers(0, 3, num_rows)
    score = a * (2 * c - 1) + 0.5 * b**2 + 0.4 * d
    return [a, b, c, d, score], rng


CHILDREN = {
    "continuous": (CONTINUOUS, lambda s, rng: s + rng.normal(size=len(s))),
    "binary": (levels("binary", 2), lambda s, rng: s + rng.logistic(size=len(s)) > 0),
    "ordinal": (
        levels("ordinal", 3),
        lambda s, rng: np.digitize(s + rng.logistic(size=len(s)), [-0.5, 1.0]),
    ),
    "categorical": (
        levels("categorical", 3),
        lambda s, rng: np.stack([s, -s, 0 * s]) + rng.gumbel(size=(3, len(s))),
    ),
    "count": (COUNT, lambda s, rng: rng.poisson(np.exp(0.4 * s))),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_the_mechanism_has_the_likelihood_of_the_score(name):
    """At its mode every component of a family is the same function in the SCM."""
    kind, make = CHILDREN[name]
    (*columns, score), rng = mixed_rows(600, 0)
    child = make(score + 3 * np.sin(1.5 * (columns[0] + columns[1])), rng)
    child = child.argmax(axis=0) if name == "categorical" else child
    kinds = [CONTINUOUS, CONTINUOUS, levels("binary", 2), levels("ordinal", 3), kind]
    data = table([*columns, child], kinds)
    models = MixedScore().prepare(data).models
    parents = np.array([True] * 4 + [False])
    labels, values = models.components(4, parents[None])
    graph = jnp.zeros((5, 5)).at[:4, 4].set(1.0)
    scm = parameter_draws.scm_of(data)
    known = [label for label, value in zip(labels, values[0], strict=True) if np.isfinite(value)]
    known = [label for label in known if label.scale == known[0].scale]
    networks = [label._replace(kind=MixedClass.NETWORK) for label in known]
    several = {(label.kind, label.hyper[1:]): label for label in [*known, *networks]}
    chosen = list(several.values())
    nothing = [
        parameter_draws.DrawnFunction(np.zeros((1, 1, max(len(k.levels) - 1, 2))), False, Scale.RAW)
        for k in kinds[:4]
    ]
    functions, expected = [], []
    for label in chosen:
        fitted = models.modes(4, parents, label)
        given = (models, 4, parents, label, fitted, 4)
        functions += [*nothing, parameter_draws._regression(AtTheMode(), *given)]
        expected.append(log_likelihood(models, label, fitted, parents, data))
    every = np.tile(np.asarray(graph.T) != 0, (len(chosen), 1))
    params = parameter_draws._assembled(models.columns, functions, every, (len(chosen), 5, 4))
    theta = {"mechanism": params, "noise": {"log_scale": np.zeros((len(chosen), 5), np.float32)}}
    rows = jnp.asarray(data.values, jnp.float32)
    terms = jax.jit(jax.vmap(lambda one: scm.log_terms(one, graph, rows)))(theta)
    np.testing.assert_allclose(np.asarray(terms)[:, :, 4].sum(axis=1), expected, rtol=1e-3)


class AtTheMode(np.random.Generator):
    """Draws nothing: normal variates are 0, and a gamma variate is its shape."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, size=None, dtype=np.float64, out=None):  # pyright: ignore
        return np.zeros(() if size is None else size)

    def gamma(self, shape, scale=1.0, size=None):  # pyright: ignore
        return shape


def design(models, label, parents):
    """Features of the parents of the last column, as a component reads them."""
    every = np.ones(len(models.columns.codes), dtype=bool)
    if label.kind == MixedClass.NETWORK:
        units = models.network_fits.units(4, parents, label.scale)
        return models.network_fits.design(parents, label.scale, units, every)
    return models.regressions.design(parents, label.scale, label.kind, every)


def log_likelihood(models, label, fitted, parents, data):
    """Of the child at the mode, written with the designs of the score."""
    columns = models.columns
    if columns.group(4) == "continuous":
        target = columns.numbers[:, 4]
        if label.kind == MixedClass.BY_LEVEL:
            cells, _ = configurations(columns.codes, columns.num_levels, np.array([2, 3]))
            read = np.stack([np.ones(len(target)), *columns.numbers[:, :2].T], axis=1)
            mean = (read * fitted.mean[cells]).sum(axis=1)
            scale = np.sqrt(fitted.scale / fitted.shape)[cells]
        else:
            mean = design(models, label, parents) @ fitted.mean[0]
            scale = np.sqrt(fitted.scale / fitted.shape)
        log_density = norm.logpdf(target, mean, scale)
        return log_density.sum() - len(target) * np.log(data.scaling.scale[4])
    read = design(models, label, parents)[None]
    codes, k = columns.codes[:, 4], int(columns.num_levels[4])
    if columns.group(4) == "count":
        model = NegativeBinomial(read, columns.counts[:, 4], label.hyper[1])
    else:
        ordered = columns.kinds[4].name == "ordinal" and label.hyper[1] == 1
        model = (OrderedLogistic if ordered else MultinomialLogistic)(read, codes, k)
    return float(model.derivatives(fitted.theta).value[0])


def wavy_rows(num_rows, seed, kind):
    """Two measurements, and a column that hangs on a wave across both of them."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-np.pi, np.pi, size=(2, num_rows))
    wave = 3 * np.sin(a + b)
    child = CHILDREN[kind][1](wave, rng)
    child = child.argmax(axis=0) if kind == "categorical" else child
    return table([a, b, child], [CONTINUOUS, CONTINUOUS, CHILDREN[kind][0]])


@pytest.mark.parametrize("kind", ["binary", "ordinal", "categorical", "count"])
def test_a_network_into_levels_is_found_where_lines_and_curves_fail(kind):
    data = wavy_rows(500, 0, kind)
    without, found = (edges(MixedScore(networks=own), data) for own in (False, True))
    for j in (0, 1):  # any one of three may be what the other two make of it
        assert found[j, 2] + found[2, j] > 0.6
        assert without[j, 2] + without[2, j] < 0.3
    score, graph = MixedScore(), np.array([[[0, 0, 1], [0, 0, 1], [0, 0, 0]]], dtype=np.int8)
    assert score.function_weights(score.prepare(data), graph)["network"][2] > 0.9


def test_a_network_out_of_levels_is_found_where_lines_and_curves_fail():
    """A wave or its mirror image: neither column alone says anything of the third."""
    rng = np.random.default_rng(0)
    a, level = rng.uniform(-np.pi, np.pi, 500), rng.integers(0, 2, 500)
    y = (1 - 2 * level) * np.cos(2 * a) + 0.2 * rng.normal(size=500)
    data = table([a, level, y], [CONTINUOUS, levels("binary", 2), CONTINUOUS])
    without, found = (edges(MixedScore(networks=own), data) for own in (False, True))
    assert found[1, 2] + found[2, 1] > 0.6
    assert without[1, 2] + without[2, 1] < 0.3


@pytest.mark.parametrize("kind", ["binary", "ordinal", "categorical"])
def test_the_mass_of_a_network_sums_to_about_one(kind):
    """Over the levels of a row that it is not trained on, set or not."""
    data = wavy_rows(400, 1, kind)
    models = MixedScore().prepare(data).models
    row = int(np.flatnonzero(~models.network_fits._halves)[0])
    codes = range(len(data.kinds[2].levels))
    values = np.tile(data.values, (len(codes), 1, 1))
    values[:, row, 2] = codes
    whole = [of_network(Dataset(one, data.names, kinds=data.kinds)) for one in values]
    mask = np.zeros(data.values.shape, dtype=bool)
    mask[row, 2] = True
    without = of_network(Dataset(data.values, data.names, mask, kinds=data.kinds))
    assert np.logaddexp.reduce(whole) - without == pytest.approx(0, abs=0.03)


def of_network(data):
    """Log evidence of the network of the last column given the others, scores left out."""
    fits = MixedScore().prepare(data).models.network_fits
    seen = fits.columns.observed[:, 2]
    found = fits._log_evidence(2, np.array([True, True, False]), Scale.RAW, seen)
    values = [value for _, value in found]
    return float(logsumexp(values) - np.log(len(values)))


def test_rows_that_come_again_and_a_start_from_few_rows_change_no_evidence(monkeypatch):
    rng = np.random.default_rng(3)
    n = 4000
    grade = rng.integers(0, 4, n)
    size = np.round(rng.normal(size=n) + 0.5 * grade, 1)
    visits = rng.poisson(np.exp(0.3 * size))
    ill = (rng.random(n) < expit(0.5 * size - 0.3 * grade)).astype(int)
    kinds = [levels("ordinal", 4), CONTINUOUS, COUNT, levels("binary", 2)]
    data = table([grade, size, visits, ill], kinds)
    parents = np.zeros((2, 4), dtype=bool)
    parents[0, 1], parents[1, :2] = True, True

    def evidence() -> list[np.ndarray]:
        models = MixedScore(networks=False).prepare(data).models
        ill, visiting = models.log_evidence(3, parents), models.log_evidence(2, parents)
        return [ill, visiting, models.log_evidence(0, parents[:1])]

    fast = evidence()
    monkeypatch.setattr(modes, "LEAST_ROWS_TO_MERGE", 10**9)
    monkeypatch.setattr(modes, "_ROWS_TO_START", 10**9)
    monkeypatch.setattr(newton, "_TOLERANCE", 1e-12)
    for found, exact in zip(fast, evidence(), strict=True):
        np.testing.assert_allclose(found, exact, atol=0.02)


def recorded(num_rows=1000, seed=0, acting=False):
    """A measurement in four brackets, and three effects of it: as it is, or as it is recorded."""
    rng = np.random.default_rng(seed)
    income = rng.normal(size=num_rows)
    bracket = np.searchsorted(np.array([-0.8, 0.1, 0.9]), income).astype(float)
    cause = (bracket - bracket.mean()) / bracket.std() if acting else income
    effects = [weight * cause + 0.6 * rng.normal(size=num_rows) for weight in (1.0, 1.2, -1.0)]
    return table([bracket, *effects], [levels("ordinal", 4), *[CONTINUOUS] * 3])


@pytest.mark.parametrize("seed", range(3))
def test_what_a_bracket_leaves_out_makes_no_arrows(seed):
    """Effects of an income that is known in brackets are dependent within each bracket."""
    data, among_effects = recorded(seed=seed), np.s_[1:, 1:]
    score, naive = MixedScore(networks=False), MixedScore(networks=False, intervals=False)
    assert score.prepare(data).gain > 3
    assert edges(naive, data)[among_effects].sum() > 0.9
    assert edges(score, data)[among_effects].sum() < 0.5
    (words,) = score.notes(score.prepare(data))
    assert "recorded in intervals" in words
    assert naive.notes(naive.prepare(data)) == []


@pytest.mark.parametrize("seed", range(3))
def test_levels_that_act_are_left_as_they_are(seed):
    data, score = recorded(seed=seed, acting=True), MixedScore(networks=False)
    assert score.prepare(data).intervals is None
    assert score.prepare(data).gain < -20


def test_columns_that_have_nothing_to_do_with_one_another_are_evidence_of_neither():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 4, 500), rng.integers(0, 2, 500), *rng.normal(size=(2, 500))]
    kinds = [levels("ordinal", 4), levels("binary", 2), CONTINUOUS, CONTINUOUS]
    stats = MixedScore(networks=False).prepare(table(columns, kinds))
    assert stats.intervals is None
    assert abs(stats.gain) < intervals.LEAST_GAIN


def test_the_probability_of_intervals_is_that_of_rectangles():
    """Of one measurement and two levels: a density times a bivariate normal probability."""
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal(np.zeros(3), [[1, 0.5, 0.3], [0.5, 1, 0.6], [0.3, 0.6, 1]], 200)
    codes = [np.searchsorted([-0.5, 0.7], z[:, 1]), np.searchsorted([0.2], z[:, 2])]
    data = table([z[:, 0], *codes], [CONTINUOUS, levels("ordinal", 3), levels("binary", 2)])
    found = intervals._intervals(features.columns_of(data))
    covariance = np.array([[1, 0.5, 0.3], [0.5, 1, 0.6], [0.3, 0.6, 1.0]])
    expected = norm.logpdf(found.start[:, 0]).sum()
    rest = covariance[1:, 1:] - np.outer(covariance[1:, 0], covariance[1:, 0])
    for row in range(200):
        shift = covariance[1:, 0] * found.start[row, 0]
        low, high = (np.clip(ends[row, 1:] - shift, -9, 9) for ends in (found.lower, found.upper))
        corners = [[low[0], low[1]], [high[0], high[1]], [low[0], high[1]], [high[0], low[1]]]
        below = multivariate_normal([0, 0], rest).cdf(corners)
        expected += np.log(below[0] + below[1] - below[2] - below[3])
    many = [intervals._log_likelihood(rng, found, covariance) for _ in range(20)]
    assert np.mean(many) == pytest.approx(expected, abs=4 * np.std(many) / 20**0.5 + 0.5)


def test_intervals_are_drawn_within_their_ends():
    columns = features.columns_of(recorded(200))
    found = intervals._intervals(columns)
    model = intervals._sampled(np.random.default_rng(0), found)
    assert (model.completions >= found.lower - 1e-9).all()
    assert (model.completions <= found.upper + 1e-9).all()
    assert model.completions[:, :, 0].std(axis=0).min() > 0.01


def test_evidence_of_intervals_is_bge_where_the_measurements_are_known():
    """Families of completed columns are those of BGe, up to one constant per graph."""
    data = recorded(300)
    columns = features.columns_of(data)
    model = intervals._sampled(np.random.default_rng(0), intervals._intervals(columns))
    whole = Dataset(model.completions[0], data.names, scaling=Scaling(np.zeros(4), np.ones(4)))
    one = intervals.IntervalModel(model.completions[:1], 0.0)
    parents = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]], dtype=bool)
    expected = BGe().log_evidence(BGe().prepare(whole), 1, parents)
    np.testing.assert_allclose(one.log_evidence(np.full(3, 1), parents), expected, rtol=1e-9)


def test_intervals_are_not_for_tables_in_which_cells_were_set():
    data = recorded(300)
    was_set = np.zeros(data.values.shape, dtype=bool)
    was_set[:50, 0] = True
    columns = features.columns_of(replace(data, interventions=was_set))
    assert intervals._intervals(columns) is None
    assert intervals._intervals(features.columns_of(discrete_rows())) is None
