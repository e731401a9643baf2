"""The runner: resumes, gives up in time, and keeps what failed."""

import os
import time
from dataclasses import dataclass, replace

import pytest

from bayesdag.bench import Part, Store, Suite, load_suite, run_suite, write_page
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.running import select
from bayesdag.bench.suite import BASELINES, Trial, describe_suites, suite_names
from bayesdag.bench.tables import page
from bayesdag.errors import InputError


@dataclass(frozen=True)
class Fragile:
    """A runner that does what the setting says."""

    together: bool = False

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
            case "die":
                os._exit(7)
        return {"expected_shd": float(trial.seed), "process": os.getpid()}


def suite(*does: str, seeds=(1,), **options) -> Suite:
    trials = tuple(Trial({"does": word}, seed, None) for word in does for seed in seeds)
    return Suite("A title", "", (Part("only", trials, {"fragile": Fragile()}, **options),))


@pytest.fixture(scope="module")
def mishaps(tmp_path_factory):
    """One run in which a cell raises, one hangs, one dies, and the last answers."""
    store = Store(tmp_path_factory.mktemp("mishaps"))
    run_suite(suite("raise", "hang", "die", "answer"), store, limit=2.0)
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
    run_suite(suite("raise", "answer"), mishaps, retry=True, report=runs.append)
    assert [cell.setting["does"] for cell in runs] == ["raise"]


def test_a_part_keeps_its_process_unless_every_cell_wants_a_fresh_one(tmp_path):
    def processes(name, **options):
        store = Store(tmp_path / name)
        run_suite(suite("answer", seeds=(1, 2), **options), store)
        return {cell.measures["process"] for cell in store.read()}

    assert len(processes("kept")) == 1
    assert len(processes("fresh", fresh=True)) == 2


def test_baselines_stay_whatever_methods_are_asked_for():
    wanted = load_suite("nonlinear", "quick")
    (part,) = wanted.parts
    assert set(select(part, ["exact"], wanted)) == {"exact", *BASELINES}
    assert select(part, ["auto"], wanted)["auto"] == FitRunner("auto")


def test_unknown_names_are_refused_before_anything_runs(tmp_path):
    wanted = load_suite("nonlinear", "quick")
    with pytest.raises(InputError, match="no method is called 'exakt'; did you mean 'exact'"):
        run_suite(wanted, Store(tmp_path), methods=["exakt"])
    with pytest.raises(InputError, match="no part is called 'size'; did you mean 'sizes'"):
        run_suite(wanted, Store(tmp_path), parts=["size"])
    with pytest.raises(InputError, match="no suite is called 'all'; there are: additive_kinds"):
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


def test_baselines_are_in_every_part_that_judges_graphs():
    for name in ("trivial", "linear", "nonlinear", "joint", "neural_scores"):
        judged = [p for p in load_suite(name).parts if p.name not in ("time", "exact")]
        for part in judged:
            if any(isinstance(runner, FitRunner) for runner in part.runners.values()):
                assert set(BASELINES) <= set(part.runners), (name, part.name)


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
