"""What environments tell a fit: targets, directions, and what pooling would have got wrong."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest

from bayesdag import InputError, KnowledgeError, extend, fit, fitting, log_scores, read
from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.methods.joint import Joint
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.uniform import Uniform
from bayesdag.scores.bge import BGe
from bayesdag.sgmcmc import chains, dagspace
from tests.statistical import kit

QUICK = Collapsed.PRESETS["quick"]
LINEAR = pytest.mark.parametrize("method", [Exact(), QUICK], ids=["exact", "collapsed"])
both = pytest.mark.parametrize("reading", [True, False], ids=["order", "graph"])


def few_rows(seed: int, num_variables: int = 3) -> Dataset:
    """So few rows that every graph counts; three environments, two of them compared."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(18, num_variables))
    labels = np.repeat(["a", "b", "c"], 6)
    values[:, 0] += labels == "b"
    values[:, -1] += values[:, 0]
    return Dataset(values, tuple("xyzuv"[:num_variables]), environment={"site": labels})


def free(data: Dataset) -> Constraints:
    return Constraints.free(data.names, data.contexts)


@both
@pytest.mark.parametrize("prior", [Uniform(), DensityGrid()], ids=repr)
def test_exact_marginals_are_those_of_enumeration(prior, reading, key, seed):
    """The enumeration counts orders of the variables, and knows nothing of prefixes."""
    data = few_rows(seed)
    exact = Exact(prior=prior, order_modular=reading, num_samples=1)
    truth = kit.truth_of(exact, data, free(data))
    posterior = exact(key, data, free(data), None)
    np.testing.assert_allclose(posterior.marginals["edge"], truth.edge, atol=1e-8)
    np.testing.assert_allclose(posterior.marginals["ancestor"], truth.ancestor, atol=1e-8)


@both
def test_collapsed_draws_are_those_of_enumeration(reading, key, seed):
    data = few_rows(3)
    method = dataclasses.replace(
        QUICK, order_modular=reading, num_samples=2000, num_ladders=40, num_chains=2
    )
    truth = kit.truth_of(kit.same_model(method), data, free(data))
    found = method(key, data, free(data), None)
    assert np.abs(found.edge_matrix() - truth.edge).max() < 0.03


@both
def test_contexts_do_not_change_what_is_believed_of_the_variables(reading, key):
    """A context that acts on nothing for sure leaves the posterior of the rest as it was."""
    with_it = few_rows(5)
    edges = [(c, v) for c in with_it.names[3:] for v in with_it.names[:3]]
    silent = Knowledge(forbidden=edges).bind(with_it.names, with_it.contexts)
    without = Dataset(with_it.values[:, :3], with_it.names[:3])
    exact = Exact(prior=Uniform(), order_modular=reading, num_samples=1)
    found = exact(key, with_it, silent, None).marginals["edge"][:3, :3]
    alone = exact(key, without, free(without), None).marginals["edge"]
    np.testing.assert_allclose(found, alone, atol=1e-10)


def test_a_family_of_a_context_has_no_evidence():
    data = few_rows(0)
    nobody = np.zeros((1, data.num_variables), dtype=bool)
    assert BGe().log_evidence(BGe().prepare(data), 4, nobody) == pytest.approx(0, abs=1e-12)


def cells(num_rows: int = 300, seed: int = 0, set_y: np.ndarray | None = None) -> pd.DataFrame:
    """x -> y -> z; a drug shifts x, heat shifts z; in some rows y is set."""
    rng = np.random.default_rng(seed)
    condition = rng.choice(["control", "drug", "heat"], num_rows, p=[0.5, 0.25, 0.25])
    x = rng.normal(size=num_rows) + 2.0 * (condition == "drug")
    y = 0.8 * x + rng.normal(size=num_rows)
    y = y if set_y is None else np.where(set_y, rng.normal(0, 3, num_rows), y)
    z = rng.normal(size=num_rows) - 0.7 * y + 2.0 * (condition == "heat")
    return pd.DataFrame({"z": z, "y": y, "x": x, "condition": condition})


@LINEAR
def test_every_environment_is_found_to_act_on_its_targets(method):
    posterior = fit(cells(), method, environment="condition")
    found = posterior.environment_targets(with_error=True)
    likely = found[found["probability"] > 0.5]
    assert set(zip(likely["label"], likely["target"], strict=True)) == {
        ("drug", "x"),
        ("heat", "z"),
    }
    assert set(likely["compared with"]) == {"control"}
    assert np.asarray(likely["probability"]).min() > 0.99
    # The drug reaches z through y, heat reaches nothing else.
    reached = found.set_index(["label", "target"])["at all"].to_dict()
    assert reached["drug", "z"] > 0.99
    assert reached["heat", "y"] < 0.2
    # The variables' own table is theirs alone.
    edges = posterior.edge_probabilities()
    assert list(edges.columns) == list(edges.index) == ["z", "y", "x"]
    assert edges.loc["x", "y"] > 0.9
    assert edges.loc["y", "z"] > 0.9
    assert set(posterior.edge_table()["source"]) == {"x", "y", "z"}


@LINEAR
def test_an_environment_orients_what_is_exchangeable_without_it(method):
    """Linear Gaussian pairs have no direction; a shift that the effect follows gives them one."""
    rng = np.random.default_rng(1)
    shifted = np.arange(300) % 2 == 1
    x = rng.normal(size=300) + 1.5 * shifted
    y = x + rng.normal(size=300)
    table = pd.DataFrame({"y": y, "x": x})
    pooled = fit(table, method).edge_probabilities()
    assert pooled.loc["x", "y"] == pytest.approx(0.5, abs=0.1)
    oriented = fit(table.assign(shifted=shifted), method, environment="shifted")
    assert oriented.edge_probabilities().loc["x", "y"] > 0.9


@LINEAR
def test_pooling_is_sure_of_an_edge_that_is_not_there_and_the_column_is_not(method):
    """An environment shifts two unlinked variables; pooling takes one for a cause of the other."""
    rng = np.random.default_rng(2)
    day = rng.integers(2, size=300)
    cause, y = rng.normal(size=300), rng.normal(size=300) + 2 * day
    x = cause + rng.normal(size=300) + 2 * day
    table = pd.DataFrame({"cause": cause, "x": x, "y": y})
    assert fit(table, method).edge_probabilities().loc["y", "x"] > 0.95
    knowing = fit(table.assign(day=day), method, environment="day").edge_probabilities()
    assert knowing.loc["y", "x"] + knowing.loc["x", "y"] < 0.1
    assert knowing.loc["cause", "x"] > 0.95


def test_interventions_with_known_targets_stay_as_they_are():
    """A cell that was set leaves its mechanism; what differs in the other rows is still found."""
    set_y = np.arange(300) % 5 == 0
    frame, targets = cells(set_y=set_y), np.where(set_y, "y", "")
    data = read(frame.assign(targets=targets), interventions="targets", environment="condition")
    posterior = fit(data, Exact())
    assert posterior.summary["num_rows_with_interventions"] == len(frame) // 5
    found = posterior.environment_targets()
    assert set(found[found["probability"] > 0.9]["target"]) == {"x", "z"}
    assert posterior.edge_probabilities().loc["x", "y"] > 0.99


def test_knowledge_may_name_what_environments_act_on():
    known = {"required": ["condition=drug -> y"], "forbidden": ["condition=heat -> x"]}
    posterior = fit(cells(), Exact(), environment="condition", knowledge=known)
    table = posterior.environment_targets().set_index(["label", "target"])
    found = table["probability"].to_dict()
    assert found["drug", "y"] == pytest.approx(1)
    assert found["heat", "x"] == 0


def test_context_nodes_are_not_checked_and_may_be_suspects():
    """Noise that grows in one environment is a misfit of the variable, named with the reason."""
    rng = np.random.default_rng(4)
    hot = np.arange(500) % 2
    x = rng.normal(size=500) * np.where(hot, 4.0, 1.0)
    frame = pd.DataFrame({"x": x, "y": rng.normal(size=500), "hot": hot})
    checked = fit(frame, Exact(), environment="hot").checked
    assert [one.variable for one in checked.variables] == ["x", "y"]
    (warning,) = [words for words in checked.warnings if "depend" in words]
    assert "x: the size of residuals depends on hot=1" in warning
    assert "the noise differs between environments" in warning


def test_a_fit_goes_on_without_being_told_its_environments_again():
    frame, method = cells(), Exact(num_samples=40)
    shorter = fit(frame, method, environment="condition=drug", keep_state=True)
    longer = extend(shorter, frame, 10)
    whole = fit(frame, dataclasses.replace(method, num_samples=50), environment="condition=drug")
    np.testing.assert_array_equal(longer.graphs, whole.graphs)
    assert longer.provenance["environments"] == [{"column": "condition", "reference": "drug"}]
    with pytest.raises(InputError, match="not the data"):
        extend(shorter, frame.assign(condition=frame["condition"].to_numpy()[::-1]), 10)


def test_the_true_graph_is_scored_with_the_targets_that_were_found():
    frame = cells()
    posterior = fit(frame, Exact(), environment="condition")
    truth = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    scores = log_scores(posterior, frame, truth)
    assert scores["given graph"] == pytest.approx(scores["draws"])


def test_methods_that_do_not_know_environments_refuse_them_in_words():
    @dataclasses.dataclass(frozen=True)
    class Unaware(Exact):
        """A method from before there were environments."""

        supported_constraints = frozenset({"required", "forbidden", "beliefs"})

    data = read(cells(), environment="condition")
    with pytest.raises(KnowledgeError, match="does not support environments; .*collapsed"):
        fitting.check(Unaware(), data, free(data))


def test_potentials_of_contexts_lie_above_those_of_variables():
    data = few_rows(0)
    support = chains.context([data], free(data)).support
    coordinates = jax.random.normal(jax.random.key(0), (50, data.num_variables))
    lifted, _ = jax.vmap(lambda p: dagspace.lift(p, support, 1.0))(coordinates)
    lifted = np.asarray(lifted)
    assert (lifted[:, 3:].min(axis=1) > lifted[:, :3].max(axis=1)).all()
    assert "environments" in Joint().supported_constraints
