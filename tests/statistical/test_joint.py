"""The joint engine against the exact posterior of its own linear model, where that is known."""

import dataclasses

import jax
import numpy as np
import pytest

from bayesdag.data import Dataset
from bayesdag.methods.exact import Exact
from bayesdag.methods.joint import Joint
from bayesdag.scores.linear_gaussian import LinearGaussian
from tests.statistical import kit

pytestmark = pytest.mark.slow


def weak_rows(seed: int) -> Dataset:
    """Few rows of three columns: every graph keeps some probability."""
    rng = np.random.default_rng(seed)
    weights = np.array([[0, 0.6, 0], [0, 0, 0.5], [0, 0, 0]])
    return Dataset(rng.normal(size=(25, 3)) @ np.linalg.inv(np.eye(3) - weights), ("a", "b", "c"))


def test_swaps_and_flips_reach_the_exact_posterior_where_chains_can_mix(key, seed):
    data = weak_rows(seed)
    method = dataclasses.replace(
        Joint.PRESETS["quick"],
        num_chains=64,
        num_warmup=2000,
        num_samples=100,
        thinning=20,
    )
    (posterior,) = method.fit_many(key[None], [data], kit.no_knowledge(data))
    truth = kit.truth_of(Exact(LinearGaussian()), data)
    by_chain = posterior.graphs.mean(axis=1)
    error = by_chain.std(axis=0) / len(by_chain) ** 0.5
    # A constant step leaves a discretisation error of its own: two percent are allowed for it.
    assert np.all(np.abs(by_chain.mean(axis=0) - truth.edge) < 5 * error + 0.02)
    assert jax.tree.leaves(posterior.params)[0].shape[:2] == (64, 100)
