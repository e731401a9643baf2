"""Runners other than a fit, and what a fit measures."""

import runpy
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from bayesdag import fitting, metrics
from bayesdag.bench.datasets import OriginalUnits, PublishedSet, Standardised, WithGaps
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.judging import BINS, outcomes
from bayesdag.bench.planning import plan
from bayesdag.bench.runners import (
    EXTERNAL,
    OPPONENTS,
    BaseRate,
    Call,
    Command,
    Opponent,
    opponent_measures,
)
from bayesdag.bench.store import Store
from bayesdag.bench.suite import Part, Suite, Trial
from bayesdag.datasets.broken_world import BrokenWorld
from bayesdag.datasets.mixed_network import MixedNetwork
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.cam import CAM
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.model.mechanisms.linear import Linear

SMALL = Synthetic(num_variables=4, edges_per_node=1, num_train=100, num_test=30)
SHORT = BayesDAG(
    num_chains=2, num_warmup=0, num_samples=2, thinning=2, batch_size=50, mechanism=Linear()
)


def trials(*seeds: int) -> list[Trial]:
    return [Trial({}, seed, SMALL) for seed in seeds]


def test_an_exact_method_is_at_no_distance_from_itself():
    exact = Exact(num_samples=4000)
    (found,) = FitRunner(exact, references={"": exact}).measure(trials(1))
    assert found["mmd"] == found["edge_error"] == 0
    assert found["total_variation"] < 0.15  # draws, not marginals
    assert found["exact_edges"] == pytest.approx(found["expected_num_edges"])
    assert np.isfinite(found["nll"])
    assert found["dataset"]["num_variables"] == 4


def test_a_search_is_measured_beside_the_score_of_the_truth():
    (found,) = FitRunner(Collapsed.PRESETS["quick"]).measure(trials(1))
    assert found["above_truth"] == max(found["stages"].values())
    assert found["num_scores"] > 0
    assert {"seconds", "cpu", "memory_gb", "unsure", "auroc"} <= set(found)


@pytest.fixture(scope="module")
def chains() -> list[dict]:
    """A short run of chains on two data sets at once."""
    runner = FitRunner(SHORT, by_epoch=True)
    assert runner.together
    return runner.measure(trials(1, 2))


def test_data_sets_of_one_shape_are_fitted_in_one_run_and_timed_by_step(chains):
    one, other = chains
    assert one["seconds"] == other["seconds"]
    assert one["nll"] != other["nll"]
    assert one["steps"] == 4
    assert one["compile_seconds"] > one["step_seconds"] > 0
    assert [row["epoch"] for row in one["series"]] == [0, 1]


@pytest.mark.filterwarnings("ignore::bayesdag.errors.BayesdagWarning")
def test_chains_on_tables_that_need_care_are_fitted_as_a_user_fits_them():
    few = replace(SHORT, batch_size=20)
    for made in (WithGaps(SMALL), MixedNetwork(4, num_train=100, num_test=0)):
        (found,) = FitRunner(few).measure([Trial({}, 1, made)])
        assert np.isfinite(found["expected_shd"])


def test_chains_that_start_at_the_truth_and_hardly_move_are_closer_to_it(chains):
    there = FitRunner(SHORT, from_truth=True).measure(trials(1, 2))
    for near, far in zip(there, chains, strict=True):
        assert near["ancestor_auroc"] > far["ancestor_auroc"]


def test_outcomes_count_every_pair_above_the_lowest_bin_once():
    rng = np.random.default_rng(0)
    edge, truth = rng.random((6, 6)), (rng.random((6, 6)) < 0.5).astype(np.int8)
    edge[0, 1] = 1.0
    pairs = ~np.eye(6, dtype=bool)
    found = np.array(outcomes(edge, truth, BINS))
    above = pairs & (edge >= BINS[0])
    assert found[:, 0].sum() == above.sum()
    np.testing.assert_allclose(found[:, 1].sum(), edge[above].sum())
    assert found[:, 2].sum() == truth[above].sum()


def test_units_are_changed_for_train_and_test_alike():
    raw, scaled = SMALL(1), Standardised(SMALL)(1)
    np.testing.assert_allclose(scaled.train.values.std(axis=0), 1)
    shift, scale = raw.train.values.mean(axis=0), raw.train.values.std(axis=0)
    np.testing.assert_allclose(scaled.test.values, (raw.test.values - shift) / scale)
    np.testing.assert_array_equal(OriginalUnits(SMALL)(1).train.scaled, raw.train.values)


def test_a_published_set_that_is_not_there_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("BAYESDAG_ANCHORS", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no odd\.npz: name the folder"):
        PublishedSet("odd")()
    np.savez(tmp_path / "odd.npz", X_train=np.eye(3), X_test=np.eye(3)[:2], adj=np.zeros((3, 3)))
    assert PublishedSet("odd")().train.values.shape == (3, 3)


def test_a_command_and_a_function_are_timed():
    (found,) = Command(("-c", "print(1)")).measure(trials(1))
    assert found["seconds"] > 0
    (found,) = Call("questions:summarise", {"d": 4, "num_draws": 10}).measure(trials(1))
    assert found["cpu"] >= 0
    with pytest.raises(InputError, match="ended with code 1: ZeroDivisionError"):
        Command(("-c", "1 / 0")).measure(trials(1))


CLASS = np.zeros((4, 4))
CLASS[0, 1], CLASS[1, 2], CLASS[2, 1] = 1, 0.5, 0.5


@pytest.fixture
def interpreter(monkeypatch, tmp_path):
    """An interpreter with a BOSS that always finds v0 -> v1 - v2."""
    folder = tmp_path / "causallearn" / "search" / "PermutationBased"
    folder.mkdir(parents=True)
    (folder / "BOSS.py").write_text(
        "import numpy as np\n"
        "def boss(x, parameters, verbose):\n"
        "    graph = np.zeros((4, 4)); graph[0, 1], graph[1, 0] = -1, 1\n"
        "    graph[1, 2] = graph[2, 1] = -1\n"
        "    return type('Found', (), {'graph': graph})\n"
    )
    metadata = tmp_path / "causal_learn-0.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: causal-learn\nVersion: 0.0.1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(OPPONENTS, sys.executable)


def test_an_opponent_runs_in_its_own_interpreter(interpreter):
    runner = Opponent("boss", {"penalty": "matched"})
    assert runner.lacking() is None
    (found,) = runner.measure(trials(1))
    assert found["package_version"] == "0.0.1"
    assert found["expected_num_edges"] == 2.0  # one directed, one half and half
    assert found["expected_cpdag_shd"] > 0
    assert found["expected_shd"] == metrics.shd_of_marginals(CLASS, SMALL(1).graph)
    assert found["seconds"] >= 0


def test_an_estimate_that_points_from_environments_is_judged_among_the_variables():
    world = BrokenWorld("mixture", num_variables=4, edges_per_node=1, num_train=200)
    (found,) = FitRunner(CAM(num_samples=2), with_environment=True).measure([Trial({}, 1, world)])
    assert found["estimate_shd"] <= 12


def test_entries_without_a_truth_are_not_scored_of_opponents_either():
    source = SMALL(1)
    unknown = np.zeros((4, 4), dtype=bool)
    unknown[0, 1:], unknown[1:, 0] = True, True
    assert source.graph[unknown].any()
    found = {"edge": CLASS, "seconds": np.asarray(1.0), "cpu": np.asarray(1.0)}
    graphs = (CLASS == 1).astype(np.int8)[None]
    for more in ({"graphs": graphs}, {"cpdag": (CLASS > 0).astype(np.int8)}):
        judged = []
        for truth in (source.graph, np.where(unknown, 0, source.graph)):
            asked = replace(source, graph=truth.astype(np.int8), unknown=unknown)
            one = opponent_measures(found | more, asked)
            judged.append({name: one[name] for name in one if "cpdag" not in name})
        assert judged[0] == judged[1]
        assert judged[0]["expected_num_edges"] == 1.0


def test_an_opponent_for_columns_of_any_kind_is_told_their_kinds(monkeypatch, tmp_path):
    """A GES that finds an arrow from every category to the next column, if there is one."""
    (tmp_path / "pgmpy").mkdir()
    (tmp_path / "pgmpy" / "__init__.py").write_text("")
    (tmp_path / "pgmpy" / "structure_score.py").write_text("BICCondGauss = list\n")
    (tmp_path / "pgmpy" / "causal_discovery.py").write_text(
        "class GES:\n"
        "    def __init__(self, scoring_method): pass\n"
        "    def fit(self, frame):\n"
        "        labelled = frame.select_dtypes('category')\n"
        "        sorted_ = {c: labelled[c].cat.ordered for c in labelled}\n"
        "        ends = {(c, str(int(c) + 1)) for c in sorted_ if str(int(c) + 1) in frame}\n"
        "        classes = {pair for pair in ends if not sorted_[pair[0]]}\n"
        "        sides = {'directed_edges': classes, 'undirected_edges': ends - classes}\n"
        "        self.causal_graph_ = type('Found', (), sides)\n"
        "        return self\n"
    )
    metadata = tmp_path / "pgmpy-0.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: pgmpy\nVersion: 0.0.1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(OPPONENTS, sys.executable)
    source = MixedNetwork(6, num_train=50, num_test=0)(3)
    found = Opponent("ges_conditional_gaussian").found(source.train)
    expected = np.zeros((6, 6))
    for j, kind in enumerate(source.train.kinds[:-1]):
        if kind.is_discrete:
            ordered = kind.name == "ordinal"
            expected[j, j + 1] = 0.5 if ordered else 1
            expected[j + 1, j] = 0.5 if ordered else 0
    np.testing.assert_array_equal(found["edge"], expected)
    np.testing.assert_array_equal(found["cpdag"], expected > 0)


def test_an_opponent_without_an_interpreter_is_left_out_in_words(monkeypatch):
    monkeypatch.delenv(OPPONENTS, raising=False)
    assert f"set {OPPONENTS} to an interpreter" in str(Opponent("gadget").lacking())


def test_programs_whose_packages_the_interpreter_lacks_are_left_out_and_the_others_run(interpreter):
    assert Opponent("boss").lacking() is None
    words = str(Opponent("notears_mlp").lacking())
    assert "lacks gcastle" in words
    assert f"{sys.executable} -m pip install gcastle" in words
    parts = (
        Part("x", tuple(trials(1)), {"BOSS": Opponent("boss"), "NOTEARS": Opponent("notears_mlp")}),
    )
    tasks, left_out = plan([(Suite("", "", parts), Store(Path("nowhere")))])
    assert [task.method for task in tasks] == ["BOSS"]
    assert left_out == [f"NOTEARS: {words}"]


@pytest.mark.parametrize("interpreter", ["nowhere/python", str(Path(__file__))])
def test_what_is_no_interpreter_is_named(monkeypatch, interpreter):
    monkeypatch.setenv(OPPONENTS, interpreter)
    assert f"names {interpreter!r}, which cannot be used: " in str(Opponent("boss").lacking())


def test_every_program_names_its_packages_and_its_module():
    tables = runpy.run_path(str(EXTERNAL / "opponents.py"))
    assert set(tables["PROGRAMS"]) == set(tables["PACKAGES"]) == set(tables["MODULES"])


@dataclass(frozen=True)
class Doubted:
    """The small data set, one entry of whose truth nobody knows."""

    entry: tuple[int, int]

    def __call__(self, seed=0):
        source = SMALL(seed)
        unknown = np.zeros(source.graph.shape, dtype=bool)
        unknown[self.entry] = True
        return replace(source, unknown=unknown)


def test_entries_without_a_truth_are_not_scored():
    exact, truth = Exact(num_samples=50), SMALL(1).graph
    entry = tuple(int(i) for i in np.argwhere(truth)[0])
    (whole,) = FitRunner(exact).measure(trials(1))
    (partly,) = FitRunner(exact).measure([Trial({}, 1, Doubted(entry))])
    assert partly["num_true_edges"] == whole["num_true_edges"] - 1
    assert sum(count for count, _, _ in partly["curve"]) == 11
    assert sum(count for count, _, _ in whole["curve"]) == 12
    assert entry not in {(i, j) for i, j, _, _ in partly["errors"]}


def test_a_fit_is_measured_with_its_misfit_and_beside_the_base_rate():
    (found,) = FitRunner(Exact(num_samples=50), score_truth=False).measure(trials(1))
    (constant,) = BaseRate().measure(trials(1))
    assert found["base_rate"] == constant["base_rate"] == 4 / 12
    assert found["base_rate_log_score"] == constant["log_score"]
    assert constant["num_sure"] == 0
    assert found["num_sure"] >= found["num_sure_true"]
    assert len(found["misfits"]) == 4
    assert found["misfit"] >= 0
    assert "above_truth" not in found


def test_environments_are_handed_over_where_the_runner_says_so(monkeypatch):
    given, fit = [], fitting.fit

    def recording(data, method, *, environment=None, **options):
        given.append(environment)
        return fit(data, method, **options)

    monkeypatch.setattr(fitting, "fit", recording)
    mixture = BrokenWorld("mixture", num_variables=3, num_train=100)
    for told in (False, True):
        FitRunner("empty", with_environment=told).measure([Trial({}, 1, mixture)])
    assert given[0] is None
    np.testing.assert_array_equal(given[1], mixture(1).environment)


def test_a_fit_with_environments_is_judged_by_the_graph_of_the_variables():
    mixture = BrokenWorld("mixture", num_variables=3, num_train=200)
    exact = Exact(num_samples=100)
    trial = [Trial({}, 3, mixture)]
    (pooled,) = FitRunner(exact).measure(trial)
    (told,) = FitRunner(exact, references={"": exact}, with_environment=True).measure(trial)
    assert told["log_score"] != pooled["log_score"]
    assert told["varsortability"] == pooled["varsortability"]
    assert len(told["misfits"]) == 3
    assert told["edge_error"] == 0  # the reference knows the environments, too
    quick = FitRunner(Collapsed.PRESETS["quick"], with_environment=True)
    (found,) = quick.measure(trial)
    assert np.isfinite(found["above_truth"])


def test_engines_that_fit_many_are_told_the_environments():
    mixture = BrokenWorld("mixture", num_variables=3, num_train=60)
    told = [FitRunner(SHORT, with_environment=flag)._as_given(mixture(1)) for flag in (False, True)]
    assert [data.num_contexts for data in told] == [0, 2]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at /proc")
def test_another_package_ends_with_the_worker_that_waits_for_it(tmp_path):
    """A cell that ran out of time would otherwise go on, and slow down all that follow."""
    alive = tmp_path / "alive"
    child = (
        f"import sys, time; sys.path.insert(0, {str(EXTERNAL)!r}); import opponents\n"
        f"opponents.stop_with_parent(0.05); open({str(alive)!r}, 'w').close()\n"
        "time.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent])
    while not alive.exists():
        time.sleep(0.02)
    (number,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{number}").exists()
