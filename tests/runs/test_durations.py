"""Estimates before a fit: a range, and what would make it faster; only for long fits."""

import pytest

from bayesdag import plugins
from bayesdag.runs import durations
from bayesdag.types import Duration, Timed


class Listener:
    def __init__(self):
        self.heard = []

    def announce(self, words: str) -> None:
        self.heard.append(words)


class Method:
    def __init__(self, seconds: float):
        self.seconds = seconds

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        return Duration(self.seconds, ("fewer columns", "a GPU"))


def test_a_long_fit_is_announced_as_a_range_with_what_makes_it_faster(monkeypatch):
    monkeypatch.setattr(durations, "slowness", lambda: 1.0)
    listener = Listener()
    durations.announce(listener, Method(300.0), 2000, 12)
    (words,) = listener.heard
    assert "12 columns and 2000 rows" in words
    assert "about 3-9 minutes on this machine" in words
    assert words.endswith("faster: fewer columns, a GPU")


def test_a_slower_machine_has_a_longer_estimate(monkeypatch):
    monkeypatch.setattr(durations, "slowness", lambda: 3.0)
    listener = Listener()
    durations.announce(listener, Method(300.0), 2000, 12)
    assert "about 9-27 minutes" in listener.heard[0]


def test_short_fits_and_deaf_monitors_hear_nothing():
    listener = Listener()
    durations.announce(listener, Method(5.0), 100, 5)
    durations.announce(listener, object(), 100, 5)
    durations.announce(None, Method(5000.0), 100, 5)
    assert listener.heard == []


def test_the_speed_of_the_machine_changes_an_estimate_within_bounds():
    assert 1 / durations.MOST <= durations.slowness() <= durations.MOST


@pytest.mark.parametrize("name", ["exact", "collapsed", "bayesdag", "joint", "bagged", "averaged"])
def test_methods_that_take_long_know_it_and_more_columns_take_longer(name):
    method = plugins.load("methods", name)()
    assert isinstance(method, Timed)
    few, many = (method.expected_duration(1000, d) for d in (5, 15))
    assert 0 < few.seconds < many.seconds
    assert "fewer columns" in few.faster


def test_presets_that_are_quick_are_expected_to_be():
    methods = plugins.load("methods", "collapsed").PRESETS
    usual = plugins.load("methods", "collapsed")().expected_duration(1000, 50)
    assert methods["quick"].expected_duration(1000, 50).seconds < usual.seconds
    assert methods["neural"].expected_duration(1000, 10).seconds > usual.seconds
