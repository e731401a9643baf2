"""The score of the true graph stands beside what a run has found."""

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesdag import fit, log_scores
from bayesdag.cli import app
from bayesdag.cli.truth import beside_the_truth, read_edges
from bayesdag.errors import InputError
from tests.toys import NAMES, TRUTH, toy_frame


def test_the_exact_method_scores_a_drawn_graph_as_it_did_when_it_drew_it():
    frame = toy_frame()
    posterior = fit(frame, "exact", seed=1)
    best = np.unravel_index(posterior.stats["log_joint"].argmax(), posterior.weights.shape)
    scores = log_scores(posterior, frame, posterior.graphs[best])
    assert scores["given graph"] == pytest.approx(scores["draws"])


def test_methods_without_a_score_other_data_and_cycles_are_refused():
    frame = toy_frame()
    with pytest.raises(InputError, match="'empty' gives graphs no score"):
        log_scores(fit(frame, "empty"), frame, TRUTH)
    posterior = fit(frame, "exact")
    with pytest.raises(InputError, match="not the data of this posterior"):
        log_scores(posterior, toy_frame(seed=9), TRUTH)
    with pytest.raises(InputError, match="no DAG of 4 variables"):
        log_scores(posterior, frame, TRUTH + TRUTH.T)


def test_the_command_line_prints_the_score_of_the_truth(tmp_path):
    toy_frame().to_csv(tmp_path / "t.csv", index=False)
    edges = [f"{NAMES[i]},{NAMES[j]}" for i, j in np.argwhere(TRUTH)]
    (tmp_path / "truth.csv").write_text("\n".join(["cause,effect", *edges]))
    words = [
        "fit",
        tmp_path / "t.csv",
        "--out",
        tmp_path / "r.nc",
        "--truth",
        tmp_path / "truth.csv",
    ]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "log score of the true graph" in done.output
    assert "best found by draws" in done.output


def test_a_file_of_true_edges_is_read_or_refused_in_words(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("cause,effect,weight\nrain,soil,2\n")
    expected = np.zeros((4, 4), dtype=np.int8)
    expected[0, 1] = 1
    np.testing.assert_array_equal(read_edges(path, NAMES), expected)
    path.write_text("cause,effect\nrain,snow\n")
    with pytest.raises(InputError, match="'snow', no column of the table"):
        read_edges(path, NAMES)
    path.write_text("a,b\n")
    with pytest.raises(InputError, match="cause,effect"):
        read_edges(path, NAMES)


def test_the_sentence_says_how_far_above_the_truth_each_stage_is():
    words = beside_the_truth({"given graph": -10.0, "search": -12.5, "draws": -9.0})
    assert (
        words
        == "log score of the true graph -10.0; best found by search -12.5 (-2.5), draws -9.0 (+1.0)"
    )
