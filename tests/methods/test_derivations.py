"""Nobody is sure about arrows between columns that determine one another."""

import dataclasses
import warnings

import jax
import numpy as np
import pandas as pd
import pytest

import bayesdag
from bayesdag import fit, plugins, read
from bayesdag.errors import BayesdagWarning, InputError, KnowledgeError
from bayesdag.knowledge import Knowledge
from bayesdag.methods import _derivations
from bayesdag.methods.auto import Auto
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.scores.linear_gaussian import LinearGaussian
from tests.tables import EXACT
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS, toy_frame

pytestmark = pytest.mark.filterwarnings("ignore::bayesdag.errors.BayesdagWarning")
SMALL = Collapsed(num_chains=2, num_warmup=30, num_ladders=4, num_starts=2, num_samples=200)
METHODS = {
    "exact": Exact(num_samples=100),
    "exact, other score": Exact(LinearGaussian(), num_samples=100),
    "collapsed": SMALL,
    "auto": dataclasses.replace(Auto.PRESETS["quick"], exact=Exact(num_samples=100)),
}
NEURAL = dataclasses.replace(SMALL_NETWORKS, average_noise_models=False)


def table(name="sum", num_rows=60, seed=0) -> tuple[pd.DataFrame, list[str]]:
    columns, members, _ = EXACT[name](np.random.default_rng(seed), num_rows)
    return pd.DataFrame({k: np.asarray(v, dtype=float) for k, v in columns.items()}), members


def unsure(posterior, members) -> None:
    inside = posterior.edge_probabilities().loc[members, members].to_numpy()
    assert inside.max() < 0.95
    pairs = (inside + inside.T)[np.triu_indices(len(members), k=1)]
    assert inside.max() > 0.05  # the columns do belong together
    assert pairs.min() > 0.05


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name",
    ["sum", "sum, two decimals", "product", "body mass index", "shares", "square"],
)
def test_no_arrow_between_columns_that_determine_one_another_is_sure(name, method):
    frame, members = table(name)
    unsure(fit(frame, METHODS[method]), members)


def test_learned_functions_are_as_unsure():
    frame, members = table("sum", NETWORK_ROWS)
    method = dataclasses.replace(SMALL, score=NEURAL, num_samples=20, max_rounds=1)
    unsure(fit(frame, method), members)


def test_auto_takes_no_relation_for_a_nonlinear_cause():
    for name in ("sum", "product", "body mass index", "square"):
        frame, _ = table(name, 300)
        posterior = fit(frame, METHODS["auto"])
        assert posterior.provenance["chosen"]["plugin"] == "methods/exact", name


def world(num_rows=400, seed=0) -> pd.DataFrame:
    """z -> a, s = a + b, s -> y: what enters the relation, and what leaves it."""
    rng = np.random.default_rng(seed)
    z, b, *noise = rng.normal(size=(4, num_rows))
    a = z + 0.7 * noise[0]
    return pd.DataFrame({"z": z, "a": a, "b": b, "s": a + b, "y": a + b + noise[1]})


def test_arrows_to_and_from_other_columns_are_not_made_certain_by_the_relation():
    """A bound on the evidence inside the set made s -> z, b -> z and y -> a certain."""
    edge = fit(world(), METHODS["exact"]).edge_probabilities()
    wrong = [("s", "z"), ("b", "z"), ("z", "s"), ("y", "a"), ("z", "b"), ("z", "y")]
    assert max(edge.loc[pair] for pair in wrong) < 0.5
    assert edge.loc["z", "a"] + edge.loc["a", "z"] > 0.5
    assert edge.loc["s", "y"] > 0.5


def test_exact_and_collapsed_say_the_same_about_dependent_columns():
    longer = dataclasses.replace(SMALL, num_samples=1000, num_ladders=8)
    exact, sampled = fit(world(80), METHODS["exact"]), fit(world(80), longer)
    error = np.sqrt(np.maximum(exact.edge_matrix() * (1 - exact.edge_matrix()), 0.01) / 300)
    assert np.all(np.abs(exact.edge_matrix() - sampled.edge_matrix()) < 4.5 * error)


def test_the_average_is_that_of_the_cases(key):
    frame, _ = table()
    data = read(frame)
    posterior = fit(data, Exact(num_samples=10))
    cases = [{0: (1, 2)}, {1: (0, 2)}, {2: (0, 1)}]
    free = Knowledge().bind(data.names)
    each = [
        Exact(num_samples=10)(key, data, _derivations.constrained(free, case), None).edge_matrix()
        for case in cases
    ]
    np.testing.assert_allclose(posterior.edge_matrix(), np.mean(each, axis=0), atol=1e-12)
    assert posterior.num_chains == 3


def test_other_columns_have_the_posterior_of_the_table_without_the_computed_one(key):
    """Up to the degrees of freedom of the prior, which count the columns."""
    frame = world(200)
    data, rest = read(frame), read(frame.drop(columns="s"))
    case = _derivations.constrained(Knowledge().bind(data.names), {3: (1, 2)})
    with_it = Exact()(key, data, case, None).edge_probabilities()
    without = Exact()(key, rest, Knowledge().bind(rest.names), None).edge_probabilities()
    kept = list(rest.names)
    difference = (with_it.loc[kept, kept] - without).to_numpy()
    assert np.abs(difference).max() < 0.1
    assert with_it.loc[["a", "b"], "s"].min() == pytest.approx(1)
    assert with_it.loc["s"].max() == 0


def test_knowledge_rules_which_column_is_computed():
    frame, _ = table()
    tiers = {"tiers": [["a", "b"], ["s"]]}
    edge = fit(frame, METHODS["exact"], knowledge=tiers).edge_probabilities()
    assert edge.loc["a", "s"] == pytest.approx(1)
    assert edge.loc["b", "s"] == pytest.approx(1)
    required = {"required": ["s -> a"]}
    edge = fit(frame, METHODS["exact"], knowledge=required).edge_probabilities()
    assert edge.loc["s", "a"] == pytest.approx(1)
    assert edge.loc["b", "a"] < 0.95


def test_knowledge_that_leaves_no_column_to_be_computed_is_refused():
    frame, _ = table()
    nothing = {"forbidden": [(x, y) for x in "abs" for y in "abs" if x != y]}
    with pytest.raises(KnowledgeError, match=r"a, b and s determine.*drop those columns"):
        fit(frame, METHODS["exact"], knowledge=nothing)


def test_the_result_says_what_determines_what_and_keeps_saying_it(tmp_path):
    posterior = fit(table()[0], METHODS["collapsed"])
    provenance = posterior.provenance
    assert provenance["dependences"] == [{"columns": ["a", "b", "s"], "relations": ["s = a + b"]}]
    assert [member["name"] for member in provenance["members"]] == [
        "if a is computed from b and s",
        "if b is computed from a and s",
        "if s is computed from a and b",
    ]
    assert "a, b and s determine one another (s = a + b)" in provenance["notes"][0]
    assert "average over 3 equally probable cases" in provenance["notes"][0]
    posterior.save(tmp_path / "sum.nc")
    assert bayesdag.load(tmp_path / "sum.nc").provenance["notes"] == provenance["notes"]


def test_chains_are_compared_within_a_case_not_between_cases():
    found = fit(table()[0], METHODS["collapsed"]).diagnostics()
    assert [member.num_chains for _, member in found.members] == [2, 2, 2]
    assert found.converged
    bags = Bagged(METHODS["exact"], num_bags=2)
    names = [name for name, _ in fit(table()[0], bags).diagnostics().members]
    assert len(names) == 6
    assert names[0].startswith("if a is computed from b and s, ")


def test_a_table_without_relations_is_fitted_as_before():
    data = read(toy_frame())
    posterior = fit(data, METHODS["exact"], seed=0)
    assert "dependences" not in posterior.provenance
    plain = METHODS["exact"](jax.random.key(0), data, Knowledge().bind(data.names), None)
    np.testing.assert_array_equal(posterior.graphs, plain.graphs)


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_every_method_averages_ignores_or_refuses_such_data(name):
    frame, _ = table()
    how = plugins.load("methods", name)().exact_dependence.value
    if how == "refused":
        with pytest.raises(InputError, match=r"s = a \+ b.*drop one of a, b, s, or use .*exact"):
            fit(frame, name)
    elif how == "ignored":
        posterior = fit(frame, name)
        assert "s = a + b" in posterior.provenance["notes"][0]
        assert "average" not in posterior.provenance["notes"][0]
    else:
        assert how == "averaged"


def test_a_fit_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(read(table()[0]), METHODS["exact"])
    warned = [w for w in caught if issubclass(w.category, BayesdagWarning)]
    assert sum("determine one another" in str(w.message) for w in warned) == 1
