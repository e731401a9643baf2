"""Structure priors against enumeration: they sum to one and mean what they say."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesdag import graphs, plugins
from bayesdag.errors import InputError
from bayesdag.model.priors._normaliser import log_normaliser
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.model.priors.fair import FairInDegree
from bayesdag.model.priors.uniform import Uniform
from bayesdag.types import StructurePrior

PRIORS = [Uniform(), ErdosRenyi(0.2), ErdosRenyi(), FairInDegree(), DensityGrid(), DensityGrid(3)]
every_prior = pytest.mark.parametrize("prior", PRIORS, ids=repr)
both = pytest.mark.parametrize("order_modular", [True, False], ids=["order", "graph"])


def num_orders(dags):
    """In how many orders each DAG's parents come before their children: try them all."""
    backward = np.tril_indices(dags.shape[-1])
    orders = map(list, permutations(range(dags.shape[-1])))
    return np.sum(
        [~dags[:, order][:, :, order][:, *backward].any(axis=1) for order in orders], axis=0
    )


def log_prior(prior, dags, order_modular):
    """Log probability of each DAG, the orders it agrees with added up."""
    d = dags.shape[-1]
    log_weights, penalty = prior.components(d, order_modular)
    local = penalty[:, dags.sum(axis=1)].sum(axis=-1)
    result: np.ndarray = np.asarray(logsumexp(log_weights[:, None] + local, axis=0))
    if order_modular:
        result += np.log(num_orders(dags))
    return result


@every_prior
@both
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_it_sums_to_one_over_all_dags(prior, order_modular, d):
    total = logsumexp(log_prior(prior, graphs.all_dags(d), order_modular))
    assert total == pytest.approx(0, abs=1e-10)


def test_the_number_of_dags_is_that_of_the_literature():
    # Robinson (1973); OEIS A003024.
    counts = [1, 3, 25, 543, 29_281, 3_781_503, 1_138_779_265, 783_702_329_343]
    found = [log_normaliser(np.zeros((1, d)), False)[0] for d in range(1, 9)]
    np.testing.assert_allclose(found, np.log(counts), rtol=1e-13)


def test_rare_edges_do_not_cancel():
    # To first order in the odds, a DAG has no edge or one of d (d - 1).
    d, odds = 60, 1e-9
    total = log_normaliser(np.log(odds) * np.arange(d)[None, :], False)[0]
    assert total == pytest.approx(d * (d - 1) * odds, rel=1e-5)


def test_given_an_order_edges_are_independent_with_the_stated_probability():
    dags, prior = graphs.all_dags(4), ErdosRenyi(0.3)
    along = ~dags[:, *np.tril_indices(4)].any(axis=1)  # agree with the order 0, 1, 2, 3
    log_weights, penalty = prior.components(4)
    weight = np.exp(penalty[0][dags[along].sum(axis=1)].sum(axis=1))
    edges = np.tensordot(weight / weight.sum(), dags[along], 1)
    np.testing.assert_allclose(edges, np.triu(np.full((4, 4), 0.3), 1), atol=1e-12)
    assert np.exp(log_weights[0]) * weight.sum() == pytest.approx(1 / 24)


@both
def test_uniform_is_uniform(order_modular):
    dags = graphs.all_dags(4)
    orders = num_orders(dags)
    expected = orders / orders.sum() if order_modular else np.full(543, 1 / 543)
    np.testing.assert_allclose(np.exp(log_prior(Uniform(), dags, order_modular)), expected)


def test_expected_parents_are_met():
    dags, prior = graphs.all_dags(5), ErdosRenyi(expected_parents=0.8)
    probability = np.exp(log_prior(prior, dags, order_modular=True))
    assert probability @ dags.sum(axis=(1, 2)) / 5 == pytest.approx(0.8)


def test_fair_in_degrees_make_every_number_of_parents_equal():
    penalty = FairInDegree().components(6)[1][0]
    sets = [1, 5, 10, 10, 5, 1]
    np.testing.assert_allclose(np.exp(penalty) * sets, 1)


def test_the_grid_runs_from_sparse_graphs_to_no_preference():
    log_weights, penalty = DensityGrid(16).components(20)
    assert penalty.shape == (16, 20)
    assert penalty[0, 1] == pytest.approx(np.log(1 / 39))
    assert penalty[-1, 1] == pytest.approx(0)
    assert np.all(np.diff(penalty[:, 1]) > 0)
    assert np.all(np.isfinite(log_weights))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probability": 1.5}, "between 0 and 1, not 1.5"),
        ({"probability": 0.1, "expected_parents": 2.0}, "not both"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        ErdosRenyi(**settings)
    with pytest.raises(InputError, match="0 densities"):
        DensityGrid(0)


def test_more_parents_than_there_can_be_are_refused():
    with pytest.raises(InputError, match="between 0 and 1.5"):
        ErdosRenyi(expected_parents=2.0).components(4)


@pytest.mark.parametrize("name", plugins.names("priors"))
def test_every_named_prior_can_be_built_and_described(name):
    prior = plugins.load("priors", name)()
    assert isinstance(prior, StructurePrior)
    assert prior.describe()


def test_an_unknown_prior_is_refused_with_the_list():
    with pytest.raises(InputError, match="'flat'; there are: density"):
        plugins.load("priors", "flat")
