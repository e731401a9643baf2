"""Questions to a posterior whose rows come from several environments."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from bayesdag import InputError, load, merge
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import FileFormatError
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from tests.posteriors import STATED, linear

LABELS = np.array(["a"] * 50 + ["b"] * 30 + ["c"] * 20)
NAMES = ("x", "y", "site=b", "site=c")
# x -> y, and both environments act on y.
GRAPH = np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], dtype=np.int8)
SD = 0.1


@dataclasses.dataclass(frozen=True)
class Interaction:
    """y = x in environment b, 3 in c, and 0 in a."""

    def init(self, key, d):
        del key
        return {"unused": jnp.zeros(d)}

    def __call__(self, params, x, graph):
        columns = [self.node(params, x, graph[:, i], i) for i in range(x.shape[1])]
        return jnp.stack(columns, axis=1)

    def node(self, params, x, parents, i):
        del params, parents
        return jnp.where(i == 1, x[:, 0] * x[:, 2] + 3 * x[:, 3], 0.0)


def data() -> Dataset:
    """Rows in units of their own, so that the functions above are readable."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = x * (LABELS == "b") + 3 * (LABELS == "c") + SD * rng.normal(size=100)
    whole = Dataset(np.column_stack([x, y]), NAMES[:2], environment={"site": LABELS})
    return dataclasses.replace(whole, scaling=Scaling.of(whole.values, "none"))


def nonlinear(num_draws: int = 3) -> Posterior:
    drawn, rows = (1, num_draws), data()
    log_scale = np.broadcast_to(np.log([1.0, SD, 5.0, 5.0]), (*drawn, 4)).astype(np.float32)
    return from_draws(
        np.broadcast_to(GRAPH, (*drawn, 4, 4)),
        SCM(Interaction(), Gaussian(), rows.scaling),
        {"mechanism": {"unused": np.zeros((*drawn, 4))}, "noise": {"log_scale": log_scale}},
        rows,
        log_joint=np.zeros(drawn),
        provenance=STATED,
    )


def straight() -> Posterior:
    """Linear functions, and a second graph in which c acts on x."""
    other = GRAPH.copy()
    other[3] = [1, 0, 0, 0]
    graphs = np.stack([GRAPH, GRAPH, GRAPH, other])[None]
    return linear(graphs, data())


def test_an_effect_averages_over_environments_as_often_as_they_were_seen():
    found = nonlinear().effect("x", "y", (0, 1), num_rows=4000)
    assert found.mean == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(("given", "effect"), [({"site=b": 1}, 1.0), ({"site=b": 0}, 0.0)])
def test_an_effect_may_be_asked_for_in_one_environment(given, effect):
    found = nonlinear().effect("x", "y", (0, 1), given=given, num_rows=100)
    assert found.mean == pytest.approx(effect, abs=1e-5)


def test_the_effect_of_an_environment_is_that_of_coming_from_it_and_not_from_the_reference():
    posterior = nonlinear()
    assert posterior.effect("site=c", "y").mean == pytest.approx(3, abs=1e-4)
    assert posterior.effect("site=c", "y", (1, 0)).mean == pytest.approx(-3, abs=1e-4)
    # Units with x = 2: in b they have y = 2.
    given = posterior.effect("site=b", "y", given={"x": 2.0})
    assert given.mean == pytest.approx(2, abs=1e-4)


def test_a_linear_effect_of_an_environment_needs_no_rows():
    found = straight().effect("site=c", "y")
    rows, labels = data().values, LABELS
    assert found.mean == pytest.approx(
        0.75 * (rows[labels == "c", 1].mean() - rows[labels == "a", 1].mean()), abs=0.5
    )


def test_rows_come_from_environments_as_often_as_in_the_data():
    rows = nonlinear().sample(4000, seed=1)
    assert list(rows.columns) == list(NAMES)
    x, y, b, c = rows.to_numpy().T
    assert set(np.unique([b, c])) == {0.0, 1.0}
    assert (b + c).max() == 1
    assert b.mean() == pytest.approx(0.3, abs=0.03)
    assert c.mean() == pytest.approx(0.2, abs=0.03)
    np.testing.assert_allclose(y[b == 1], x[b == 1], atol=6 * SD)


def test_rows_may_all_come_from_one_environment():
    posterior = nonlinear()
    _, y, b, c = posterior.sample(200, do={"site=c": 1}).to_numpy().T
    assert c.all()
    assert not b.any()
    assert y.mean() == pytest.approx(3, abs=0.1)
    assert not posterior.sample(200, do={"site=c": 0}).to_numpy()[:, 2:].any()


def test_rows_would_have_been_others_had_they_come_from_elsewhere():
    table = pd.DataFrame({"x": [2.0, 1.0], "y": [2.1, 0.2], "site": ["b", "a"]})
    found = nonlinear().counterfactual(table, do={"site=c": 1})
    np.testing.assert_allclose(found.mean()["y"], [3.1, 3.2], atol=1e-4)
    with pytest.raises(InputError, match="no environment of 'site' is called 'q'"):
        nonlinear().counterfactual(table.assign(site="q"), do={"site=c": 1})


REFUSED = {
    "half an environment": (lambda p: p.effect("site=b", "y", (0, 0.5)), "cannot be 0.5"),
    "nothing acts on it": (lambda p: p.effect("x", "site=b"), "on which nothing acts"),
    "two at once": (lambda p: p.sample(5, do={"site=b": 1, "site=c": 1}), "one environment of"),
    "a sibling is given": (
        lambda p: p.effect("site=b", "y", given={"site=c": 1}),
        "environments of one column",
    ),
    "an experiment": (lambda p: p.next_experiment(["site=b"]), "experiments set variables"),
}


@pytest.mark.parametrize(("ask", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_asked_of_environments_is_refused_in_words(ask, words):
    with pytest.raises(InputError, match=words):
        ask(straight())


def test_experiments_are_planned_for_variables():
    posterior = straight()
    ranked = posterior.next_experiment(num_draws=4, num_experiments=4, num_rows=3)
    # The graphs differ in what environments act on, and that is not the question.
    assert not ranked["gain"].to_numpy().any()
    assert set(ranked["set"]) == {"x", "y", "(only observe)"}


def test_targets_are_ranked_and_edges_of_variables_are_listed_apart():
    posterior = straight()
    targets = posterior.environment_targets()
    assert targets.columns.tolist() == [
        "environment",
        "label",
        "compared with",
        "target",
        "probability",
        "at all",
    ]
    first = targets.iloc[0]
    assert (first["label"], first["target"], first["probability"]) == ("b", "y", 1.0)
    of_c = targets[targets["label"] == "c"].set_index("target")
    assert of_c.loc["y", "probability"] == pytest.approx(0.75)
    assert of_c.loc["y", "at all"] == pytest.approx(1)  # through x in the fourth draw
    assert set(posterior.edge_table()["source"]) == {"x", "y"}
    assert "site=b" in set(posterior.edge_table(variable="y")["source"])
    assert posterior.edge_probabilities().shape == (2, 2)
    assert "2 variables, 2 compared environments" in repr(posterior)
    assert any("compared with a as a soft intervention" in line for line in posterior.describe())


def test_the_part_that_a_truth_is_held_against_knows_no_environments():
    part = straight().among_variables()
    assert part.names == ("x", "y")
    assert part.graphs.shape[2:] == (2, 2)
    assert not part.contexts
    np.testing.assert_array_equal(part.edge_matrix(), [[0, 1], [0, 0]])


def test_environments_survive_a_file(tmp_path):
    posterior = straight()
    posterior.save(tmp_path / "kept.nc")
    again = load(tmp_path / "kept.nc")
    assert again.contexts.environments == posterior.contexts.environments
    pd.testing.assert_frame_equal(again.environment_targets(), posterior.environment_targets())
    pd.testing.assert_frame_equal(again.sample(20), posterior.sample(20))


DAMAGED = {
    "other columns": {"environments": [{"column": "q", "reference": "a", "others": ["b"]}]},
    "no labels": {"environments": [{"column": "site"}]},
    "no mapping": {"environments": [3]},
    "half a row": {"environment_patterns": [[0, 0], [1]]},
    "other rows": {"environment_patterns": [[0, 0, 0]]},
    "no zeros and ones": {"environment_patterns": [[0, 0], [0, 1], [1, 7]]},
    "negative": {"environment_counts": [-1, 1, 1]},
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_file_whose_environments_do_not_fit_is_refused(damage, tmp_path):
    posterior = straight()
    dataclasses.replace(posterior, summary=posterior.summary | damage).save(tmp_path / "bad.nc")
    with pytest.raises(FileFormatError, match="damaged"):
        load(tmp_path / "bad.nc")


def test_merged_runs_keep_their_environments():
    parts = [straight(), dataclasses.replace(straight())]
    stated = {"environments": [{"column": "site", "reference": "a"}]}
    seeded = [
        dataclasses.replace(part, provenance=STATED | stated | {"seed": seed})
        for seed, part in enumerate(parts)
    ]
    merged = merge(seeded)
    assert merged.contexts.environments == parts[0].contexts.environments
    assert merged.provenance["environments"] == stated["environments"]


@pytest.mark.parametrize(("targets", "compelled"), [([0], 1.0), ([0, 1], 0.0), ([], 0.0)])
def test_an_environment_compels_the_direction_that_its_target_tells(targets, compelled):
    """site=b -> x -> y cannot be turned round: nothing acts on where rows come from."""
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[0, 1] = 1
    graph[2, targets] = 1
    classes = linear(graph[None, None], data()).equivalence_classes()
    assert classes.compelled().loc["x", "y"] == compelled
    for target in targets:
        assert classes.compelled_matrix()[2, target] == 1
