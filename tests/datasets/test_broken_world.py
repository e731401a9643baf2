"""Broken worlds keep their graph, break what they name, and repeat by their seed."""

import numpy as np
import pytest

from bayesdag.datasets._worlds import DEVELOPMENT, FIGURES, WORLDS
from bayesdag.datasets.broken_world import BrokenWorld
from bayesdag.errors import InputError
from bayesdag.graphs import is_acyclic

every = pytest.mark.parametrize("world", WORLDS)


def rows(world: str, seed: int = 1, num_rows: int = 600):
    return BrokenWorld(world, num_variables=8, num_train=num_rows)(seed)


@every
def test_the_graph_is_a_dag_of_the_stated_size_and_rows_are_finite(world):
    found = rows(world)
    assert is_acyclic(found.graph)
    assert found.graph.sum() == 8
    assert found.train.values.shape == (600, 8)
    assert np.isfinite(found.train.values).all()
    assert (found.train.values.std(axis=0) > 0).all()


@every
def test_the_seed_decides_everything(world):
    one, again, other = rows(world), rows(world), rows(world, seed=2)
    np.testing.assert_array_equal(one.train.values, again.train.values)
    assert not np.array_equal(one.train.values, other.train.values)


def test_no_family_is_in_both_halves():
    assert not DEVELOPMENT.keys() & FIGURES.keys()
    assert len(FIGURES) >= len(DEVELOPMENT)


@every
def test_true_neighbours_depend_on_each_other(world):
    """Averaged over data sets, linked pairs are more dependent than unlinked ones."""
    linked, others = [], []
    for seed in range(6):
        found = rows(world, seed)
        size = np.abs(np.corrcoef(np.argsort(np.argsort(found.train.values, axis=0), axis=0).T))
        adjacent = (found.graph + found.graph.T) > 0
        linked.append(size[adjacent].mean())
        others.append(size[~adjacent & ~np.eye(8, dtype=bool)].mean())
    assert np.mean(linked) > np.mean(others) + 0.1


def test_what_is_broken_shows():
    assert all(len(np.unique(c)) < 30 for c in rows("rounded").train.values.T)
    assert min(len(np.unique(c)) for c in rows("discrete").train.values.T) <= 5
    assert rows("mixture").environment is not None
    assert rows("feedback").unknown.any()
    assert rows("hidden_cause").provenance["notes"]["confounded"]
    values = rows("autocorrelated").train.values
    assert np.mean([np.corrcoef(c[1:], c[:-1])[0, 1] for c in values.T]) > 0.4
    tops = [np.mean(c == c.max()) for c in rows("saturated").train.values.T]
    assert min(tops) > 0.02


def test_a_deterministic_node_follows_from_its_parents():
    found = rows("deterministic")
    node = found.provenance["notes"]["deterministic"][0]
    parents = found.train.values[:, found.graph[:, node] != 0]
    order = np.argsort(parents[:, 0])
    if parents.shape[1] == 1:
        assert np.abs(np.diff(found.train.values[order, node])).mean() < 0.1


def test_unknown_worlds_are_refused_with_the_list():
    with pytest.raises(InputError, match=r"no world is called 'flat'.*multiplicative"):
        BrokenWorld("flat")
