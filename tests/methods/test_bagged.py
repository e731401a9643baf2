"""The bagged posterior: every bag counts, and what the rows leave open stays open."""

import dataclasses

import jax
import numpy as np
import pytest

from bayesdag import fit, read
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.empty import Empty
from bayesdag.methods.exact import Exact
from tests.toys import toy_frame

SMALL = Bagged(Exact(num_samples=50), num_bags=6)


def test_the_result_is_the_mean_over_the_bags():
    found = fit(toy_frame(), SMALL, seed=1)
    assert found.graphs.shape[:2] == (6, 50)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1 / 6)
    assert "6 posteriors" in found.provenance["notes"][0]
    other = fit(toy_frame(), SMALL, seed=2)
    assert abs(found.edge_matrix() - other.edge_matrix()).max() > 0  # other bags


def test_bags_hold_rows_of_the_data_with_their_masks_in_the_units_of_all():
    mask = np.zeros((300, 4), dtype=bool)
    mask[:100, 2] = True
    data = dataclasses.replace(read(toy_frame()), interventions=mask)
    rows = np.array([5, 5, 200])
    bag = data.with_rows(rows)
    np.testing.assert_array_equal(bag.values, data.values[rows])
    np.testing.assert_array_equal(bag.interventions, mask[rows])
    assert bag.scaling == data.scaling


def test_the_summary_is_that_of_all_rows():
    found = fit(toy_frame(), SMALL, seed=1)
    assert found.summary == read(toy_frame()).summary()


class Sure(Empty):
    """A method that is sure of the direction which the mean of a column happens to favour."""

    def __call__(self, key, data, knowledge, monitor):
        found = super().__call__(key, data, knowledge, monitor)
        graphs = np.zeros_like(found.graphs)
        first, second = (0, 1) if data.values[:, 0].mean() > 0 else (1, 0)
        graphs[..., first, second] = 1
        return dataclasses.replace(found, graphs=graphs)


def test_a_method_that_other_rows_would_sway_is_not_sure_in_bags():
    values = np.random.default_rng(0).normal(size=(200, 2))
    values[:, 0] -= values[:, 0].mean() - 0.01
    data = Dataset(values, ("a", "b"))
    key, free = jax.random.key(0), Constraints.free(data.names)
    assert Sure()(key, data, free, None).edge_matrix()[0, 1] == 1
    bagged = Bagged(Sure(), num_bags=30)(key, data, free, None)
    assert 0.2 < bagged.edge_matrix()[0, 1] < 0.9


def test_one_bag_is_refused():
    with pytest.raises(InputError, match="num_bags is 1"):
        Bagged(num_bags=1)
