"""What every score promises: an evidence, and draws of the functions that belong to it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from bayesdag import plugins
from bayesdag.data import Dataset, Scaling
from bayesdag.types import Score

# Settings that keep a trained score to seconds.
SMALL = {"neural": {"width": 3, "num_folds": 2, "num_starts": 2, "rough_steps": 6, "fine_steps": 6}}
# Trained by a random start: its evidence is known up to the spread between starts, and its
# parameters are drawn around the trained ones.
TRAINED = frozenset({"neural"})
NAMES = ("a", "b", "c", "d")
GRAPH = np.zeros((4, 4), dtype=np.int8)
GRAPH[[0, 0, 1], [1, 2, 2]] = 1  # a -> b, a -> c, b -> c; d stands alone

every_score = pytest.mark.parametrize("name", plugins.names("scores"))


def build(name, **settings):
    return plugins.load("scores", name)(**SMALL.get(name, {}), **settings)


def rows(num_rows=160, seed=0):
    """Linear rows of GRAPH in unit scale."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows, 4))
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] += 0.7 * x[:, 0] - 0.6 * x[:, 1]
    return x


def table(values, names=NAMES, interventions=None):
    return Dataset(values, names, interventions, Scaling.of(values, "none"))


def all_parents(node):
    """Every set of parents of a node among four."""
    sets = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
    return sets[~sets[:, node]]


def evidence(name, data, node=2, parents=None, **settings):
    score = build(name, **settings)
    return score.log_evidence(
        score.prepare(data), node, all_parents(node) if parents is None else parents
    )


def spread_between_starts(name, data):
    """Standard deviation of the evidence between random starts; 0 where nothing is trained."""
    if name not in TRAINED:
        return 0.0
    found = [evidence(name, data, seed=seed) for seed in range(4)]
    return np.std(found, axis=0, ddof=1).max()


@every_score
def test_it_is_a_score(name):
    assert isinstance(build(name), Score)
    assert dataclasses.is_dataclass(build(name))


@every_score
def test_relabelling_the_columns_leaves_the_evidence(name):
    order, values = [2, 0, 3, 1], rows()
    moved = table(values[:, order], tuple(NAMES[i] for i in order))
    parents = all_parents(2)
    first = evidence(name, table(values))
    second = evidence(name, moved, order.index(2), parents[:, order])
    tolerance = 1e-8 * np.abs(first).max() + 4 * 2**0.5 * spread_between_starts(name, table(values))
    assert np.abs(first - second).max() < tolerance


@every_score
def test_cells_that_were_set_do_not_count_for_their_node_but_do_for_its_children(name):
    values, mask = rows(), np.zeros((160, 4), dtype=bool)
    mask[:60, 1] = True
    changed = values.copy()
    changed[:60, 1] = np.random.default_rng(1).normal(3.0, 2.0, 60)
    before = Dataset(values, NAMES, mask, Scaling.of(values, "none"))
    after = dataclasses.replace(before, values=changed)
    np.testing.assert_allclose(evidence(name, before, 1), evidence(name, after, 1), rtol=1e-10)
    child = np.array([[True, True, False, False]])
    assert abs(evidence(name, before, 2, child) - evidence(name, after, 2, child))[0] > 1


@every_score
def test_equal_fits_give_equal_results(name):
    np.testing.assert_array_equal(evidence(name, table(rows())), evidence(name, table(rows())))
    score = build(name)
    data, key = table(rows()), jax.random.key(0)
    draws = [score.draw(key, score.prepare(data), GRAPH[None].repeat(3, 0)) for _ in range(2)]
    jax.tree.map(np.testing.assert_array_equal, *draws)


@every_score
def test_the_true_parents_have_the_most_evidence_and_the_best_draws(name, key):
    data, held_out = table(rows()), rows(200, seed=1)
    found = evidence(name, data)
    true = np.array([True, True, False, False])
    assert all(
        found[k] <= found[(all_parents(2) == true).all(axis=1)][0] + 2 for k in range(len(found))
    )
    empty = np.zeros_like(GRAPH)
    of_true, of_none = (log_predictive(name, key, data, g, held_out) for g in (GRAPH, empty))
    assert of_true > of_none + 20


@every_score
def test_draws_predict_what_the_evidence_says(name, key):
    """Evidence is the product of predictive densities: that of new rows is their ratio."""
    if name in TRAINED:
        pytest.skip("its evidence is half predicted, its draws are around the trained network")
    values, fresh = rows(60), rows(4, seed=2)
    score = build(name)
    longer, shorter = table(np.concatenate([values, fresh])), table(values)
    wanted = sum(
        evidence_of_graph(score, longer, node) - evidence_of_graph(score, shorter, node)
        for node in range(4)
    )
    num = 4000
    log_density = densities(score, key, shorter, GRAPH, fresh, num)
    weights = np.exp(log_density - log_density.max())
    error = weights.std() / weights.mean() / num**0.5  # of the log of their mean
    found = logsumexp(log_density) - np.log(num)
    assert error < 0.1, "the test would see nothing"
    assert abs(found - wanted) < 4 * error


@every_score
def test_the_shortcut_for_additions_is_the_plain_evidence(name):
    score = build(name)
    shortcut = getattr(score, "log_evidence_of_additions", None)
    if shortcut is None:
        pytest.skip("every addition is scored on its own")
    stats = score.prepare(table(rows()))
    nodes, parents = np.array([2, 3]), np.array([[True, False, False, False], [False] * 4])
    found = shortcut(stats, nodes, parents)
    for node, base, values in zip(nodes, parents, found, strict=True):
        for added in set(range(4)) - {int(node)} - set(np.flatnonzero(base).tolist()):
            larger = base.copy()
            larger[added] = True
            plain = score.log_evidence(stats, int(node), larger[None])[0]
            assert values[added] == pytest.approx(plain, rel=1e-9)


def evidence_of_graph(score, data, node):
    return score.log_evidence(score.prepare(data), node, GRAPH[:, node][None].astype(bool))[0]


def densities(score, key, data, graph, fresh, num):
    """Log density of all fresh rows together under each draw."""
    params = score.draw(key, score.prepare(data), graph[None].repeat(num, 0))
    scm, none = score.scm(data), jnp.zeros(fresh.shape, bool)
    x, dag = jnp.asarray(fresh, jnp.float32), jnp.asarray(graph, jnp.float32)
    of_draw = jax.jit(jax.vmap(lambda theta: scm.log_prob(theta, dag, x, none).sum()))
    floats = jax.tree.map(as_float32, params)
    return np.asarray(of_draw(floats), np.float64)


def as_float32(leaf):
    leaf = jnp.asarray(leaf)
    return leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def log_predictive(name, key, data, graph, held_out):
    score = build(name)
    return logsumexp(densities(score, key, data, graph, held_out, 50)) - np.log(50)
