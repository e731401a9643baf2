"""Merging runs and extending them: nothing is lost, nothing is counted twice."""

import dataclasses

import numpy as np
import pytest

from bayesdag import extend, fit, load, merge, plugins, read
from bayesdag.errors import InputError
from bayesdag.posterior.merge import chained
from tests.toys import quick, toy_frame

# Chains of neural functions take minutes to compile and run; those of orders seconds.
CHAINS = [
    pytest.param(name, marks=() if name == "collapsed" else pytest.mark.slow)
    for name in plugins.names("methods")
    if hasattr(plugins.load("methods", name), "num_warmup")
]


@pytest.fixture(scope="module")
def runs():
    return [fit(toy_frame(), "exact", seed=seed, num_samples=40) for seed in (0, 1, 2)]


def test_merged_runs_hold_all_chains_with_equal_say(runs):
    merged = merge(runs)
    assert merged.graphs.shape == (3, 40, 4, 4)
    assert merged.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(merged.weights.sum(axis=1), 1 / 3)
    np.testing.assert_array_equal(merged.graphs[1], runs[1].graphs[0])
    np.testing.assert_array_equal(
        merged.params["mechanism"]["weights"][2], runs[2].params["mechanism"]["weights"][0]
    )
    assert merged.provenance["seed"] == [0, 1, 2]
    assert merged.provenance["merged"] == 3
    np.testing.assert_allclose(merged.edge_matrix(), runs[0].edge_matrix())


def test_what_ranks_edges_is_computed_for_the_merged_draws():
    knowledge = {"required": [["rain", "soil"], ["soil", "crop"]]}
    runs = [fit(toy_frame(), "exact", seed=seed, knowledge=knowledge) for seed in (0, 1)]
    stale = [dataclasses.replace(run, evidence=np.full((4, 4), 7.0)) for run in runs]
    merged = merge(stale)
    np.testing.assert_array_equal(merged.evidence, merged.with_evidence().evidence)
    assert (merged.evidence_matrix() > 0).sum() == 2
    assert chained(stale).evidence is None


def test_runs_with_room_for_fewer_parents_are_filled_up():
    runs = [fit(toy_frame(), "empty", seed=seed) for seed in (0, 1)]
    members = [
        np.ones((*run.graphs.shape[:2], 4, width)) for run, width in zip(runs, (2, 3), strict=True)
    ]
    runs = [
        dataclasses.replace(run, params={"members": own})
        for run, own in zip(runs, members, strict=True)
    ]
    merged = merge(runs).params["members"]
    assert merged.shape[-1] == 3
    np.testing.assert_array_equal(merged[0, 0, 0], [1, 1, 0])
    np.testing.assert_array_equal(merged[1, 0, 0], [1, 1, 1])


def test_merged_runs_can_be_compared_saved_and_merged_again(runs, tmp_path):
    merged = merge(runs[:2])
    assert merged.diagnostics().comparable
    merged.save(tmp_path / "merged.nc")
    again = merge([load(tmp_path / "merged.nc"), runs[2]])
    assert again.num_chains == 3
    assert again.provenance["seed"] == [0, 1, 2]
    np.testing.assert_allclose(again.weights.sum(axis=1), 1 / 3)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: fit(toy_frame(seed=9), "exact", seed=5, num_samples=40), "their data"),
        (lambda: fit(toy_frame(), "exact", seed=5, num_samples=41), "num_samples"),
        (lambda: fit(toy_frame(), "exact", seed=5, num_samples=40, score="linear"), "score"),
        (lambda: fit(toy_frame(), "empty", seed=5), "method"),
        (lambda: fit(toy_frame(), "exact", seed=1, num_samples=40), "seed 1 occurs"),
        (
            lambda: fit(
                toy_frame(), "exact", seed=5, num_samples=40, knowledge={"roots": ["rain"]}
            ),
            "knowledge",
        ),
        (
            lambda: fit(read(toy_frame(), scaling="centre"), "exact", seed=5, num_samples=40),
            "scaling",
        ),
    ],
)
def test_different_questions_are_not_merged(runs, other, words):
    with pytest.raises(InputError, match=words):
        merge([runs[1], other()])


def test_one_result_is_not_enough(runs):
    with pytest.raises(InputError, match="two or more"):
        merge(runs[:1])


def without_version(posterior):
    return {k: v for k, v in posterior.provenance.items() if k != "version"}


def test_an_independent_method_is_extended_by_starting_again(runs):
    longer = extend(runs[0], toy_frame(), 10)
    assert longer.num_draws == 50
    whole = fit(toy_frame(), "exact", seed=0, num_samples=50)
    np.testing.assert_array_equal(longer.graphs, whole.graphs)


@pytest.mark.parametrize("name", CHAINS)
def test_extended_chains_are_those_of_a_longer_run(name, tmp_path):
    method = quick(name)
    short = fit(toy_frame(), method, seed=3, keep_state=True)
    short.save(tmp_path / "short.nc")
    more = method.num_samples
    longer = extend(load(tmp_path / "short.nc"), toy_frame(), more)
    whole = fit(
        toy_frame(), dataclasses.replace(method, num_samples=2 * more), seed=3, keep_state=True
    )
    longer.save(tmp_path / "longer.nc")
    whole.save(tmp_path / "whole.nc")
    assert longer.num_draws == 2 * short.num_draws
    assert (tmp_path / "longer.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()


def test_other_data_and_results_without_a_state_are_refused(runs):
    with pytest.raises(InputError, match="not the data"):
        extend(runs[0], toy_frame(seed=9), 10)
    with pytest.raises(InputError, match="merged"):
        extend(merge(runs), toy_frame(), 10)


def test_a_chain_without_its_state_says_how_to_keep_it():
    with pytest.raises(InputError, match="keep_state=True"):
        extend(fit(toy_frame(), quick("collapsed"), seed=3), toy_frame(), 10)
