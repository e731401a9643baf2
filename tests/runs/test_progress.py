"""Progress: lines with done / total and the time left, on stderr, of long runs only."""

import io
import sys
import time

import pytest

from bayesdag.runs import progress
from bayesdag.runs.progress import ProgressReport, Stage, progress_report


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch):
    """Lines after hundredths of a second instead of seconds."""
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.02)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.02)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.02)


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_time_left_follows_from_the_speed_since_the_count_began():
    stage = Stage("working").next("sampling", 100, 1000, now=50.0)
    assert stage.seconds_left(50.0) is None
    stage = stage.next("sampling", 200, 1000, now=60.0)
    assert stage.seconds_left(60.0) == pytest.approx(80.0)
    assert stage.describe(65.0, 60.0) == (
        "sampling 200/1000 (20%), 1 min 5 s so far, about 1 min 20 s left"
    )


def test_another_count_starts_another_estimate():
    stage = Stage("working").next("search", 10, 20, now=0.0).next("search", 20, 20, now=10.0)
    fresh = stage.next("sampling", 5, 400, now=11.0)
    assert fresh.seconds_left(11.0) is None
    assert fresh.next("sampling", 105, 400, now=21.0).seconds_left(21.0) == pytest.approx(29.5)
    assert fresh.next("writing", None, None, now=22.0).seconds_left(22.0) is None


def test_plain_lines_appear_where_there_is_no_terminal(impatient, capsys):
    written = ""
    with ProgressReport() as report:
        report.chunk(30, 100, None, {"energy": 2.5})

        def seen():
            nonlocal written
            written += capsys.readouterr().err
            return written.count("sampling") >= 2

        wait_for(seen)
    # On a busy machine a line may come before the count.
    counted = next(line for line in written.splitlines() if "sampling" in line)
    assert counted.startswith("bayesdag: sampling 30/100 (30%), 0 s so far")
    assert "energy 2.5" in counted


def test_a_terminal_has_one_line_that_is_overwritten(impatient, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressReport() as report:
        report.report("search of [/h]", 3, 10)
        wait_for(lambda: "search of [/h] 3/10 (30%)" in stream.getvalue())
    assert "bayesdag: " not in stream.getvalue()


def test_a_dumb_terminal_has_plain_lines(impatient, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "dumb")
    with ProgressReport():
        wait_for(lambda: "bayesdag: working" in stream.getvalue())


def test_a_short_run_shows_nothing(capsys):
    with ProgressReport() as report:
        report.chunk(1, 2, None, {})
    assert capsys.readouterr() == ("", "")


def test_control_characters_in_words_are_shown_escaped():
    with ProgressReport() as report:
        report.report("search of \x1b[2Jx")
        assert r"\x1b[2Jx" in report.describe()


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_reader_that_has_gone_does_not_stop_the_run(impatient, monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressReport() as report:
        report.announce("this takes long")
        time.sleep(0.05)


def test_no_report_is_made_where_none_is_wanted():
    with progress_report(False) as report:
        assert report is None
