"""What every method promises, present and future: found by the folder, run on a toy."""

import dataclasses

import numpy as np
import pytest

from bayesdag import fit, fitting, graphs, plugins, read
from bayesdag.errors import BayesdagWarning, InputError, KnowledgeError
from bayesdag.knowledge import Knowledge
from bayesdag.posterior import Posterior
from tests.toys import NAMES, TRUTH, quick, toy_frame

every_method = pytest.mark.parametrize("name", plugins.names("methods"))

KINDS = {
    "required": {"required": [("price", "rain"), ("rain", "soil")]},
    "forbidden": {"forbidden": [("rain", "soil"), ("soil", "rain")]},
    "tiers": {"tiers": [["crop"], ["price", "soil"], ["rain"]]},
    "roots": {"roots": ["crop"]},
    "sinks": {"sinks": ["rain"]},
    "beliefs": {"beliefs": [("price", "crop", 0.999)]},
    "all of them": {
        "required": [("price", "crop")],
        "tiers": [["price", "soil"], ["crop", "rain"]],
        "forbidden": [("soil", "rain")],
        "roots": ["soil"],
        "sinks": ["crop"],
    },
}
_fitted: dict[tuple, Posterior] = {}


def fitted(name: str, kind: str | None = None) -> Posterior:
    """Fits are shared between the tests of one process: compiling is what costs."""
    if (name, kind) not in _fitted:
        knowledge = KINDS[kind] if kind else None
        _fitted[name, kind] = fit(toy_frame(), quick(name), knowledge=knowledge, seed=3)
    return _fitted[name, kind]


@every_method
def test_every_draw_is_acyclic_and_the_weights_sum_to_one(name):
    posterior = fitted(name)
    assert graphs.is_acyclic(posterior.graphs).all()
    assert posterior.weights.sum() == pytest.approx(1)
    assert (posterior.weights >= 0).all()
    assert posterior.stats["log_joint"].shape == posterior.weights.shape
    assert np.isfinite(posterior.stats["log_joint"]).all()


@every_method
def test_model_prior_and_temperature_are_stated(name):
    provenance = fitted(name).provenance
    assert provenance["model"]
    assert provenance["prior"]
    assert provenance["temperature"] > 0
    assert provenance["data_hash"] == read(toy_frame()).hash


@every_method
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    fitted(name).save(tmp_path / "first.nc")
    fit(toy_frame(), quick(name), seed=3).save(tmp_path / "second.nc")
    assert (tmp_path / "first.nc").read_bytes() == (tmp_path / "second.nc").read_bytes()


@every_method
def test_it_beats_a_graph_drawn_at_random(name):
    def shd(draws):
        wrong = (draws != TRUTH) | (draws != TRUTH).swapaxes(-1, -2)
        return wrong.sum(axis=(-1, -2)) / 2

    posterior = fitted(name)
    assert (posterior.weights * shd(posterior.graphs)).sum() < shd(graphs.all_dags(4)).mean()


@every_method
def test_relabelling_the_columns_relabels_the_answer(name):
    order = [2, 0, 3, 1]
    moved = fit(toy_frame().iloc[:, order], quick(name), seed=3)
    assert moved.names == tuple(NAMES[i] for i in order)
    assert (
        np.abs(moved.edge_matrix() - fitted(name).edge_matrix()[np.ix_(order, order)]).max() < 0.3
    )


@every_method
@pytest.mark.parametrize("kind", KINDS)
def test_knowledge_is_honoured_in_every_draw_or_refused_by_name(name, kind):
    constraints = Knowledge.read(KINDS[kind]).bind(NAMES)
    refused = constraints.kinds - plugins.load("methods", name).supported_constraints
    if refused:
        with pytest.raises(KnowledgeError, match=sorted(refused)[0]):
            fitted(name, kind)
        return
    posterior = fitted(name, kind)
    assert constraints.allows(posterior.graphs).all()
    if kind == "beliefs":
        # The pair is linked in truth, so a strong belief should turn the arrow round.
        assert posterior.edge_matrix()[3, 2] > fitted(name).edge_matrix()[3, 2]


@every_method
def test_interventions_change_the_answer_or_are_refused(name):
    frame = toy_frame()
    rng = np.random.default_rng(1)
    # The second half comes from experiments that set `crop`: it no longer follows its causes.
    half = len(frame) // 2
    frame.loc[half:, "crop"] = rng.normal(0, 0.3, len(frame) - half)
    mask = np.zeros(frame.shape, dtype=bool)
    mask[half:, 2] = True
    data = read(frame, interventions=mask)
    if not plugins.load("methods", name).interventions:
        with pytest.raises(InputError, match="interventional"):
            fit(data, quick(name))
        return
    blind = fit(read(frame), quick(name), seed=3)
    seeing = fit(data, quick(name), seed=3)
    assert not np.array_equal(seeing.stats["log_joint"], blind.stats["log_joint"])


@every_method
def test_too_few_rows_are_refused_before_anything_runs(name):
    needed = quick(name).min_rows(4)
    frame = toy_frame(max(needed - 1, 2))
    if needed <= 2:
        pytest.skip("two rows are enough for this method, and fewer are refused when reading")
    with pytest.warns(BayesdagWarning), pytest.raises(InputError, match="rows"):
        fit(frame, quick(name))


@every_method
def test_settings_are_fields_of_the_method(name):
    method = quick(name)
    assert dataclasses.is_dataclass(method)
    assert fitting.name_of(method) == name
    with pytest.raises(InputError, match="has no setting 'nonsense'"):
        fit(toy_frame(), name, nonsense=1)
