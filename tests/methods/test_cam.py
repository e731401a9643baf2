"""CAM: finds nonlinear causes, prunes the others, and keeps what it estimated."""

import json
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from bayesdag import extend, fit, metrics, read
from bayesdag.baselines import additive, cam
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods.cam import CAM

NAMES = ("a", "b", "c", "e")
TRUTH = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


def curved_frame(num_rows: int = 500, seed: int = 0) -> pd.DataFrame:
    """a -> b -> c and a -> c by smooth functions; e is alone."""
    rng = np.random.default_rng(seed)
    a, e = rng.normal(size=(2, num_rows))
    b = np.sin(2 * a) + 0.4 * rng.normal(size=num_rows)
    c = b**2 + np.tanh(2 * a) + 0.4 * rng.normal(size=num_rows)
    return pd.DataFrame({"a": 3 * a + 1, "b": b, "c": 10 * c, "e": e})


def stats_of(frame: pd.DataFrame, size: int = 6) -> additive.AdditiveStats:
    data = read(frame)
    basis = additive.spline_basis(data.scaled, size)
    return additive.additive_stats(basis, basis.features(data.scaled), data.observed)


def test_the_graph_of_smooth_functions_is_found():
    posterior = fit(curved_frame(), CAM(num_samples=20), seed=1)
    edge = posterior.edge_matrix()
    assert (edge[TRUTH == 1] > 0.9).all()
    assert (edge[TRUTH == 0] < 0.2).all()
    assert posterior.provenance["estimate"] == [["a", "b"], ["a", "c"], ["b", "c"]]


def test_functions_are_those_of_the_rows_in_original_units():
    frame = curved_frame(2000)
    posterior = fit(frame, CAM(num_samples=20), seed=1)
    effect = posterior.effect("b", "c", values=(0.0, 1.0), num_rows=200)
    assert effect.mean == pytest.approx(10.0, abs=1.0)  # 10 b² at 1, less that at 0
    means = jax.vmap(posterior.model.mechanism, in_axes=(0, None, None))(
        jax.tree.map(lambda leaf: np.float32(leaf[0]), posterior.params["mechanism"])
        | {"members": posterior.params["mechanism"]["members"][0]},
        np.float32(read(frame).scaled),
        TRUTH.astype(np.float32),
    )
    left = (read(frame).scaled - np.asarray(means).mean(axis=0)).std(axis=0) * frame.std().values
    np.testing.assert_allclose(left, [3.0, 0.4, 4.0, 1.0], rtol=0.1)


def test_without_a_selection_the_greedy_edges_are_a_whole_order():
    stats, free = stats_of(curved_frame()), Constraints.free(NAMES)
    edges = cam.greedy_edges(stats, ~free.forbidden, free)
    assert edges.sum() == 6
    assert sorted(edges.sum(axis=0)) == [0, 1, 2, 3]
    graph = cam.pruned(stats, edges, free, 1e-3)
    np.testing.assert_array_equal(graph, TRUTH)
    assert cam.pruned(stats, edges, free, 1.0).sum() == 6  # nothing is above this cutoff


def test_the_selection_keeps_the_parents_and_what_is_required():
    known = Knowledge(required=[("e", "b")], forbidden=[("c", "b")]).bind(NAMES)
    chosen = cam.preliminary_neighbours(stats_of(curved_frame()), known, 2)
    assert chosen[0, 1]
    assert chosen[3, 1]
    assert not chosen[2, 1]
    assert (chosen.sum(axis=0) == 2).all()


def test_many_variables_are_searched_among_few_candidates():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 25))
    x[:, 1] = np.sin(2 * x[:, 0]) + 0.3 * x[:, 1]
    frame = pd.DataFrame(x, columns=[f"v{i}" for i in range(25)])
    posterior = fit(frame, CAM(num_samples=3))
    edge = posterior.edge_matrix()
    assert edge[0, 1] == 1
    assert edge.sum() < 5


def test_a_longer_run_begins_with_the_draws_of_a_shorter_one(tmp_path):
    short = fit(curved_frame(100), CAM(num_samples=4), seed=2, keep_state=True)
    extend(short, curved_frame(100), 3).save(tmp_path / "longer.nc")
    fit(curved_frame(100), CAM(num_samples=7), seed=2, keep_state=True).save(tmp_path / "whole.nc")
    assert (tmp_path / "longer.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()


def test_what_was_estimated_before_an_interruption_is_not_estimated_again(tmp_path, monkeypatch):
    calls, search = [], cam.search

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return search(*arguments)

    method, path = CAM(num_samples=6), tmp_path / "partial"
    monkeypatch.setattr(cam, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(curved_frame(100), method, seed=2, checkpoint=path)
    resumed = fit(curved_frame(100), method, seed=2, checkpoint=path)
    assert len(calls) == 4 + 3 + 1  # three were kept; the last call is that of all rows
    whole = fit(curved_frame(100), method, seed=2)
    np.testing.assert_array_equal(resumed.graphs, whole.graphs)
    values = [p.params["mechanism"]["values"] for p in (resumed, whole)]
    np.testing.assert_array_equal(*values)


def test_few_rows_get_fewer_functions_and_binary_columns_straight_lines():
    frame = curved_frame(60)
    frame["e"] = (frame["e"] > 0).astype(float)
    with pytest.warns(BayesdagWarning, match="takes 'e' .binary. for measurements"):
        posterior = fit(frame, CAM(num_samples=5))
    assert posterior.params["mechanism"]["knots"].shape[-1] == 60 // 9 + 1
    assert np.isfinite(posterior.stats["log_joint"]).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_basis": 1}, "num_basis is 1"),
        ({"max_candidates": 0}, "max_candidates is 0"),
        ({"cutoff": 0.0}, "cutoff is 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        CAM(**settings)


def test_graphs_are_near_those_of_the_authors_package():
    """R's CAM 1.0 (mgcv 1.8-41, pruning at 0.001) found the stored edges in ten data sets."""
    stored = json.loads((Path(__file__).parents[1] / "baselines/cam_package.json").read_text())
    apart, ours, theirs = [], [], []
    for seed, edges in stored.items():
        made = Synthetic(
            num_variables=10,
            edges_per_node=1 if int(seed) < 5 else 2,
            mechanism="additive",
            num_train=400,
            num_test=0,
            scaling="standardised",
        )(int(seed))
        package = np.zeros((10, 10), dtype=np.int8)
        package[tuple(np.transpose(edges))] = 1
        data, free = made.train, Constraints.free(made.train.names)
        basis = additive.spline_basis(data.scaled, 8)
        stats = additive.additive_stats(basis, basis.features(data.scaled), data.observed)
        graph = cam.pruned(stats, cam.search(stats, free, 9), free, 0.001)
        apart.append(metrics.shd(graph, package))
        ours.append(metrics.shd(graph, made.graph))
        theirs.append(metrics.shd(package, made.graph))
    assert np.mean(apart) < 2  # of 13 edges
    assert np.mean(ours) < np.mean(theirs) + 1
