"""Averages over methods: each counts the same, and disagreement stays open."""

import dataclasses

import jax
import numpy as np
import pytest

from bayesdag import fit
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.averaged import Averaged
from bayesdag.methods.empty import Empty
from bayesdag.methods.exact import Exact
from tests.toys import toy_frame


class Sure(Empty):
    """Always the same edge."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__()
        object.__setattr__(self, "edge", (first, second))

    def __call__(self, key, data, knowledge, monitor):
        found = super().__call__(key, data, knowledge, monitor)
        graphs = np.zeros_like(found.graphs)
        graphs[..., self.edge[0], self.edge[1]] = 1  # pyright: ignore
        return dataclasses.replace(found, graphs=graphs)


def test_where_methods_disagree_the_average_is_open():
    data = Dataset(np.random.default_rng(0).normal(size=(50, 2)), ("a", "b"))
    found = Averaged((Sure(0, 1), Sure(1, 0), Sure(0, 1), Sure(0, 1)))
    free = Constraints.free(data.names)
    edge = found(jax.random.key(0), data, free, None).edge_matrix()
    assert (edge[0, 1], edge[1, 0]) == pytest.approx((0.75, 0.25))


def test_the_average_says_of_what_it_is_one():
    methods = (Exact(num_samples=50), Exact(num_samples=50, order_modular=False))
    found = fit(toy_frame(), Averaged(methods))
    alone = [fit(toy_frame(), method).edge_matrix() for method in methods]
    np.testing.assert_allclose(found.edge_matrix(), np.mean(alone, axis=0), atol=1e-9)
    assert "2 posteriors" in found.provenance["notes"][0]


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(InputError, match="two methods or more, not 1"):
        Averaged((Empty(),))
    with pytest.raises(InputError, match="different numbers of chains and draws"):
        fit(toy_frame(), Averaged((Exact(num_samples=50), Exact(num_samples=60))))
