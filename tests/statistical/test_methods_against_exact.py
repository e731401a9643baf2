"""Every method with a score and a prior of its own, against the exact posterior of both."""

import dataclasses

import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.knowledge import Knowledge
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.uniform import Uniform
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian
from tests.statistical import kit

NAMES = ("a", "b", "c", "d", "e")
MODEL = {"score", "prior", "order_modular"}


def has_a_model(name: str) -> bool:
    fields = {field.name for field in dataclasses.fields(plugins.load("methods", name))}
    return fields >= MODEL


every_method = pytest.mark.parametrize(
    "name", [name for name in plugins.names("methods") if has_a_model(name)]
)
every_model = pytest.mark.parametrize(
    "model",
    [
        Exact(BGe(), DensityGrid(), order_modular=True),
        Exact(BGe(), Uniform(), order_modular=False),
        Exact(LinearGaussian(), DensityGrid(), order_modular=True),
    ],
    ids=["BGe, order", "BGe, graph", "linear, order"],
)


def weak_evidence(seed: int) -> Dataset:
    """Few rows of five columns: thousands of graphs keep some probability."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((5, 5)) < 0.6, 1) * rng.normal(size=(5, 5))
    values = rng.normal(size=(40, 5)) @ np.linalg.inv(np.eye(5) - weights)
    return Dataset(values, NAMES)


@pytest.mark.slow
@every_method
@every_model
@pytest.mark.parametrize("knows", [False, True], ids=["free", "constrained"])
def test_draws_come_from_the_exact_posterior(name, model, knows, key, seed):
    data = weak_evidence(seed)
    said = Knowledge(forbidden=(("a", "b"),), beliefs=(("c", "b", 0.9),)) if knows else Knowledge()
    constraints = said.bind(NAMES)
    own = {field: getattr(model, field) for field in MODEL}
    method = plugins.load("methods", name)(**own, num_samples=2000)
    posterior = method(key, data, constraints, None)
    truth = kit.truth_of(kit.same_model(method), data, constraints)
    # Half of the effective number of the weights allows for correlated draws.
    effective = 1 / (posterior.weights**2).sum()
    num = int(effective if posterior.num_chains == 1 else effective / 2)
    rng = np.random.default_rng(seed)
    verdict = kit.judge(rng, truth, posterior.graphs, posterior.weights, num)
    assert np.all(np.array(verdict.found) < np.array(verdict.limit)), verdict


@pytest.mark.slow
def test_a_method_with_another_prior_is_noticed(key, seed):
    data = weak_evidence(seed)
    posterior = Exact(num_samples=2000)(key, data, kit.no_knowledge(data), None)
    truth = kit.truth_of(Exact(prior=Uniform()), data)
    verdict = kit.judge(np.random.default_rng(seed), truth, posterior.graphs)
    assert verdict.found.total_variation > verdict.limit.total_variation
    assert verdict.found.mmd > verdict.limit.mmd
