"""The runner: resumes, gives up in time, and keeps what failed."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bayesdag.bench import (
    Cell,
    Part,
    Processes,
    RunLimits,
    Selection,
    Store,
    Suite,
    load_suite,
    released,
    run_suite,
    run_suites,
    running,
    worker,
    write_page,
)
from bayesdag.bench.columns import ADDITIVE, ENGINES, RIVALS, SYSTEMS, TRAINED, rivals
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.planning import Task, plan, select
from bayesdag.bench.suite import BASELINES, Trial, describe_suites, suite_names
from bayesdag.bench.tables import page
from bayesdag.bench.worker import Outcome, Worker
from bayesdag.errors import InputError

JUDGED = (
    *("trivial", "linear", "nonlinear", "joint", "neural_scores"),
    *("broken_worlds", "measured", "exchangeable_pairs", "additive_kinds"),
    *("paper_linear", "paper_measured", "variations", "effects"),
    *("published_settings", "baseline_posteriors", "certainty_ablations"),
)


@dataclass(frozen=True)
class Fragile:
    """A runner that does what the setting says."""

    together: bool = False
    networks: bool = False

    @property
    def accelerated(self):
        return self.networks

    def lacking(self):
        return None

    def measure(self, trials):
        return [self._one(trial) for trial in trials]

    def _one(self, trial):
        match trial.setting["does"]:
            case "raise":
                raise ValueError("no such | luck")
            case "hang":
                time.sleep(60)
            case "fill":
                filled = b"x" * 1_000_000_000
                time.sleep(60 + len(filled) % 2)
            case "die":
                os._exit(7)
        return {"expected_shd": float(trial.seed), "process": os.getpid()}


def suite(*does: str, seeds=(1,), name="only", methods=("fragile",), **options) -> Suite:
    trials = tuple(Trial({"does": word}, seed, None) for word in does for seed in seeds)
    runners = {method: Fragile() for method in methods}
    return Suite("A title", "", (Part(name, trials, runners, **options),))


@pytest.fixture(scope="module")
def mishaps(tmp_path_factory):
    """One run in which a cell raises, one hangs, one dies, and the last answers."""
    store = Store(tmp_path_factory.mktemp("mishaps"))
    run_suite(suite("raise", "hang", "die", "answer"), store, limits=RunLimits(2.0))
    return store


def test_whatever_happens_to_a_cell_is_recorded_and_the_others_run(mishaps):
    found = {cell.setting["does"]: (cell.status, cell.error) for cell in mishaps.read()}
    assert found == {
        "raise": ("failed", "ValueError: no such | luck"),
        "hang": ("out of time", "stopped after 2 s"),
        "die": ("failed", "the process ended with code 7"),
        "answer": ("done", ""),
    }


def test_every_cell_is_stamped(mishaps):
    for cell in mishaps.read():
        assert {"commit", "version", "python", "jax", "device", "seconds", "settings"} <= set(
            cell.stamp
        )
        assert cell.stamp["seconds"] >= 0


def test_lost_cells_are_shown_with_their_reason(mishaps):
    shown = page("name", suite("answer"), mishaps.read())
    assert "## Lost cells" in shown
    assert "| only | raise | fragile | 1 | failed | ValueError: no such \\| luck |" in shown
    assert "stopped after 2 s" in shown


def test_stored_cells_are_not_run_again_and_lost_ones_only_when_asked(mishaps):
    runs = []
    run_suite(suite("raise", "answer"), mishaps, report=runs.append)
    assert runs == []
    run_suite(suite("raise", "answer"), mishaps, Selection(retry=True), report=runs.append)
    assert [cell.setting["does"] for cell in runs] == ["raise"]


def test_a_part_keeps_its_process_unless_every_cell_wants_a_fresh_one(tmp_path):
    def processes(name, **options):
        store = Store(tmp_path / name)
        run_suite(suite("answer", seeds=(1, 2), **options), store)
        return {cell.measures["process"] for cell in store.read()}

    assert len(processes("kept")) == 1
    assert len(processes("fresh", fresh=True)) == 2


def test_interleaved_parts_take_turns_and_finish_a_data_set_before_the_next(tmp_path):
    def order(**options):
        both = [
            (
                suite("answer", seeds=seeds, name=name, methods=("a", "b"), **options),
                Store(tmp_path),
            )
            for name, seeds in (("one", (1, 2)), ("two", (1,)))
        ]
        return [f"{t.part.name} {t.method}{t.batch[0].seed}" for t in plan(both)[0]]

    assert order() == ["one a1", "one a2", "one b1", "one b2", "two a1", "two b1"]
    turns = ["one a1", "one b1", "two a1", "two b1", "one a2", "one b2"]
    assert order(interleaved=True) == turns


class Instant(Worker):
    """A worker that starts no process, and takes as long as the seed says, in seconds."""

    def measure(self, runner, trials, limit, gigabytes=None):
        seconds = trials[0].seed
        time.sleep(min(seconds, limit))
        done = seconds < limit
        measures = [{"process": id(self)}] if done else []
        return Outcome("done" if done else "out of time", measures, "", float(seconds), {})


@pytest.fixture
def instant(monkeypatch):
    monkeypatch.setattr(running, "Worker", Instant)


def test_a_run_ends_in_time_and_the_same_command_goes_on(instant, tmp_path):
    store = Store(tmp_path)
    wanted = suite("answer", seeds=(0, 60, 61))
    left_out = run_suites([(wanted, store)], limits=RunLimits(minutes=0.005))
    assert left_out[0] == "2 cells: the time limit of 0.005 minutes was reached"
    # As its worker says, whose seconds are those that the cell asks for.
    assert left_out[1].startswith("cut short after 60 s: answer, fragile, seed 60; it begins anew")
    # The cell that was cut short did not fail: it was not measured.
    assert [(cell.seed, cell.status) for cell in store.read()] == [(0, "done")]
    run_suites([(wanted, store)], limits=RunLimits(0.1, minutes=1.0))
    assert {cell.seed: cell.status for cell in store.read()} == {
        0: "done",
        60: "out of time",
        61: "out of time",
    }


def test_several_processes_share_the_work(instant, tmp_path):
    store = Store(tmp_path)
    run_suites(
        [(suite("nap", "answer", "more", "last"), store)],
        limits=RunLimits(9.0),
        processes=Processes(2),
    )
    found = store.read()
    assert len(found) == 4
    assert len({cell.measures["process"] for cell in found}) == 2
    assert {cell.stamp["note"] for cell in found} == {"several cells at once"}
    with pytest.raises(InputError, match="jobs is 0; it must be 1 or more"):
        Processes(0)


def test_a_run_says_on_every_cell_that_its_machine_was_shared(instant, tmp_path):
    store = Store(tmp_path)
    run_suites([(suite("answer"), store)], processes=Processes(note="shared machine"))
    run_suites([(suite("more", "last"), store)], processes=Processes(2, note="shared machine"))
    notes = {cell.setting["does"]: cell.stamp["note"] for cell in store.read()}
    together = "several cells at once, shared machine"
    assert notes == {"answer": "shared machine", "more": together, "last": together}


def test_an_error_of_ours_ends_all_workers(instant, tmp_path):
    def broken(cell):
        raise RuntimeError("no screen")

    with pytest.raises(RuntimeError, match="no screen"):
        run_suites(
            [(suite("answer", "more"), Store(tmp_path))], processes=Processes(2), report=broken
        )


def test_a_suite_cannot_name_a_method_that_is_not_there():
    with pytest.raises(InputError, match="no method is called 'later'; there are: auto"):
        FitRunner("later")


def test_baselines_stay_whatever_methods_are_asked_for():
    wanted = load_suite("nonlinear", "quick")
    (part,) = wanted.parts
    assert set(select(part, ["exact"], wanted)) == {"exact", *BASELINES}
    assert select(part, ["auto"], wanted)["auto"] == FitRunner("auto")


def test_unknown_names_are_refused_before_anything_runs(tmp_path):
    wanted = load_suite("nonlinear", "quick")
    with pytest.raises(InputError, match="no method is called 'exakt'; did you mean 'exact'"):
        run_suite(wanted, Store(tmp_path), Selection(methods=("exakt",)))
    with pytest.raises(InputError, match="no part is called 'size'; did you mean 'sizes'"):
        run_suite(wanted, Store(tmp_path), Selection(parts=("size",)))
    with pytest.raises(InputError, match="no suite is called 'all'; there are: ablations"):
        load_suite("all")
    with pytest.raises(InputError, match="no size is called 'large'; there are: quick, paper"):
        load_suite("linear", "large")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["quick", "paper"])
@pytest.mark.parametrize("name", suite_names())
def test_every_suite_is_whole(name, size):
    found = load_suite(name, size)
    shown = {column.split()[0] for table in found.tables for column in table.columns.values()}
    assert describe_suites()[name].endswith(".")
    assert shown
    for part in found.parts:
        assert part.trials
        assert part.runners
        assert part.limit > 0
        keys = [(str(trial.setting), trial.seed) for trial in part.trials]
        assert len(keys) == len(set(keys)), "a cell twice"


def test_quick_sizes_leave_out_rivals_that_train_networks():
    assert set(rivals("paper")) == set(RIVALS)
    assert set(RIVALS) - set(rivals("quick")) == set(TRAINED)
    for name in ("paper_linear", "paper_measured", "variations", "rivals"):
        asked = {method for part in load_suite(name, "quick").parts for method in part.runners}
        assert not asked & set(TRAINED), name
        assert set(rivals("quick")) <= asked, name


def test_baselines_are_in_every_part_that_judges_graphs():
    for name in JUDGED:
        parts = [part for part in load_suite(name).parts if part.name not in ("time", "exact")]
        # Other columns are measured on data sets of a part that has the baselines.
        judged = [p for p in parts if not any(w in p.name for w in ("others", "5 rivals"))]
        for part in judged:
            if any(isinstance(runner, FitRunner) for runner in part.runners.values()):
                assert set(BASELINES) <= set(part.runners), (name, part.name)


@pytest.mark.parametrize(
    "name",
    [
        *("paper_nonlinear", "paper_measured", "variations", "growth"),
        *("broken_worlds", "measured", "gaps", "kinds_of_columns", "pooled", "effects"),
    ],
)
def test_engines_published_systems_and_rivals_are_columns_of_every_suite(name):
    asked = {method for part in load_suite(name).parts for method in part.runners}
    needed = {**ENGINES["paper"], **SYSTEMS["paper"], **ADDITIVE["paper"], **RIVALS}
    assert set(needed) <= asked
    assert set(BASELINES) <= asked or name == "growth"


def test_on_linear_data_engines_with_lines_stand_beside_everyone_else():
    asked = {method for part in load_suite("paper_linear").parts for method in part.runners}
    published = {*SYSTEMS["paper"], "dibs, published"} - {"dibs"}  # the preset for lines
    assert {*ENGINES["paper"], *published, *ADDITIVE["paper"], *RIVALS, *BASELINES} <= asked


def test_a_marking_is_for_methods_that_understand_it():
    parts = {part.name: set(part.runners) for part in load_suite("measured").parts}
    assert set(RIVALS) <= parts["others, nothing"]
    for name in ("others, targets", "others, environment"):
        assert parts[name] < parts["others, nothing"] - set(RIVALS)
    assert "bootstrap_ges" not in parts["others, targets"]
    assert "bcd" not in parts["others, environment"]


def test_the_smallest_suite_runs_and_writes_its_tables(tmp_path):
    wanted, store = load_suite("trivial", "quick"), Store(tmp_path / "trivial")
    part = wanted.parts[0]
    wanted = replace(wanted, parts=(replace(part, trials=part.trials[:2]),))
    run_suite(wanted, store)
    write_page(tmp_path / "trivial.md", "trivial", wanted, store)
    assert {(cell.method, cell.status) for cell in store.read()} == {
        (method, "done") for method in BASELINES
    }
    shown = (tmp_path / "trivial.md").read_text()
    assert "| nonlinear ER d=5 | raw | empty | 2 | 5.0 ± 0.0 |" in shown


def test_data_sets_of_a_suite_that_may_be_stopped_cover_all_families_from_the_start():
    for part in load_suite("broken_worlds").parts[:2]:
        num = len({trial.setting["data"] for trial in part.trials})
        for start in range(0, len(part.trials), num):
            assert len({t.setting["data"] for t in part.trials[start : start + num]}) == num
        seeds = len({trial.seed for trial in part.trials})
        first = [t.setting for t in part.trials[: 6 * seeds * num : seeds * num]]
        assert len({s["rows"] for s in first}) == len({s["d"] for s in first}) == 3


def test_no_family_and_no_seed_is_in_both_halves():
    development, figures, others = load_suite("broken_worlds").parts
    assert {str(trial) for trial in others.trials} < {str(trial) for trial in figures.trials}
    families = [{t.setting["data"] for t in part.trials} for part in (development, figures)]
    assert not families[0] & families[1]
    assert max(t.seed for t in development.trials) < 1000 <= min(t.seed for t in figures.trials)


def test_processes_share_the_memory_of_an_accelerator(monkeypatch):
    monkeypatch.delenv(worker._MEMORY, raising=False)
    task = Task(Store(Path("x")), suite("answer").parts[0], "fragile", Fragile(networks=True), [])
    assert Processes(1).place(task).environment() == {}
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    one_thread = dict.fromkeys(worker._BLAS, "1")
    expected = {worker._MEMORY: "0.113", "BAYESDAG_WORKERS": "2"} | one_thread
    assert Processes(8).place(task).environment() == expected
    expected = {worker._MEMORY: "0.450", "BAYESDAG_WORKERS": "3"} | one_thread
    assert Processes(gpu=2, cpu=9).place(task).environment() == expected


def test_fresh_cells_use_no_program_that_another_process_has_compiled():
    part = suite("answer", fresh=True).parts[0]
    for runner in (Fragile(), Fragile(networks=True)):
        task = Task(Store(Path("x")), part, "fragile", runner, [])
        for asked in (Processes(1), Processes(8), Processes(gpu=2, cpu=9)):
            assert asked.place(task).environment()["BAYESDAG_CACHE"] == "off"


def test_cells_without_networks_run_beside_the_others_in_one_thread_and_off_the_accelerator():
    task = Task(Store(Path("x")), suite("answer").parts[0], "fragile", Fragile(), [])
    given = Processes(gpu=2, cpu=9).place(task).environment()
    assert given["JAX_PLATFORMS"] == "cpu"
    assert given["OMP_NUM_THREADS"] == given["BAYESDAG_WORKERS"] == "1"
    assert "intra_op_parallelism_threads=1" in given["XLA_FLAGS"]


def test_accelerated_cells_queue_for_their_processes_which_then_help_the_others(instant, tmp_path):
    def named(*networks):
        trials = tuple(Trial({"does": "x"}, 0, None) for _ in networks)
        pairs = zip(trials, networks, strict=True)
        parts = (Part(f"p{k}", (t,), {"m": Fragile(networks=n)}) for k, (t, n) in enumerate(pairs))
        return [(Suite("A title", "", tuple(parts)), Store(tmp_path / str(networks)))]

    def order(lanes, *networks):
        found = []
        left = run_suites(named(*networks), processes=lanes, report=lambda c: found.append(c.part))
        return found, left

    assert order(Processes(gpu=1), False, True, False, True)[0] == ["p1", "p3", "p0", "p2"]
    found, left = order(Processes(cpu=1), False, True)
    assert found == ["p0"]
    (words,) = left
    assert words.startswith("1 cells want an accelerator: no process takes them (--gpu-jobs, or")
    found, left = order(Processes(cpu=1, on_cores=("m",)), False, True, True)
    assert (found, left) == (["p0", "p1", "p2"], [])


def test_methods_that_are_to_use_cores_leave_the_accelerator_alone(tmp_path):
    part, store = suite("answer").parts[0], Store(tmp_path)
    task = Task(store, part, "fragile", Fragile(networks=True), [])
    given = Processes(gpu=1, cpu=9, on_cores=("fragile",)).place(task).environment()
    assert given == Processes(cpu=9).place(task._replace(runner=Fragile())).environment()
    assert given["JAX_PLATFORMS"] == "cpu"
    with pytest.raises(InputError, match="on_cores needs processes of one core each"):
        Processes(on_cores=("fragile",))
    with pytest.raises(InputError, match="no method is called 'frail'; did you mean 'fragile'"):
        run_suite(suite("answer"), store, processes=Processes(cpu=1, on_cores=("frail",)))


def test_data_sets_that_are_fitted_together_are_no_more_than_asked():
    trials = suite("answer", "more", seeds=range(5)).parts[0].trials
    wanted = Suite("A title", "", (Part("only", trials, {"m": Fragile(together=True)}),))

    def sizes(together):
        tasks, _ = plan([(wanted, Store(Path("nowhere")))], together=together)
        assert [trial for task in tasks for trial in task.batch] == list(trials)
        return [len(task.batch) for task in tasks]

    assert sizes(None) == [5, 5]
    assert sizes(2) == [2, 2, 1, 2, 2, 1]
    with pytest.raises(InputError, match="together is 0; it must be 1 or more"):
        RunLimits(together=0)


def test_methods_that_gain_by_an_accelerator_are_known():
    assert FitRunner("bayesdag").accelerated
    assert FitRunner("dds").accelerated
    assert FitRunner("dibs").accelerated  # thousands of graphs per step, without a network, too
    assert not FitRunner("collapsed").accelerated
    assert not FitRunner("cam").accelerated


# JAX reserves most of an accelerator's memory for the first process that asks for a device.
PLANNING = """
from bayesdag.bench import Processes, load_suite
from bayesdag.bench.planning import Task
from bayesdag.bench.running import _settings
from bayesdag.bench.suite import suite_names
for suite in map(load_suite, suite_names()):
    parts = {name: part for part in suite.parts for name in part.runners}
    for name, part in parts.items():
        runner = part.runners[name]
        runner.together, runner.lacking(), _settings(runner)
        Processes(gpu=1, cpu=1).place(Task(None, part, name, runner, []))
"""


def test_the_runner_leaves_devices_to_the_processes_that_measure():
    asked = os.environ | {"JAX_PLATFORMS": "nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", PLANNING], env=asked, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", suite_names())
def test_memory_in_tables_is_that_of_one_fit(name):
    wanted = load_suite(name, "paper")
    for table in wanted.tables:
        if any("memory_gb" in column for column in table.columns.values()):
            shown = [part for part in wanted.parts if part.name in table.parts or not table.parts]
            assert all(part.fresh for part in shown), table.title


def test_a_cell_that_takes_too_much_memory_is_stopped_and_recorded(tmp_path):
    store = Store(tmp_path)
    run_suite(suite("fill", "answer"), store, limits=RunLimits(60.0, gigabytes=0.8))
    found = {cell.setting["does"]: (cell.status, cell.error) for cell in store.read()}
    assert found == {
        "fill": ("out of memory", "stopped at more than 0.8 GB"),
        "answer": ("done", ""),
    }


def test_only_the_asked_seeds_are_run(instant, tmp_path):
    store = Store(tmp_path)
    run_suite(suite("answer", "more", seeds=(0, 1)), store, Selection(seeds=range(1)))
    assert [cell.seed for cell in store.read()] == [0, 0]


def test_cells_of_another_commit_are_run_again_when_asked(instant, tmp_path):
    store, runs = Store(tmp_path), []
    wanted = suite("answer", seeds=(0,))
    run_suite(wanted, store)
    (cell,) = store.read()
    store.write(replace(cell, stamp={**cell.stamp, "commit": "another"}))
    run_suite(wanted, store, report=runs.append)
    assert runs == []
    run_suite(wanted, store, Selection(renew=True), report=runs.append)
    assert len(runs) == 1


def test_data_sets_of_a_release_are_others_and_are_scored_once(instant, tmp_path):
    wanted = released(suite("answer", seeds=(5, 1000, 1001)))
    assert [trial.seed for trial in wanted.parts[0].trials] == [5, 2000, 2001]
    assert released(wanted) == wanted
    store = Store(tmp_path)
    store.write(Cell("only", {"does": "answer"}, "fragile", 2000))
    with pytest.raises(InputError, match="scored once, so --renew is refused"):
        plan([(wanted, store)], Selection(renew=True))


def test_cells_that_are_known_from_elsewhere_are_not_measured(instant, tmp_path):
    wanted, there = suite("answer", seeds=(0,)), Store(tmp_path / "there")
    run_suite(wanted, there)
    there.pack()
    here, runs = Store(tmp_path / "here", (there,)), []
    run_suite(wanted, here, report=runs.append)
    assert runs == []
    assert here.read() == []
