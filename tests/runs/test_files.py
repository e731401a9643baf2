"""Files are whole or absent, one run writes them, and a disk's refusals are in words."""

import errno
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from bayesdag.errors import WriteError
from bayesdag.runs import files


def in_another_process(code: str, *arguments, **more) -> subprocess.Popen:
    """Python code in a process of its own, with pipes."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "result.nc"
    for text in ("old", "new"):
        files.write_whole(path, lambda to, text=text: to.write_text(text))
    assert path.read_text() == "new"
    assert names(tmp_path) == {"result.nc"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "result.nc"
    path.write_text("old")

    def write(to):
        to.write_text("half")
        raise error

    with pytest.raises(error):
        files.write_whole(path, write)
    assert path.read_text() == "old"
    assert names(tmp_path) == {"result.nc"}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "your quota of disk space is used up"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "you may not write there"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_a_disk_refuses_is_said_in_one_sentence(tmp_path, monkeypatch, number, words):
    path = tmp_path / "result.nc"
    path.write_text("old")

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(WriteError, match=f"cannot write .*result.nc: .*{words}"):
        files.write_whole(path, lambda to: to.write_text("new"))
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError, match=f"cannot write .*result.nc: .*{words}"):
        files.check_room(path, 1000)
    with (
        pytest.raises(WriteError, match=f"cannot write .*result.nc: .*{words}"),
        files.locked(path),
    ):
        pass
    assert path.read_text() == "old"
    assert names(tmp_path) == {"result.nc"}


def test_a_limit_on_file_sizes_is_met_in_words():
    """A real limit, in a process of its own: the signal that comes with it must not kill."""
    code = """
        import pathlib, resource, tempfile
        from bayesdag.errors import WriteError
        from bayesdag.runs import files
        folder = pathlib.Path(tempfile.mkdtemp())
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        for work in (
            lambda: files.check_room(folder / "x.nc", 1_000_000),
            lambda: files.write_whole(folder / "x.nc", lambda to: to.write_bytes(bytes(1_000_000))),
        ):
            try:
                work()
            except WriteError as error:
                print(error)
        print(list(folder.iterdir()))
        files.check_room(folder / "x.nc", 10_000)
        files.write_whole(folder / "x.nc", lambda to: to.write_bytes(bytes(10_000)))
        print([path.name for path in folder.iterdir()])
    """
    process = in_another_process(code)
    lines = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert "ulimit -f" in lines[0]
    assert "about 1.0 MB are needed" in lines[0]
    assert "ulimit -f" in lines[1]
    assert lines[2:] == ["[]", "['x.nc']"]


def test_too_little_room_is_seen_before_the_work(tmp_path):
    files.check_room(tmp_path / "x.nc", 10_000)
    with pytest.raises(WriteError, match=r"the disk is full; about 1000000000.0 GB are needed"):
        files.check_room(tmp_path / "x.nc", 10**18)
    assert not names(tmp_path)


def test_a_folder_and_a_missing_folder_are_named(tmp_path):
    for work in (lambda path: files.check_room(path, 1), lambda path: files.write_whole(path, str)):
        with pytest.raises(WriteError, match="it is a folder"):
            work(tmp_path)
        with pytest.raises(WriteError, match="nowhere does not exist"):
            work(tmp_path / "nowhere" / "x.nc")


LEAVE = """
    import os, pathlib, sys, time
    from bayesdag.runs import files
    def write(to):
        to.write_text("half")
        print("writing", flush=True)
        time.sleep(60)
    files.write_whole(pathlib.Path(sys.argv[1]), write)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else_is(tmp_path):
    path = tmp_path / "x.nc"
    killed, alive = (in_another_process(LEAVE, path) for _ in range(2))
    other = in_another_process(LEAVE, tmp_path / "x.nc.partial")
    for process in (killed, alive, other):
        assert process.stdout.readline() == "writing\n"
    for process in (killed, other):
        process.send_signal(signal.SIGKILL)
        process.wait()
    foreign = {".x.nc.mine.tmp", "x.nc.tmp", ".x.nc.00000000-1-00000000.tmp"}
    for name in foreign:
        (tmp_path / name).write_text("mine")
    assert len(names(tmp_path) - foreign) == 3
    files.remove_leftovers(path)
    (left,) = names(tmp_path) - foreign
    assert f"-{alive.pid}-" in left
    alive.kill()
    alive.wait()
    files.write_whole(path, lambda to: to.write_text("whole"))
    assert names(tmp_path) == foreign | {"x.nc"}
    for process in (killed, alive, other):
        process.stdout.close()
        process.stdin.close()


HOLD = """
    import pathlib, sys
    from bayesdag.runs import files
    with files.locked(pathlib.Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
"""


def test_two_runs_exclude_each_other_and_a_killed_one_blocks_nobody(tmp_path):
    path = tmp_path / "x.nc"
    holder = in_another_process(HOLD, path)
    assert holder.stdout.readline() == "held\n"
    words = rf"being written by another run \(held by bayesdag, process {holder.pid} on .*since"
    with pytest.raises(WriteError, match=words), files.locked(path):
        pass
    with files.locked(tmp_path / "y.nc"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert names(tmp_path) == {"x.nc.lock"}
    with files.locked(path):
        assert f"process {os.getpid()}" in (tmp_path / "x.nc.lock").read_text()
    assert not names(tmp_path)
    holder.stdout.close()
    holder.stdin.close()


def test_a_lock_is_released_after_an_error(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), files.locked(tmp_path / "x.nc"):
            raise ZeroDivisionError
    assert not names(tmp_path)


def test_a_file_of_somebody_else_is_no_lock(tmp_path):
    (tmp_path / "x.nc.lock").write_text("my notes")
    with pytest.raises(WriteError, match="in the way"), files.locked(tmp_path / "x.nc"):
        pass
    assert (tmp_path / "x.nc.lock").read_text() == "my notes"
