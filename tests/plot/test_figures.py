"""Figures: they show what they are given, and say what is missing."""

import sys

import numpy as np
import pytest

from bayesdag import metrics, plot
from bayesdag.errors import InputError
from tests.posteriors import random_linear

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _closed_figures():
    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def posterior():
    return random_linear(4, d=5)


def arrows(axes) -> int:
    from matplotlib.patches import FancyArrowPatch

    return sum(isinstance(patch, FancyArrowPatch) for patch in axes.patches)


@pytest.mark.parametrize("threshold", [0.1, 0.25, 0.5])
def test_a_graph_has_an_arrow_for_each_probable_edge(posterior, threshold):
    axes = posterior.plot(threshold=threshold)
    assert arrows(axes) == int((posterior.edge_matrix() > threshold).sum())
    assert sorted(text.get_text() for text in axes.texts) == sorted(posterior.names)


def test_arrows_that_pass_boxes_by_stay_inside():
    dag = np.triu(np.ones((7, 7), dtype=np.int8), 1)
    axes = plot.graph([f"v{j}" for j in range(7)], dag.astype(float), dag)
    drawn = [patch for patch in axes.patches if hasattr(patch, "get_arrowstyle")]
    curves = [getattr(patch, "_path_original") for patch in drawn]  # noqa: B009 (no public name)
    across = np.concatenate([curve.vertices[:, 0] for curve in curves])
    low, high = sorted(axes.get_xlim())
    assert low <= across.min() <= across.max() <= high


def test_free_directions_are_dashed():
    graph = np.array([[0, 0.9], [0, 0]])
    dag = (graph > 0.5).astype(np.int8)
    solid = plot.graph(("x", "y"), graph, dag, np.array([[0, 0.9], [0, 0]]))
    dashed = plot.graph(("x", "y"), graph, dag, np.zeros((2, 2)))
    looks = [next(p for p in a.patches if hasattr(p, "get_arrowstyle")) for a in (solid, dashed)]
    assert [patch.get_linestyle() == "solid" for patch in looks] == [True, False]


@pytest.mark.parametrize("kind", ["edges", "paths"])
def test_a_heat_map_shows_the_matrix(posterior, kind):
    axes = posterior.plot(kind)
    wanted = {"edges": posterior.edge_matrix, "paths": posterior.path_probabilities}[kind]()
    shown = np.asarray(axes.images[0].get_array().filled(np.nan), dtype=float)
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(shown[off], np.asarray(wanted)[off])
    assert [t.get_text() for t in axes.get_yticklabels()] == list(posterior.names)


def test_an_effect_a_function_and_traces_are_drawn(posterior):
    axes = posterior.plot("effect", cause="a", outcome="b")
    assert "effect of a on b" in axes.get_xlabel()
    assert sum(patch.get_height() for patch in axes.patches) == pytest.approx(1)
    axes = posterior.plot("function", cause="a", outcome="b")
    assert axes.get_xlabel() == "a"
    axes = posterior.plot("traces")
    assert len(axes.lines) == posterior.num_chains


def test_a_reliability_curve_is_drawn(posterior):
    truth = np.triu(np.ones((5, 5)), 1).astype(np.int8)
    found = metrics.reliability(posterior.edge_matrix(), truth)
    axes = plot.reliability_curve(found.forecast, found.observed, found.low, found.high)
    np.testing.assert_allclose(np.asarray(axes.lines[1].get_xdata()), found.forecast)


def test_a_figure_is_drawn_where_it_is_wanted(posterior):
    from matplotlib import pyplot

    axes = pyplot.subplots()[1]
    assert posterior.plot("edges", axes=axes) is axes


def test_dollar_signs_in_names_begin_no_formula(posterior):
    axes = plot.heat_map(("$a$", "b$"), np.zeros((2, 2)))
    axes.figure.canvas.draw()


def test_unknown_kinds_and_statistics_are_refused_with_what_there_is(posterior):
    with pytest.raises(InputError, match="did you mean 'graph'"):
        posterior.plot("graf")
    with pytest.raises(InputError, match="log_joint"):
        posterior.plot("traces", name="heat")


def test_without_matplotlib_the_error_says_what_to_install(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'bayesdag\[plot\]'"):
        posterior.plot()
