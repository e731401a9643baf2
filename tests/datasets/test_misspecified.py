import numpy as np
import pytest
from scipy import stats

from bayesdag.datasets.misspecified import KINDS, Misspecified
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError

every = pytest.mark.parametrize("kind", KINDS)


@every
def test_the_graph_is_that_of_the_additive_model_with_the_same_seed(kind):
    twin = Synthetic(num_variables=6, edges_per_node=1, num_train=50, num_test=0)
    found = Misspecified(kind=kind, num_train=50)(3)
    np.testing.assert_array_equal(found.graph, twin(3).graph)
    assert np.isfinite(found.train.values).all()
    assert found.train.hash != twin(3).train.hash


@every
def test_seeds_give_different_rows_and_the_same_seed_the_same(kind):
    make = Misspecified(kind=kind, num_train=50)
    assert make(1).train.hash == make(1).train.hash
    assert make(1).train.hash != make(2).train.hash


def test_lognormal_noise_is_skewed_and_concentrations_are_positive():
    skewed = Misspecified(kind="lognormal noise", num_train=4000, edges_per_node=0)(0)
    assert (stats.skew(skewed.train.values, axis=0) > 1).all()
    assert (Misspecified(kind="kinetics")(0).train.values > 0).all()


def test_an_unknown_kind_is_refused_with_the_list():
    with pytest.raises(InputError, match="no kind is called 'odd'; there are: growing scatter"):
        Misspecified(kind="odd")
