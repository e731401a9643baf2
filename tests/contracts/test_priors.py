"""What every structure prior promises: it sums to one over graphs, whatever they are called."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesdag import graphs, plugins
from bayesdag.types import StructurePrior

ALL = [plugins.load("priors", name)() for name in plugins.names("priors")]
every_prior = pytest.mark.parametrize("prior", ALL, ids=plugins.names("priors"))
both = pytest.mark.parametrize("order_modular", [True, False], ids=["order", "graph"])


def log_prior(prior, dags, order_modular):
    """Log probability of each DAG; under an order-modular prior, of all its orders together."""
    log_weights, penalty = prior.components(dags.shape[-1], order_modular)
    local = penalty[:, dags.sum(axis=1)].sum(axis=-1)
    result = np.asarray(logsumexp(log_weights[:, None] + local, axis=0))
    return result + np.log(graphs.num_linear_extensions_each(dags)) if order_modular else result


@every_prior
def test_it_is_a_structure_prior_and_says_what_it_is(prior):
    assert isinstance(prior, StructurePrior)
    assert prior.describe()


@every_prior
@both
@pytest.mark.parametrize("d", [3, 4])
def test_it_sums_to_one_over_all_dags(prior, order_modular, d):
    total = logsumexp(log_prior(prior, graphs.all_dags(d), order_modular))
    assert total == pytest.approx(0, abs=1e-10)


@every_prior
@both
def test_relabelling_the_nodes_leaves_the_probability(prior, order_modular):
    dags, order = graphs.all_dags(4), np.array([2, 0, 3, 1])
    moved = dags[:, order][:, :, order]
    first, second = (log_prior(prior, some, order_modular) for some in (dags, moved))
    np.testing.assert_allclose(first, second, atol=1e-12)


@every_prior
def test_equal_settings_give_equal_components(prior):
    again = type(prior)()
    for first, second in zip(prior.components(5), again.components(5), strict=True):
        np.testing.assert_array_equal(first, second)


def without_parents(dags, num_contexts):
    """Those in which the last nodes, contexts, have no parents."""
    return dags[~dags[:, :, dags.shape[1] - num_contexts :].any(axis=(1, 2))]


@every_prior
@both
@pytest.mark.parametrize(("d", "num_contexts"), [(4, 1), (4, 2), (3, 2)])
def test_it_sums_to_one_over_the_dags_that_contexts_leave(prior, order_modular, d, num_contexts):
    """So edges that cannot be there are no evidence of few edges."""
    dags, own = without_parents(graphs.all_dags(d), num_contexts), d - num_contexts
    log_weights, penalty = prior.components(d, order_modular, num_contexts)
    local = penalty[:, dags.sum(axis=1)].sum(axis=-1) - num_contexts * penalty[:, :1]
    result = np.asarray(logsumexp(log_weights[:, None] + local, axis=0))
    if order_modular:  # contexts precede all variables: orders of those are what is counted
        result = result + np.log(graphs.num_linear_extensions_each(dags[:, :own, :own]))
    assert logsumexp(result) == pytest.approx(0, abs=1e-10)
