"""The file of a result: never overwritten unasked, never half-written, never lost."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from bayesdag import fitting, load
from bayesdag.runs import files
from tests.toys import toy_frame

FIT = ("fit", "toy.csv", "--out", "toy.nc", "--method", "empty")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table and its result."""
    path = tmp_path_factory.mktemp("fitted")
    toy_frame().to_csv(path / "toy.csv", index=False)
    fitting.fit(path / "toy.csv", "empty").save(path / "toy.nc")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with a table, where commands run."""
    toy_frame().to_csv(tmp_path / "toy.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_fit(monkeypatch):
    """Fail where something is fitted."""

    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(fitting, "fit", fit)


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def refuse(number: int, *, below: Path):
    """An `os.replace` that refuses to write into one folder."""
    real = os.rename

    def replace(source, target):
        if Path(target).absolute().is_relative_to(below):
            raise OSError(number, os.strerror(number))
        return real(source, target)

    return replace


def test_a_foreign_file_is_not_overwritten(folder, command, no_fit):
    (folder / "toy.nc").write_text("my thesis")
    code, _, stderr = command(*FIT)
    assert code == 2
    assert "toy.nc is not overwritten: it is no result of this program" in stderr
    assert "--force" in stderr
    assert (folder / "toy.nc").read_text() == "my thesis"
    assert names(folder) == {"toy.csv", "toy.nc"}


def test_a_file_is_overwritten_by_force(folder, command):
    (folder / "toy.nc").write_text("an old draft")
    assert command(*FIT, "--force")[0] == 0
    assert load("toy.nc").names == ("rain", "soil", "crop", "price")
    assert names(folder) == {"toy.csv", "toy.nc"}


def test_a_finished_result_is_shown_and_not_fitted_again(folder, command, monkeypatch):
    first = command(*FIT)
    before = (folder / "toy.nc").read_bytes()
    (folder / "toy.nc.partial").write_text("left by a kill after the result was written")
    monkeypatch.setattr(fitting, "fit", None)
    code, stdout, stderr = command(*FIT)
    assert code == 0
    assert stdout == first[1]
    assert "toy.nc holds this very result already; --force fits it again" in stderr
    assert (folder / "toy.nc").read_bytes() == before
    assert names(folder) == {"toy.csv", "toy.nc"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--seed", "1"], "another seed"),
        (["--set", "num_samples=7"], "another method"),
        (["--scaling", "none"], "another scaling"),
        (["--keep-state"], "without the state"),
    ],
)
def test_a_result_of_other_settings_is_not_overwritten(folder, fitted, command, change, words):
    shutil.copy(fitted / "toy.nc", folder)
    before = (folder / "toy.nc").read_bytes()
    code, _, stderr = command(*FIT, *change)
    assert code == 2
    assert words in stderr
    assert (folder / "toy.nc").read_bytes() == before
    assert names(folder) == {"toy.csv", "toy.nc"}


def test_no_other_command_overwrites_either(folder, fitted, command):
    shutil.copy(fitted / "toy.nc", folder)
    fitting.fit("toy.csv", "empty", seed=1).save("other.nc")
    for out in ("mine.nc", "mine.csv", "demo.nc"):
        (folder / out).write_text("mine")
    for arguments in (
        ("merge", "toy.nc", "other.nc", "--out", "mine.nc"),
        ("extend", "toy.nc", "toy.csv", "--num-samples", 5, "--out", "mine.nc"),
        ("extend", "toy.nc", "toy.csv", "--num-samples", 5, "--out", "toy.nc"),
        ("export", "toy.nc", "--out", "mine.csv"),
        ("demo",),
    ):
        before = {path: path.read_bytes() for path in folder.iterdir()}
        code, stdout, stderr = command(*arguments)
        assert code == 2, arguments
        assert "is not overwritten" in stderr
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert command("merge", "toy.nc", "other.nc", "--out", "mine.nc", "--force")[0] == 0
    assert load("mine.nc").num_chains == 2
    assert command("export", "toy.nc", "--out", "mine.csv", "--force")[0] == 0
    assert "probability" in (folder / "mine.csv").read_text()


def test_an_extension_that_is_there_is_not_run_again(folder, fitted, command, monkeypatch):
    extend = ("extend", fitted / "toy.nc", "toy.csv", "--num-samples", 5, "--out", "longer.nc")
    first = command(*extend)
    assert first[0] == 0
    assert load("longer.nc").num_draws == 105
    monkeypatch.setattr(fitting, "extend", None)
    assert command(*extend)[:2] == first[:2]
    code, _, stderr = command(*extend[:3], "--num-samples", 7, "--out", "longer.nc")
    assert code == 2
    assert "105 draws per chain" in stderr
    fitting.fit("toy.csv", "random_order").save("random.nc")
    code, _, stderr = command("extend", "random.nc", *extend[2:])
    assert code == 2
    assert "longer.nc is not overwritten: it holds a result with another method" in stderr


def test_a_folder_as_out_is_refused_with_a_name_to_use(folder, command, no_fit):
    (folder / "results.nc").mkdir()
    code, _, stderr = command(*FIT[:3], "results.nc")
    assert code == 2
    assert "results.nc is a folder; name a file in it, such as results.nc/result.nc" in stderr


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_seen_before_the_fit(
    folder, command, no_fit, monkeypatch, number
):
    real = os.open

    def refuse(path, flags, *more, **others):
        if flags & os.O_CREAT and str(path).endswith(".tmp"):
            raise OSError(number, os.strerror(number))
        return real(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", refuse)
    code, _, stderr = command(*FIT)
    assert code == 2
    assert re.fullmatch(r"bayesdag: cannot write toy.nc: [^\n]*kB are needed\n", stderr)
    assert names(folder) == {"toy.csv"}


def test_a_file_size_limit_is_seen_before_the_fit(folder):
    """A real limit, in a real process."""
    line = f"ulimit -f 20; exec {sys.executable} -m bayesdag {' '.join(FIT)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 2
    assert "cannot write toy.nc: a file may not grow that large here" in done.stderr
    assert "Traceback" not in done.stderr
    assert names(folder) == {"toy.csv"}


def test_a_finished_result_is_kept_elsewhere_when_the_disk_fills_up(
    folder, command, monkeypatch, tmp_path_factory
):
    temporary, home = (tmp_path_factory.mktemp(name) for name in ("temporary", "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("HOME", str(home))
    for place, refused in ((temporary, folder), (home, None)):
        allowed = refuse(errno.ENOSPC, below=refused) if refused else refuse_all_but(home)
        monkeypatch.setattr(os, "replace", allowed)
        code, _, stderr = command(*FIT)
        assert code == 2
        kept = Path(re.search(r"the disk is full. The finished result is in (\S+)", stderr)[1])
        assert kept.parent == place
        assert load(kept).names == ("rain", "soil", "crop", "price")
        assert names(folder) == {"toy.csv"}
        assert names(temporary) | names(home) == {kept.name}
        kept.unlink()


def refuse_all_but(folder: Path):
    """An `os.replace` that writes into one folder only."""
    real = os.rename

    def replace(source, target):
        if Path(target).absolute().parent != folder:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(source, target)

    return replace


def test_where_nothing_can_be_written_the_checkpoint_is_named(folder, command, monkeypatch):
    """The checkpoint stands there already; the same command ends in no time later."""
    monkeypatch.setattr(os, "replace", refuse_all_but(folder / "nowhere"))
    monkeypatch.setattr(fitting, "fit", leaving_a_checkpoint(fitting.fit, folder))
    code, _, stderr = command(*FIT)
    assert code == 2
    assert "the disk is full, nor could it be kept elsewhere" in stderr
    assert "toy.nc.partial is kept: make room and repeat the command" in stderr
    assert names(folder) == {"toy.csv", "toy.nc.partial"}


def leaving_a_checkpoint(fit, folder):
    def fitted(*arguments, checkpoint, **more):
        (folder / "toy.nc.partial").write_text("state")
        return fit(*arguments, checkpoint=None, **more)

    return fitted


def test_two_fits_of_one_result_exclude_each_other(folder, command, no_fit):
    with files.locked(folder / "toy.nc"):
        code, _, stderr = command(*FIT)
        assert code == 2
        assert "toy.nc is being written by another run (held by bayesdag, process" in stderr
    assert names(folder) == {"toy.csv"}


def test_a_stop_without_a_checkpoint_says_that_nothing_was_kept(folder, command, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fit", stopped)
    code, stdout, stderr = command(*FIT)
    assert (code, stdout) == (130, "")
    assert "stopped before the first checkpoint: nothing was kept" in stderr
    code, _, stderr = command("demo")
    assert code == 130
    assert "stopped: nothing was kept" in stderr
    assert names(folder) == {"toy.csv"}


def test_a_stopped_run_says_what_it_keeps_and_how_to_go_on(folder):
    """Ctrl-C, as a terminal sends it."""
    settings = ("--method", "collapsed", "--set", "thinning=1000000")
    command = [sys.executable, "-m", "bayesdag", *FIT[:4], *settings]
    heeding = [sys.executable, "-c", HEED_CTRL_C, *command]
    process = subprocess.Popen(heeding, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for((folder / "toy.nc.partial").exists, process)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=100)
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert re.search(r"stopped; toy.nc.partial keeps .* s ago", stderr), stderr
    assert "The same command goes on from there" in stderr
    assert "Traceback" not in stderr
    assert names(folder) == {"toy.csv", "toy.nc.partial"}


# A test run in the background ignores Ctrl-C, and so would all that it starts.
HEED_CTRL_C = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def wait_for(event, process, seconds: float = 100) -> None:
    end = time.monotonic() + seconds
    while not event():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
