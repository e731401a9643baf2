"""Cells and bags on a Dask cluster; by hand on one of processes, one of which is killed."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import distributed
import jax
import joblib
import numpy as np
import pytest

import bayesdag
from bayesdag.bench import Cell, Part, RunLimits, Store, Suite, load_suite, run_suite
from bayesdag.bench.cells import cell_text
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import Table, Trial
from bayesdag.bench.tables import page
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.errors import InputError
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.exact import Exact
from bayesdag.runs import parallel
from bayesdag.runs.memory_journal import MemoryJournal
from bayesdag.runs.recording import MonitorGroup
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS

pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages, in their threads


@contextmanager
def two_workers(**more) -> Iterator[str]:
    """The address of a cluster with two workers."""
    cluster: Any
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, **more
    ) as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture(scope="module")
def address():
    """Workers that are threads, spoken to through sockets: starting them costs little."""
    with two_workers(processes=False, protocol="tcp://") as found:
        yield found


@pytest.fixture(scope="module")
def address_of_processes():
    """Workers that are processes, which can be killed."""
    with two_workers(processes=True) as found:
        yield found


@dataclass(frozen=True)
class Interrupted:
    """A runner whose first attempt waits to be killed with the worker that began it."""

    folder: str
    together: bool = False
    accelerated: bool = False

    def lacking(self):
        return None

    def measure(self, trials):
        (trial,) = trials
        begun = Path(self.folder, f"{trial.seed}.begun")
        if trial.seed == 2 and not begun.exists():
            begun.write_text(str(os.getppid()))
            time.sleep(60)
        return [{"expected_shd": float(trial.seed)}]


def kill_when_begun(folder: Path) -> threading.Thread:
    """Kill -9 the worker that has begun the waiting cell."""

    def wait():
        begun = folder / "2.begun"
        while not begun.exists() or not begun.read_text():
            time.sleep(0.05)
        os.kill(int(begun.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True)
class Doomed:
    """A fit, on one data set of which the first attempt kills the worker that began it."""

    fit: FitRunner
    folder: str
    seed: int
    together: bool = False
    accelerated: bool = False

    def lacking(self):
        return None

    def measure(self, trials):
        begun = Path(self.folder, "begun")
        if trials[0].seed == self.seed and not begun.exists():
            begun.write_text(str(os.getppid()))
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return self.fit.measure(trials)


def without_times(text: str) -> str:
    """A page without the lines that say where and how long."""
    return text.partition("## Where the cells ran")[0]


def untimed(cell: Cell) -> dict[str, Any]:
    timed = ("seconds", "cpu", "memory_gb")
    return {name: value for name, value in cell.measures.items() if name not in timed}


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_but_the_cell_it_was_at(address_of_processes, tmp_path):
    trials = tuple(Trial({"d": 1}, seed, None) for seed in range(6))
    wanted = Suite("A title", "", (Part("only", trials, {"m": Interrupted(str(tmp_path))}),))
    store, seen = Store(tmp_path / "cells"), []
    killer = kill_when_begun(tmp_path)
    with parallel.using(address_of_processes):
        run_suite(wanted, store, limits=RunLimits(120.0), report=seen.append)
    killer.join(1)
    found = store.read()
    assert [(cell.seed, cell.status) for cell in found] == [(seed, "done") for seed in range(6)]
    assert [cell.measures["expected_shd"] for cell in found] == [float(s) for s in range(6)]
    # Every cell was delivered once, those of the killed worker included.
    assert sorted(cell.seed for cell in seen) == list(range(6))


def test_figures_of_a_cluster_are_those_of_one_machine(address, tmp_path):
    wanted = load_suite("trivial", "quick")
    part = wanted.parts[0]
    runners = {name: part.runners[name] for name in ("empty", "random_order", "sort_r2")}
    wanted = replace(wanted, parts=(replace(part, trials=part.trials[:2], runners=runners),))
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    run_suite(wanted, here)
    with parallel.using(address):
        run_suite(wanted, there)
    pages = [page("trivial", wanted, store.read()) for store in (here, there)]
    assert without_times(pages[0]) == without_times(pages[1])
    for one, other in zip(here.read(), there.read(), strict=True):
        assert untimed(one) == untimed(other)


@pytest.mark.slow
def test_figures_of_processes_one_of_which_is_killed_are_those_of_one_machine(
    address_of_processes, tmp_path
):
    """All that cells say is the same, byte by byte, but for times, memory and where they ran."""
    made = Synthetic(num_variables=3, edges_per_node=1, num_train=100, num_test=20)
    trials = tuple(Trial({"d": 3}, seed, made) for seed in range(1, 6))
    columns: Any = {"E-SHD": "expected_shd .3f", "log score": "log_score .6f", "NLL": "nll .6f"}
    table, fits = Table("", ("d", "method"), columns), ("exact", "random_order", "sort_r2")
    texts = []
    for where in ("here", "there"):
        folder, store = tmp_path / f"{where} first", Store(tmp_path / where)
        folder.mkdir()
        if where == "here":  # nobody is killed: the process that measures is the child of this one
            (folder / "begun").write_text("")
        runners = {name: Doomed(FitRunner(name), str(folder), 3) for name in fits}
        wanted = Suite("A title", "", (Part("only", trials, runners),), (table,))
        with parallel.using(address_of_processes if where == "there" else None):
            run_suite(wanted, store, limits=RunLimits(120.0))
        cells = [replace(cell, stamp={}, measures=untimed(cell)) for cell in store.read()]
        assert (folder / "begun").read_text() or where == "here"
        texts.append([page("only", wanted, cells), *map(cell_text, cells)])
    assert len(texts[0]) == 1 + len(fits) * len(trials)
    assert '"done"' in texts[0][1]
    assert texts[0] == texts[1]


def test_bags_fitted_apart_are_the_same(address):
    """Not as files: xarray asks for a lock of the cluster where a worker is of this process."""
    data = Synthetic(num_variables=3, edges_per_node=1, num_train=60, num_test=0)(1).train
    method = Bagged(Exact(num_samples=20), num_bags=3)
    here = bayesdag.fit(data, method, seed=1, keep_state=True)
    with parallel.using(address):
        there = bayesdag.fit(data, method, seed=1, keep_state=True)
    assert there.provenance == here.provenance
    for field in ("graphs", "weights", "params", "stats", "state"):
        jax.tree.map(np.testing.assert_array_equal, getattr(there, field), getattr(here, field))


@pytest.mark.slow
def test_families_trained_apart_end_in_the_same_bytes(address_of_processes, tmp_path):
    method = Exact(score=SMALL_NETWORKS, num_samples=20)
    made = Synthetic(num_variables=3, edges_per_node=1, num_train=NETWORK_ROWS, num_test=0)
    data = made(1).train
    bayesdag.fit(data, method, seed=1).save(tmp_path / "here.nc")
    with parallel.using(address_of_processes):
        bayesdag.fit(data, method, seed=1).save(tmp_path / "there.nc")
    assert (tmp_path / "here.nc").read_bytes() == (tmp_path / "there.nc").read_bytes()


def test_what_is_kept_of_a_task_goes_with_it_and_comes_back():
    journal = MemoryJournal()
    scope = MonitorGroup((journal,)).child("bag 1")
    scope.recall("searched", lambda: {"x": np.ones(1)})
    elsewhere = MemoryJournal.knowing(scope.records())
    group = MonitorGroup((elsewhere,))
    group.recall("searched", lambda: pytest.fail("it was known"))
    group.recall("trained", lambda: {"y": np.ones(2)})
    assert list(elsewhere.added()) == ["trained"]
    scope.keep(elsewhere.added())
    assert sorted(journal.names()) == ["bag 1/searched", "bag 1/trained"]


def test_without_a_cluster_tasks_run_here_in_their_order():
    assert parallel.current().map(divmod, [(7, 2), (9, 4)]) == [(3, 1), (2, 1)]
    with parallel.using(None) as workers:
        assert not workers.elsewhere


def test_processes_of_this_machine_are_a_cluster_too():
    with parallel.using("loky://2") as workers:
        assert workers.map(divmod, [(7, 2), (9, 4)]) == [(3, 1), (2, 1)]
        assert parallel.current() is workers
        assert workers.num == joblib.effective_n_jobs(2)
    assert not parallel.current().elsewhere


def test_what_ended_well_is_handed_over_before_an_error_is_raised():
    done = []
    with parallel.using("loky://2") as workers, pytest.raises(ZeroDivisionError):
        workers.map_each(divmod, [(7, 2), (1, 0), (9, 4)], lambda *ended: done.append(ended))
    assert sorted(done) == [(0, (3, 1)), (2, (2, 1))]


def test_a_cluster_that_cannot_be_reached_is_refused_in_words(monkeypatch):
    with pytest.raises(InputError, match="no cluster is called 'slurm://x'; there are: dask"):
        parallel.using("slurm://x").__enter__()
    with pytest.raises(InputError, match="say how many processes, as in loky://4"):
        parallel.using("loky://many").__enter__()
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(InputError, match=r"needs the package distributed; run pip install 'bay"):
        parallel.using("dask://nowhere").__enter__()
