"""Families in compiled batches, as on an accelerator, against NumPy's one by one."""

import numpy as np
import pytest

from bayesdag.runs.recording import recorder_of
from bayesdag.scores._neural import crossfit, folds, network_cache, noise_forms, programs
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS

PLAN = SMALL_NETWORKS._plan()


@pytest.fixture(scope="module")
def values():
    x = np.random.default_rng(0).normal(size=(NETWORK_ROWS, 4))
    x[:, 3] = np.abs(x[:, 0]) + 0.5 * x[:, 1] * x[:, 0] + 0.3 * x[:, 3]
    return (x - x.mean(axis=0)) / x.std(axis=0)


def found(values, compiled):
    """Regressions and networks of x3 with two and with three parents, and their sizes."""
    rows = folds.fold(
        np.random.default_rng(1), values, np.ones(values.shape, bool), 2, compiled=compiled
    )
    parents = np.zeros((2, rows.values.shape[2]), bool)
    parents[0, :2] = parents[1, :3] = True
    results, sizes = [], []
    for which, group in folds.families_by_size(rows, np.array([3, 3]), parents):
        starts = network_cache.starting_networks(
            group,
            [network_cache.Relatives(None, None)] * len(which),
            [-np.inf] * len(which),
            PLAN.width,
        )
        simple = crossfit.regressions(rows, group)
        trained = crossfit.networks(rows, [(group, starts)], PLAN)[0]
        results += zip(simple.log_evidence, trained.log_evidence[:, 0], strict=True)
        sizes.append(group.members.shape[1])
    return results, sizes


def test_compiled_batches_and_numpy_find_the_same_evidence(values, monkeypatch):
    monkeypatch.setattr(crossfit, "_MOST_ON_ACCELERATORS", 2)
    monkeypatch.setattr(crossfit, "_FEWEST_ON_ACCELERATORS", 2)
    monkeypatch.setattr(folds, "SIZES", (3, *folds.SIZES))
    here, own_sizes = found(values, compiled=False)
    there, filled_up = found(values, compiled=True)
    assert (own_sizes, filled_up) == ([2, 3], [3])
    for (simple, networks), (simple_there, networks_there) in zip(here, there, strict=True):
        np.testing.assert_allclose(simple, simple_there, atol=0.2)
        assert min(networks.max(), networks_there.max()) > simple[:2].max() + 20
    # Families of the same size start alike. Dampings are tried in turn here and all at once there:
    # two ways to much the same end.
    np.testing.assert_allclose(here[1][1].max(), there[1][1].max(), atol=3)


def test_a_hopeless_family_gets_the_network_of_one_fold_for_all(values):
    """Far below what it has to reach, one fold says as much as all, to within its margin."""
    rows = folds.fold(
        np.random.default_rng(1), values, np.ones(values.shape, bool), 3, compiled=False
    )
    parents = np.zeros((1, rows.values.shape[2]), bool)
    parents[0, :2] = True
    ((_, group),) = folds.families_by_size(rows, np.array([3]), parents)

    def found(bar):
        nobody = [network_cache.Relatives(None, None)]
        starts = network_cache.starting_networks(group, nobody, [bar], PLAN.width)
        return crossfit.networks(rows, [(group, starts)], PLAN)[0]

    whole = found(-np.inf)
    reached = whole.log_evidence.max()
    near, far = found(reached + 1), found(reached + 1000)
    assert (float(near.num_folds[0]), float(far.num_folds[0])) == (3, 1)
    np.testing.assert_array_equal(near.log_evidence, whole.log_evidence)
    np.testing.assert_allclose(far.log_evidence.max(), reached, atol=10)


def test_networks_are_trained_again_only_from_a_start_that_leads_farther(values):
    rows = folds.fold(
        np.random.default_rng(1), values, np.ones(values.shape, bool), 2, compiled=False
    )
    parents = np.zeros((1, rows.values.shape[2]), bool)
    parents[0, :2] = True
    ((_, group),) = folds.families_by_size(rows, np.array([3]), parents)
    ready = network_cache._families_of(group, crossfit.without_networks(rows, [group], PLAN)[0])[0]

    def trained(relative, own):
        relatives = [network_cache.Relatives(relative, None)]
        starts = network_cache.starting_networks(group, relatives, [-np.inf], PLAN.width, [own])
        return network_cache._families_of(
            group, crossfit.networks(rows, [(group, starts)], PLAN)[0]
        )[0]

    good = trained(None, None)
    flat = good.folds._replace(
        networks=network_cache.Network(*(0 * leaf for leaf in good.folds.networks))
    )
    poor = ready.with_networks(good._replace(folds=flat))
    # Nobody to start from, or nobody better: the networks that are there stay.
    assert not trained(None, ready.with_networks(good)).has_networks
    assert not trained(poor, ready.with_networks(good)).has_networks
    better = trained(ready.with_networks(good), poor)
    assert better.num_folds == 2
    np.testing.assert_allclose(better.best_evidence, good.best_evidence, atol=5)


def test_programs_that_are_compiled_ahead_are_those_that_compute(values, monkeypatch):
    """For each size that sets of so many parents are filled up to; nothing is compiled again."""
    monkeypatch.setattr(crossfit, "_MOST_ON_ACCELERATORS", 2)
    monkeypatch.setattr(crossfit, "_FEWEST_ON_ACCELERATORS", 2)
    monkeypatch.setattr(network_cache, "SIZES", (2, 4, 8))
    monkeypatch.setattr(folds, "SIZES", (2, 4, 8))
    monkeypatch.setattr(programs, "_ahead", {})
    rows = folds.fold(
        np.random.default_rng(1), values, np.ones(values.shape, bool), 2, compiled=True
    )
    cache = network_cache.NetworkCache(recorder_of(None))
    cache.expect(3, rows, PLAN)
    assert len(programs._ahead) == 4
    monkeypatch.setattr(programs, "_compiled", None)
    families = [(3, 0b1), (3, 0b111)]
    cache.train(families, rows, PLAN, tuple(noise_forms.NoiseForm), {})
    assert all(np.isfinite(cache.trained[family].best_evidence) for family in families)
    assert len(programs._ahead) == 4
