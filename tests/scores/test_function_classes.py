"""Classes of functions inside a family: what they cost, and what is drawn of them."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import read
from bayesdag.model.random_units import random_units
from bayesdag.scores._neural import crossfit, folds
from bayesdag.scores._neural.folds import families_by_size
from bayesdag.scores._neural.function_classes import (
    CLASS_PROBABILITY,
    KNOTS,
    FunctionClass,
    basis,
    features_of_scale,
    members_of_basis,
    regress,
    regress_in_best_units,
    sizes_of_curves,
)
from bayesdag.scores._neural.network import TrainingRows
from bayesdag.scores._neural.network_cache import families_of
from bayesdag.scores.bge import BGe
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS

# A skewed column is warned about when it is read, which is not the matter here.
pytestmark = pytest.mark.filterwarnings("ignore:column")
NUM_ROWS = NETWORK_ROWS
SCORE = dataclasses.replace(SMALL_NETWORKS, trusted_rows=np.inf)
SETS = np.array([[bool(m >> j & 1) for j in range(3)] for m in range(4)])  # within {a, b}


def rows(kind: str, seed: int = 0):
    """c of a and b: a line, a sum of curves, a product, or one kink across both."""
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, NUM_ROWS))
    mean = {
        "line": a + 0.6 * b,
        "curves": np.abs(a) + 0.6 * b,
        "product": 1.5 * a * b,
        "kink": 2 * np.abs(a + b - 0.3),
    }[kind]
    return read(np.column_stack([a, b, mean + 0.5 * noise]))


@pytest.fixture(scope="module")
def evidence():
    """By kind of data: evidence of c with every set of parents, by class, without skew."""
    found = {}
    for kind in ("line", "curves", "product", "kink"):
        stats = SCORE.prepare(rows(kind))
        SCORE.log_evidence(stats, 2, SETS)
        families = [stats.cache.trained[f] for f in families_of(np.full(4, 2), SETS)]
        found[kind] = np.stack([family.log_evidence[:, 0] for family in families])
    return found


def test_without_parents_all_classes_are_the_same(evidence):
    for values in evidence.values():
        # The intercept of a network takes other steps towards the centre of long tails.
        np.testing.assert_allclose(values[0], values[0, 0], atol=2)


def test_the_evidence_of_a_line_is_that_of_a_linear_gaussian_family(evidence):
    data, exact = rows("line"), BGe()
    expected = exact.log_evidence(exact.prepare(data), 2, SETS)
    found = evidence["line"][:, FunctionClass.LINEAR]
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=4)


@pytest.mark.parametrize(
    ("kind", "best"),
    [
        ("line", FunctionClass.LINEAR),
        ("curves", FunctionClass.ADDITIVE),
        ("product", FunctionClass.GAUSSIAN_PROCESS),
        ("kink", FunctionClass.NETWORK),
    ],
)
def test_the_class_that_made_the_rows_has_the_best_evidence(evidence, kind, best):
    assert evidence[kind][3].argmax() == best


def test_a_family_is_never_charged_more_than_the_prior_odds_for_what_it_contains(evidence):
    stats = SCORE.prepare(rows("line"))
    total = SCORE.log_evidence(stats, 2, SETS)
    simple = evidence["line"][:, FunctionClass.LINEAR]
    odds = 2 / CLASS_PROBABILITY[FunctionClass.LINEAR]  # two forms of the noise
    assert (total >= simple - np.log(odds) - 1e-6).all()


def test_columns_that_determine_one_another_leave_every_regression_finite():
    """In single precision their Gram matrix may have no factor."""
    rng = np.random.default_rng(302)
    a, b = rng.normal(size=(2, NUM_ROWS)).astype(np.float32)
    nearly = a + 1e-7 * b
    inputs = np.column_stack([a, nearly, np.maximum(a, 0), np.maximum(nearly, 0)])
    rows = TrainingRows(np.asfortranarray(inputs * 1e3), a + nearly, np.ones_like(a))
    network = regress(rows, np.ones(4, np.float32))
    assert np.isfinite(network.second).all()


@pytest.mark.parametrize(("mean", "chosen"), [(lambda a: a, 0), (lambda a: np.sin(2.5 * a), 1)])
def test_units_are_chosen_that_suit_the_rows_and_the_regression_is_the_one_in_them(mean, chosen):
    """In small units of its bends a curve may be wavy, and pays where it is not."""
    rng = np.random.default_rng(5)
    a, noise = rng.normal(size=(2, 1000)).astype(np.float32)
    noise[:20] *= 5  # outliers do not decide
    knots, used = np.quantile(a, KNOTS)[None, :].astype(np.float32), np.ones(1, np.float32)
    inputs, members = basis(a[:, None], knots, used), members_of_basis(used)[1]
    inputs -= inputs.mean(axis=0)
    factors = np.stack([np.ones(8), np.repeat([1.0, 0.1], [1, 7])]).astype(np.float32)
    rows = TrainingRows(inputs, mean(a) + 0.3 * noise, np.ones_like(a))
    found, best, choice = regress_in_best_units(rows, members, factors)
    assert best == chosen
    assert -np.log(2) - 1e-6 <= choice <= 0  # the mean of two is at least half of the better one
    own = rows._replace(inputs=inputs / factors[best])
    expected = regress(own, members)
    apart = own.inputs @ (found.second - expected.second)[:-1]
    assert np.std(apart) < 0.02  # of noise of 0.3


def test_a_line_uses_the_inputs_and_a_sum_of_curves_their_kinks_too():
    used, m = jnp.array([1.0, 0.0]), len(KNOTS)
    lines, curves = np.asarray(members_of_basis(used))
    assert lines.tolist() == [1, 0] + [0] * 2 * m
    assert curves.tolist() == [1, 0] + [1] * m + [0] * m
    values = basis(jnp.array([[2.0, 5.0]]), jnp.array([[0.0, 1, 3], [0, 0, 0]]), used)
    assert values.tolist() == [[2, 0, 2, 1, 0, 0, 0, 0]]


def test_the_scale_of_the_noise_depends_on_fewer_kinks_than_the_curve():
    m = len(KNOTS)
    every = [0, 1, *range(2, 2 + m), *range(2 + m, 2 + 2 * m), 2 + 2 * m]  # the last: a constant
    scale = features_of_scale(2).tolist()
    assert set(scale) <= set(every)
    assert {0, 1, every[-1]} <= set(scale)
    assert sum(2 <= j < 2 + m for j in scale) == sum(2 + m <= j < 2 + 2 * m for j in scale) == 3


def test_bends_of_a_curve_have_the_variance_of_a_smoothing_spline():
    """A weight of the basis is one of a whitened network divided by the size of its unit."""
    spread, knots = np.array([2.0]), np.linspace(-3, 3, len(KNOTS))[None, :]
    size = sizes_of_curves(spread, knots, np.ones(1), smoothing=20.0)
    variance = 1 / (len(size) * size**2)
    assert variance[0] == pytest.approx(1 / spread[0] ** 2)
    gap = 1.0 / spread[0]  # of a standardised input
    np.testing.assert_allclose(variance[1:] * spread[0] ** 2, 20.0 * gap)
    unused = sizes_of_curves(spread, knots, np.zeros(1), smoothing=20.0)
    assert unused.tolist() == [1.0] * len(size)


def test_a_wavy_curve_is_found_and_a_straight_one_pays_little_for_all_its_knots():
    rng = np.random.default_rng(3)
    a, b, noise = rng.normal(size=(3, 1000))

    def gain(mean: np.ndarray) -> float:
        stats = SCORE.prepare(read(np.column_stack([a, b, mean + 0.3 * noise])))
        SCORE.log_evidence(stats, 2, SETS[[1]])
        [family] = [stats.cache.trained[f] for f in families_of(np.array([2]), SETS[[1]])]
        evidence = family.log_evidence[:, 0]
        return float(evidence[FunctionClass.ADDITIVE] - evidence[FunctionClass.LINEAR])

    wavy = gain(np.sin(2.5 * a))
    assert wavy > 700  # three kinks find 264
    assert gain(a) > -20


@pytest.mark.parametrize(
    ("kind", "compiled"),
    [("line", False), ("curves", False), ("product", False), ("product", True)],
)
def test_drawn_functions_predict_the_rows(key, kind, compiled, monkeypatch):
    """Also where families are filled up, as they are for an accelerator."""
    monkeypatch.setattr(folds, "fold", partial(folds.fold, compiled=compiled))
    monkeypatch.setattr(folds, "SIZES", (3, *folds.SIZES))
    monkeypatch.setattr(crossfit, "_MOST_ON_ACCELERATORS", 1)
    monkeypatch.setattr(crossfit, "_FEWEST_ON_ACCELERATORS", 1)
    data, score = rows(kind), dataclasses.replace(SCORE, least_unexplained=np.inf)
    stats = score.prepare(data)
    graph = np.zeros((200, 3, 3), dtype=np.int8)
    graph[:, :2, 2] = 1
    params = score.draw(key, stats, graph)["mechanism"]
    mechanism, x = score.scm(data).mechanism, jnp.asarray(data.scaled, jnp.float32)
    some = jax.tree.map(lambda leaf: leaf[:60], params)
    of_draw = jax.vmap(lambda one: mechanism.node(one, x, jnp.array([1, 1, 0]), jnp.asarray(2)))
    means = np.asarray(jax.jit(of_draw)(some))
    left = data.scaled[:, 2] - np.mean(means, axis=0)
    noise = 0.5 / data.scaling.scale[2]
    assert left.std() == pytest.approx(noise, rel=0.2)
    # What the draws differ by is the uncertainty of a regression, not more than the noise; that of
    # a surface is larger than that of curves.
    assert np.std(means, axis=0).mean() < (0.5 if kind == "product" else 0.4) * noise


def test_simple_fits_are_those_behind_the_evidence():
    data = rows("curves")
    stats = SCORE.prepare(data)
    SCORE.log_evidence(stats, 2, SETS)
    [(_, group)] = families_by_size(stats.folds, np.array([2]), SETS[[3]])
    [family] = [stats.cache.trained[f] for f in families_of(np.array([2]), SETS[[3]])]
    by_class = crossfit.simple_fits(stats.folds, group)
    for kind, fits in zip(list(FunctionClass)[1:], by_class, strict=True):
        again = fits.log_marginal[0, 0]  # family, fold
        np.testing.assert_allclose(again, family.log_evidence[kind], atol=1e-3)


def test_random_units_are_the_same_whatever_comes_after_their_inputs():
    x = np.random.default_rng(0).normal(size=(20, 2))
    wider = np.column_stack([x, np.zeros((20, 3))])
    own = random_units(x, np.ones(2), 16)
    np.testing.assert_allclose(own, random_units(wider, np.array([1.0, 1, 0, 0, 0]), 16))
    assert (own >= 0).all()
    # In unit directions: nowhere steeper than 1.
    steps = np.abs(random_units(x + 1e-3 / 2**0.5, np.ones(2), 16) - own)
    assert steps.max() <= 1e-3 + 1e-9


def test_filling_a_family_up_leaves_the_evidence_of_a_gaussian_process_as_it_is():
    stats = SCORE.prepare(rows("product"))
    [(_, group)] = families_by_size(stats.folds, np.array([2]), SETS[[3]])
    filled = group._replace(
        members=np.pad(group.members, ((0, 0), (0, 2))), used=np.pad(group.used, ((0, 0), (0, 2)))
    )
    own, other = (crossfit.regressions(stats.folds, some).log_evidence for some in (group, filled))
    np.testing.assert_allclose(own, other, atol=0.1)


def test_networks_are_the_only_functions_where_simpler_ones_are_left_out(key):
    alone = {"simpler_functions": False, "gaussian_processes": False}
    data, score = rows("line"), dataclasses.replace(SCORE, **alone)
    stats = score.prepare(data)
    found = score.log_evidence(stats, 2, SETS)
    assert np.isfinite(found).all()
    assert found[3] < SCORE.log_evidence(SCORE.prepare(data), 2, SETS)[3]
    graphs = np.zeros((2, 3, 3), dtype=np.int8)
    graphs[:, :2, 2] = 1
    weights = score.function_weights(stats, graphs)
    assert weights["network"][2] == pytest.approx(1)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(score.draw(key, stats, graphs)))
