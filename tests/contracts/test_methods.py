"""What every method promises, present and future: found by the folder, run on a toy."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from bayesdag import fit, fitting, graphs, metrics, plugins, read
from bayesdag.errors import BayesdagWarning, InputError, KnowledgeError
from bayesdag.knowledge import Knowledge
from bayesdag.posterior import Posterior
from tests.toys import NAMES, TRUTH, quick, toy_frame

every_method = pytest.mark.parametrize("name", plugins.names("methods"))

# The paper's engines are compiled anew for every number of contexts, which takes long.
WITH_ENGINES_APART = [
    pytest.param(name, marks=[pytest.mark.slow] * hasattr(quick(name), "fit_many"))
    for name in plugins.names("methods")
]
# A method sees edges that are required, forbidden or believed in, whatever words said so (which
# `tests/knowledge` looks at). Engines are compiled anew for every number of required levels.
KINDS = {
    "forbidden": {"forbidden": [("rain", "soil"), ("soil", "rain")]},
    "beliefs": {"beliefs": [("price", "crop", 0.999)]},
    "all of them": {
        "required": [("price", "crop"), ("crop", "rain")],
        "tiers": [["price", "soil"], ["crop", "rain"]],
        "forbidden": [("soil", "rain")],
        "roots": ["soil"],
        "sinks": ["rain"],
    },
}
EMPTY = np.zeros_like(TRUTH)
SEEDS = (3, 4)
RELABELLED = [2, 0, 3, 1]
_fitted: dict[tuple, Posterior] = {}


def fitted(name: str, kind: str | None = None) -> Posterior:
    """Fits are shared between the tests of one process: compiling is what costs."""
    if (name, kind) not in _fitted:
        knowledge = KINDS[kind] if kind else None
        _fitted[name, kind] = fit(toy_frame(), quick(name), knowledge=knowledge, seed=3)
    return _fitted[name, kind]


def expected_shd(posterior: Posterior) -> float:
    draws, weights = posterior.graphs.reshape(-1, 4, 4), posterior.weights.reshape(-1)
    return metrics.expected_shd(draws, TRUTH, weights)


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
def test_it_beats_random_graphs_and_the_empty_one(name):
    """A baseline may lose, but has to say that it is one."""
    posterior = fitted(name)
    if any(note.startswith("baseline:") for note in posterior.provenance.get("notes", [])):
        assert "A baseline" in (type(quick(name)).__doc__ or "")
        pytest.skip("a baseline is there to be beaten")
    nothing, anything = metrics.shd(EMPTY, TRUTH), metrics.shd(graphs.all_dags(4), TRUTH).mean()
    assert expected_shd(posterior) < min(nothing, anything)


def test_the_empty_graph_does_not_beat_itself():
    """What the test above is worth: the method that claims nothing would not pass it."""
    assert expected_shd(fitted("empty")) >= metrics.shd(EMPTY, TRUTH)


@every_method
def test_relabelling_the_columns_relabels_the_answer(name):
    """Runs with other seeds say how far two answers to one question may be apart."""
    moved_frame, back = toy_frame().iloc[:, RELABELLED], np.argsort(RELABELLED)
    straight = [fitted(name), *(fit(toy_frame(), quick(name), seed=s) for s in SEEDS[1:])]
    moved = fit(moved_frame, quick(name), seed=SEEDS[0])
    assert moved.names == tuple(NAMES[i] for i in RELABELLED)
    runs = np.stack([p.edge_matrix() for p in straight])
    difference = runs.mean(axis=0) - moved.edge_matrix()[np.ix_(back, back)]
    # The variance of the difference of a mean of runs and one more run, averaged over all pairs.
    variance = runs.var(axis=0, ddof=1).mean() * (1 + 1 / len(SEEDS))
    resolution = 1 / moved.weights.size  # of the draws, where all runs agree
    assert np.sqrt((difference**2).mean()) < 4 * np.sqrt(variance) + resolution


@every_method
@pytest.mark.parametrize("kind", KINDS)
def test_knowledge_is_obeyed_in_every_draw_or_refused_by_name(name, kind):
    constraints = Knowledge.read(KINDS[kind]).bind(NAMES)
    refused = constraints.kinds - quick(name).supported_constraints
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
    mask = np.zeros(frame.shape, dtype=bool)
    mask[len(frame) // 2 :, 2] = True  # as if experiments had set `crop`
    data = read(frame, interventions=mask)
    if not quick(name).supports_interventions:
        with pytest.raises(InputError, match="interventional"):
            fit(data, quick(name))
        return
    blind, seeing = fitted(name), fit(data, quick(name), seed=3)
    assert not np.array_equal(seeing.stats["log_joint"], blind.stats["log_joint"])


@pytest.mark.parametrize("name", WITH_ENGINES_APART)
def test_environments_are_contexts_that_nothing_acts_on_or_are_refused(name):
    """With as many columns and levels of required edges as above: little is compiled anew."""
    frame = toy_frame()
    frame["soil"] += 3 * (np.arange(len(frame)) % 2)
    frame["crop"] = np.where(np.arange(len(frame)) % 2, "wet", "dry")
    told: dict[str, Any] = {"environment": "crop=dry"}
    if requires := "required" in quick(name).supported_constraints:
        told["knowledge"] = {"required": [("rain", "soil")]}
    if "environments" not in quick(name).supported_constraints:
        with pytest.raises(KnowledgeError, match="environments"):
            fit(frame, quick(name), **told)
        return
    posterior = fit(frame, quick(name), seed=3, **told)
    assert posterior.names == ("rain", "soil", "price", "crop=wet")
    assert not posterior.graphs[..., 3].any()
    assert not requires or posterior.graphs[..., 0, 1].all()
    targets = posterior.environment_targets()["target"].tolist()  # most probable first
    if name not in ("empty", "random_order"):
        assert targets[0] == "soil"


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
