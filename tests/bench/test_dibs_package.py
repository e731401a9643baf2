"""DiBS beside its authors' package: what is compared is what the words say."""

from typing import Any

import numpy as np
import pytest

from bayesdag.bench import dibs_package, runners
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import Trial, load_suite
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.exact import Exact

SMALL = Synthetic(
    num_variables=3, edges_per_node=1, mechanism="signed_linear", num_train=50, num_test=0
)


def constant(probability: float) -> np.ndarray:
    return probability * (1 - np.eye(3))


def test_differences_are_means_over_pairs_of_runs():
    ours, theirs = [constant(0.1), constant(0.3)], [constant(0.4), constant(0.8)]
    found = dibs_package.differences(ours, theirs)
    assert found["between"] == pytest.approx((0.3 + 0.7 + 0.1 + 0.5) / 4)
    assert found["within_ours"] == pytest.approx(0.2)
    assert found["within_package"] == pytest.approx(0.4)


def test_both_are_measured_on_the_same_rows(monkeypatch):
    given = []

    def found(self, data):
        given.append(data.scaled)
        runs = np.stack([constant(0.0), constant(0.0)])
        return {"run_edge": runs, "num_cyclic": np.array([1, 3]), "cpu": 2.0,
                "package_version": "9"}  # fmt: skip

    monkeypatch.setattr(Opponent, "found", found)
    method = DiBS(num_steps=5, num_graphs=2, num_acyclicity_graphs=2, num_particles=8)
    runner = dibs_package.BesidePackage(method, Opponent("dibs_lib"), exact=Exact())
    measures = runner.measure_one(Trial({}, 3, SMALL))
    source = SMALL(3)
    np.testing.assert_array_equal(given[0], source.train.scaled)
    assert measures["shd_package"] == source.graph.sum()
    assert measures["cyclic_package"] == 2.0
    assert measures["cpu_ours"] > 0
    assert measures["shd_difference"] == measures["shd_ours"] - measures["shd_package"]
    assert 0 < measures["error_package"] < 1


def test_the_package_is_needed(monkeypatch):
    monkeypatch.delenv(runners.OPPONENTS, raising=False)
    runner = load_suite("dibs_package").parts[0].runners["joint"]
    assert runners.OPPONENTS in str(runner.lacking())


def test_both_are_told_the_same():
    for part in load_suite("dibs_package").parts:
        (d,) = {trial.setting["d"] for trial in part.trials}
        for runner in part.runners.values():
            assert isinstance(runner, dibs_package.BesidePackage)
            told = runner.package.settings
            assert runner.method.num_particles == told["particles"]
            assert runner.method.num_steps == told["steps"]
            assert runner.method.noise_variance == told.get("variance")
            prior: Any = runner.method.prior
            assert prior.probability == told["edges"] * d / (d * (d - 1) / 2)
