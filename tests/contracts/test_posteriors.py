"""Every question can be asked of every method's posterior after loading, as before saving."""

import json
import re

import networkx
import numpy as np
import pytest

from bayesdag import graphs, load, plugins
from bayesdag.posterior import Posterior
from bayesdag.report import effects, page
from tests.contracts.test_methods import fitted
from tests.toys import NAMES, toy_frame


@pytest.fixture(params=plugins.names("methods"))
def fresh(request) -> Posterior:
    return fitted(request.param)


_loaded: dict[str, Posterior] = {}


@pytest.fixture
def posterior(request, fresh, tmp_path) -> Posterior:
    """The posterior from a file; the last test compares its answers with those before saving."""
    name = request.node.callspec.params["fresh"]
    if name not in _loaded:
        fresh.save(tmp_path / "result.nc")
        _loaded[name] = load(tmp_path / "result.nc")
    return _loaded[name]


def test_probabilities_of_the_graph(posterior):
    for question in ("edge", "path", "markov_blanket"):
        value, error = getattr(posterior, f"{question}_probabilities")(with_error=True)
        assert list(value.index) == list(value.columns) == list(NAMES)
        numbers = value.to_numpy()
        assert ((numbers >= -1e-9) & (numbers <= 1 + 1e-9)).all()
        assert (error.to_numpy() >= 0).all()
    assert (posterior.path_probabilities() >= posterior.edge_probabilities() - 0.2).all(axis=None)
    share, error = posterior.probability(networkx.is_directed_acyclic_graph, with_error=True)
    assert share == pytest.approx(1)
    assert error > 0
    assert {"left", "middle", "right", "probability"} <= set(posterior.v_structures().columns)


def test_classes_and_single_graphs(posterior):
    classes = posterior.equivalence_classes()
    assert classes.mass.sum() == pytest.approx(1)
    assert len(classes.table()) == len(classes.mass)
    assert (classes.compelled().to_numpy() <= 1 + 1e-9).all()
    for by in ("frequency", "log_joint"):
        assert networkx.is_directed_acyclic_graph(posterior.most_probable_graph(by))
    assert networkx.is_directed_acyclic_graph(posterior.consensus_graph())
    assert set(posterior.median_graph().nodes) == set(NAMES)
    assert sum(mass for _, mass in posterior.weighted_graphs()) == pytest.approx(1)


def test_adjustment_sets(posterior):
    listed = posterior.adjustment_sets("rain", "price")
    assert listed["probability"].between(0, 1 + 1e-9).all()
    best = listed.loc[0]
    again = posterior.adjustment_probability("rain", "price", best["adjustment set"])
    assert again == pytest.approx(best["probability"])


def test_effects_samples_and_counterfactuals(posterior):
    effect = posterior.effect("rain", "crop", values=(40, 60), num_rows=50)
    assert effect.draws.shape == posterior.weights.shape
    assert np.isfinite(effect.draws).all()
    low, high = effect.hdi()
    assert low <= high
    assert effect.prob_positive + effect.prob_negative <= 1 + 1e-9
    reached = graphs.ancestors(posterior.graphs)[:, :, 0, 2]
    assert effect.prob_no_path == pytest.approx(posterior.weights[~reached].sum())
    json.dumps(effect.summary())
    some = posterior.effect("rain", "crop", values=(40, 60), given={"soil": 2}, num_rows=500)
    assert np.isfinite(some.mean)
    rows = posterior.sample(20, do={"soil": 2.0})
    assert (rows["soil"] == 2.0).all()
    assert np.isfinite(rows.to_numpy()).all()
    unit = toy_frame().iloc[:2]
    moved = posterior.counterfactual(unit, do={"crop": 0.0})
    assert (moved.mean()["crop"] == 0).all()
    assert np.isfinite(moved.draws).all()


def test_diagnostics_and_checks(posterior):
    found = posterior.diagnostics()
    assert found.verdict
    assert found.num_distinct == len(graphs.unique_graphs(posterior.graphs)[0])
    assert found.independent == ("independent draws" in found.verdict)
    alone = found.num_chains == 1 and not found.independent
    assert alone == found.verdict.startswith("One run")
    json.dumps(found.summary())
    checked = posterior.check(toy_frame())
    assert checked.table()["variable"].tolist() == list(NAMES)
    json.dumps(checked.summary())


@pytest.mark.filterwarnings("ignore:.*draws are too few")
def test_the_next_experiment(posterior):
    table = posterior.next_experiment(["rain", "soil"], num_draws=20, num_experiments=8)
    assert set(table["set"]) >= {"rain", "soil"}
    assert np.isfinite(table["gain"]).all()
    posterior.next_experiment(["rain"], about=("rain", "soil"), num_draws=10, num_experiments=4)
    effect = posterior.effect("rain", "crop", num_rows=50)
    posterior.next_experiment(["rain"], about=effect, num_draws=10, num_experiments=4)


def test_a_report_can_be_written_of_it(fresh, monkeypatch):
    monkeypatch.setattr(page, "EXPERIMENTS", {"num_draws": 20, "num_experiments": 4})
    monkeypatch.setattr(effects, "MOST_SIMULATED", 2)
    text = page.render(fresh, data=toy_frame(), num_rows=20)
    assert text.count("<section ") == 11
    found = json.loads(re.search(r'id="payload">(.*?)</script>', text, re.DOTALL)[1])
    probable = np.argwhere(fresh.edge_matrix() >= 0.05).tolist()
    assert sorted([one["source"], one["target"]] for one in found["functions"]) == probable


def test_exports(posterior, tmp_path):
    for suffix in ("dot", "graphml", "gml", "csv"):
        posterior.export(tmp_path / f"graph.{suffix}")
        assert (tmp_path / f"graph.{suffix}").stat().st_size > 0
    assert posterior.to_lingam().shape == posterior.to_causallearn().shape == (4, 4)
    tree = posterior.to_datatree()
    assert tree["posterior"]["graph"].dims == ("chain", "draw", "source", "target")


def test_the_answers_do_not_change_by_saving(fresh, posterior):
    for ask in (
        lambda p: p.edge_matrix(),
        lambda p: p.path_probabilities().to_numpy(),
        lambda p: p.equivalence_classes().mass,
        lambda p: p.effect("rain", "crop", values=(40, 60), num_rows=50).draws,
        lambda p: p.sample(20, do={"soil": 2.0}).to_numpy(),
        lambda p: p.counterfactual(toy_frame().iloc[:2], do={"crop": 0.0}).draws,
        lambda p: p.diagnostics().scatter,
        lambda p: p.check(toy_frame()).table().to_numpy(),
    ):
        np.testing.assert_array_equal(ask(fresh), ask(posterior))
