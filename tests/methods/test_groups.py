"""Tables put together from several: what is certain without groups is doubted with them."""

import dataclasses

import jax
import numpy as np
import pytest

import bayesdag
from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods.collapsed import Collapsed

NAMES = ("a", "b", "c")
QUICK = Collapsed.PRESETS["quick"]


def pooled(apart: float = 6.0) -> Dataset:
    """Independent columns, two of which have another mean in a third of the rows."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(600, 3))
    values[:200, :2] += apart
    return Dataset(rng.permutation(values), NAMES)


def fitted(data: Dataset, knowledge: Constraints | None = None) -> bayesdag.Posterior:
    return QUICK(jax.random.key(0), data, knowledge or Constraints.free(NAMES), None)


@pytest.fixture(scope="module")
def hedged() -> bayesdag.Posterior:
    return fitted(pooled())


def test_an_edge_that_groups_explain_is_not_certain(hedged):
    edge = hedged.edge_matrix()
    # Without groups the two are dependent beyond doubt; with them they are not at all.
    assert edge[0, 1] + edge[1, 0] == pytest.approx(0.5, abs=0.1)


def test_the_result_says_so(hedged):
    assert sorted(hedged.provenance["groups"]["sizes"]) == [200, 400]
    assert hedged.provenance["groups"]["gain"] > 100
    assert "groups that nobody marked (400, 200 rows" in hedged.provenance["notes"][0]


def test_draws_are_as_many_as_asked_for_and_of_the_variables_alone(hedged):
    assert hedged.graphs.shape == (QUICK.num_chains, QUICK.num_samples, 3, 3)
    assert hedged.names == NAMES
    # In turn: every stretch of a chain has draws of both kinds.
    adjacent = hedged.graphs[:, :, 0, 1] | hedged.graphs[:, :, 1, 0]
    np.testing.assert_allclose(adjacent[:, :100].mean(axis=1), 0.5, atol=0.1)
    assert np.isfinite(hedged.stats["log_joint"]).all()


def test_functions_belong_to_the_graphs(hedged):
    weights = hedged.params["mechanism"]["weights"]
    assert ((np.asarray(weights) != 0) == (hedged.graphs != 0)).all()


def test_rows_of_one_group_stay_together():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(600, 3)) @ np.array([[1.0, 1.0, 0], [0, 1, 1], [0, 0, 1]])
    assert "groups" not in fitted(Dataset(values, NAMES)).provenance


def test_groups_are_allowed_for_unless_told():
    method = dataclasses.replace(QUICK, unmarked_groups=False)
    found = method(jax.random.key(0), pooled(), Constraints.free(NAMES), None)
    assert "groups" not in found.provenance
    assert found.edge_matrix()[[0, 1], [1, 0]].sum() > 0.95


def test_groups_are_not_guessed_where_they_are_named():
    data = pooled()
    named = Dataset(data.values, NAMES, environment=(data.values[:, 0] > 3).astype(str))
    found = QUICK(jax.random.key(0), named, Constraints.free(named.names, named.contexts), None)
    assert "groups" not in found.provenance


def test_knowledge_holds_in_all_draws():
    knowledge = Knowledge(required=["c -> a"], forbidden=["a -> b"]).bind(NAMES)
    found = fitted(pooled(), knowledge)
    assert "groups" in found.provenance
    assert knowledge.allows(found.graphs).all()


def test_knowledge_of_further_columns():
    knowledge = Knowledge(required=["c -> a"], beliefs=[("a", "b", 0.9)]).bind(NAMES)
    wider = knowledge.with_contexts((*NAMES, "group=2"))
    other = Knowledge(required=["c -> a"], beliefs=[("a", "b", 0.9)]).bind(
        wider.names, np.array([False, False, False, True])
    )
    for name in ("required", "forbidden", "log_odds", "contexts"):
        np.testing.assert_array_equal(getattr(wider, name), getattr(other, name))
    assert wider.kinds == other.kinds
