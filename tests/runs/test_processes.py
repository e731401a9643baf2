"""Tasks on several processes: the same results, in order, and errors in words."""

import os
import subprocess
import sys

import numpy as np
import pytest

from bayesdag.errors import BayesdagError, InputError
from bayesdag.runs import processes


@pytest.fixture
def two(monkeypatch):
    pytest.importorskip("loky")
    monkeypatch.setenv(processes.VARIABLE, "2")


def squares(values):
    return values**2, os.getpid()


def end_this_process():
    os._exit(9)


def test_tasks_run_elsewhere_and_come_back_in_their_order(two):
    tasks = [(np.arange(3.0) + k,) for k in range(6)]
    found = processes.compute(squares, tasks)
    for (given,), (value, _) in zip(tasks, found, strict=True):
        np.testing.assert_array_equal(value, given**2)
    assert os.getpid() not in {pid for _, pid in found}


def test_one_worker_is_this_process(monkeypatch):
    monkeypatch.setenv(processes.VARIABLE, "1")
    assert processes.compute(squares, [(np.ones(1),)])[0][1] == os.getpid()


def test_a_process_that_is_ended_is_an_error_in_words(two):
    with pytest.raises(BayesdagError, match="BAYESDAG_WORKERS=1"):
        processes.compute(end_this_process, [()])
    assert processes.compute(squares, [(np.ones(1),)])[0][0] == 1  # and others take its place


@pytest.mark.parametrize("said", ["0", "many", "-1", "1.5"])
def test_a_number_that_is_none_is_refused(said, monkeypatch):
    monkeypatch.setenv(processes.VARIABLE, said)
    with pytest.raises(InputError, match=processes.VARIABLE):
        processes.number()


def test_blas_has_one_thread_inside_and_its_own_number_afterwards():
    control = pytest.importorskip("threadpoolctl").ThreadpoolController

    def threads():
        np.linalg.cholesky(np.eye(2))
        return {one["num_threads"] for one in control().info() if one["user_api"] == "blas"}

    before = threads()
    with processes.one_blas_thread():
        assert threads() == {1}
    assert threads() == before


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says what is loaded")
def test_openblas_has_one_thread_inside_where_no_package_sees_to_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)

    def threads():
        np.linalg.cholesky(np.eye(2))
        return [threads() for threads, _ in processes._openblas()]

    before = threads()
    assert before, "neither NumPy nor SciPy has an OpenBLAS here"
    with processes.one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before


def test_a_worker_has_no_workers(two):
    assert processes.compute(processes.number, [()]) == [1]


def test_the_limit_finds_a_blas_that_nothing_has_loaded_yet():
    pytest.importorskip("threadpoolctl")
    program = (
        "from bayesdag.runs.processes import one_blas_thread\n"
        "from threadpoolctl import threadpool_info\n"
        "with one_blas_thread():\n"
        "    import numpy, scipy.linalg\n"
        "    print({one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas'})"
    )
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"OPENBLAS_NUM_THREADS": "2"},
    )
    assert done.stdout.strip() == "{1}"


def total(sent, factor):
    return float(processes.received(sent).sum() * factor), os.getpid()


def _is_kept(sent):
    assert isinstance(sent, processes.Kept)
    return os.path.exists(sent.path)


def test_what_was_sent_once_is_found_by_every_task_and_removed_in_the_end(two):
    sending = processes._Sending()
    rows, other = np.arange(1000.0), np.ones(3)
    with sending(rows) as sent:
        assert not isinstance(sent, np.ndarray)
        found = processes.compute(total, [(sent, k) for k in range(4)])
        assert [value for value, _ in found] == [rows.sum() * k for k in range(4)]
        assert os.getpid() not in {pid for _, pid in found}
    with sending(rows) as again, sending(other) as another:
        assert again == sent != another
        # Nothing that a task may need is removed, however many values there are.
        with sending(np.zeros(2)) as third:
            assert all(_is_kept(one) for one in (again, another, third))
    assert len(sending._kept) == processes._MOST_KEPT
    sending.forget_all()
    assert not any(_is_kept(one) for one in (sent, another, third))


def test_a_value_that_cannot_be_written_travels_with_every_task(two, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(processes.tempfile, "mkstemp", full)
    rows = np.ones(3)
    with processes.sent_once(rows) as sent:
        assert sent is rows
        assert processes.compute(total, [(sent, 2)])[0][0] == 6


def test_one_process_is_handed_the_value_itself(monkeypatch):
    monkeypatch.setenv(processes.VARIABLE, "1")
    rows = np.ones(3)
    with processes.sent_once(rows) as sent:
        assert sent is rows
        assert processes.received(sent) is rows
