"""Greedy search beside a package's: what is compared is what the words say."""

import numpy as np
import pytest

from bayesdag.baselines.ges import GaussianBIC, search
from bayesdag.bench import runners
from bayesdag.bench.ges_package import BesideSearch
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import Trial, load_suite
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.graphs import cpdag
from bayesdag.graphs.class_members import member_that_starts_with
from bayesdag.methods.bootstrap_ges import correlations

SMALL = Synthetic(
    num_variables=4, edges_per_node=1, mechanism="signed_linear", num_train=300, num_test=0
)


@pytest.fixture
def answer(monkeypatch):
    """Lets the package end at a class."""

    def says(found: np.ndarray) -> None:
        theirs = {"cpdag": found, "cpu": np.array(2.0), "package_version": np.array("9")}
        monkeypatch.setattr(Opponent, "found", lambda self, source: theirs)

    return says


def test_equal_classes_are_the_same_and_gain_nothing(answer):
    x = SMALL(3).train.scaled
    answer(search(GaussianBIC(correlations(x), 300)))
    (found,) = BesideSearch(Opponent("ges")).measure([Trial({}, 3, SMALL)])
    assert found["same"] == 1
    assert found["distance"] == 0
    assert found["gain"] == 0
    assert found["cpdag_shd_ours"] == found["cpdag_shd_package"]


def test_a_worse_class_of_the_package_is_a_gain_in_nats(answer):
    source = SMALL(3)
    score = GaussianBIC(correlations(source.train.scaled), 300)
    graph = member_that_starts_with(search(score))
    worse = graph.copy()
    worse[tuple(np.argwhere(graph)[0])] = 0
    answer(cpdag(worse))
    (found,) = BesideSearch(Opponent("ges")).measure([Trial({}, 3, SMALL)])
    assert found["same"] == 0
    assert found["gain"] == pytest.approx(score.total(graph) - score.total(worse))
    assert found["gain"] > 0
    assert found["distance"] > 0


def test_a_hundred_data_sets_are_compared_by_bic(monkeypatch):
    monkeypatch.delenv(runners.OPPONENTS, raising=False)
    parts = load_suite("ges_package").parts
    assert sum(len(part.trials) for part in parts) == 100
    for part in parts:
        (runner,) = part.runners.values()
        assert isinstance(runner, BesideSearch)
        assert runner.package.settings == {"penalty": 0.5}
        assert runners.OPPONENTS in str(runner.lacking())
