"""Methods and kinds of columns: a model for them, numbers with a warning, or a refusal."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from bayesdag import fit, plugins, read
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.methods import _kinds
from bayesdag.methods.auto import Auto
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian
from bayesdag.types import MEASUREMENTS, kinds_taken
from tests.toys import toy_frame

EVERY = frozenset({"continuous", "count", "ordinal", "binary", "categorical"})


@dataclass(frozen=True)
class OfLevels(BGe):
    """A score that says it has a model for every kind."""

    takes_kinds: ClassVar[frozenset[str]] = EVERY


@dataclass(frozen=True)
class LevelsOnly(BGe):
    """A score for tables without measurements."""

    takes_kinds: ClassVar[frozenset[str]] = EVERY - {"continuous", "count"}


@pytest.fixture
def registered(monkeypatch):
    """Two scores more than there are."""
    scores = {"bge": BGe, "mixed": OfLevels, "tables": LevelsOnly}
    taken = {name: kinds_taken(score()) for name, score in scores.items()}
    monkeypatch.setattr(_kinds, "_registered", lambda: taken)
    load = _kinds.plugins.load
    monkeypatch.setattr(
        _kinds.plugins,
        "load",
        lambda f, n: scores[n] if f == "scores" and n in scores else load(f, n),
    )


def frame():
    rng = np.random.default_rng(0)
    return toy_frame().assign(
        grade=rng.integers(1, 6, 300), colour=rng.choice(["red", "green", "blue"], 300)
    )


def test_codes_are_numbers_with_one_warning_that_names_them():
    coded = frame().drop(columns="colour")
    with pytest.warns(BayesdagWarning, match=r"takes 'grade' \(ordinal\) for measurements") as said:
        found = fit(coded, "exact")
    assert len(said) == 1
    facts = found.summary["columns"]["grade"]
    assert facts["kind"] == "continuous"
    assert "taken as a number" in facts["reason"]
    assert facts["max"] == 5
    assert found.check(coded).summary() == found.check(read(coded)).summary()


def test_text_is_refused_by_methods_of_numbers():
    with pytest.raises(
        InputError, match=r"'colour' is categorical \(blue, green, red\), and .*'exact'"
    ):
        fit(frame(), "exact")


def test_a_refusal_names_the_methods_that_can(registered):
    with pytest.raises(
        InputError, match="use method 'auto' or 'bagged' or 'collapsed' or 'imputed'"
    ):
        fit(frame(), "exact")


def test_the_score_that_has_a_model_for_the_columns_is_chosen(registered):
    usual = BGe()
    assert _kinds.score_for(frozenset({"continuous"}), usual) is usual
    assert isinstance(_kinds.score_for(frozenset({"continuous", "binary"}), usual), OfLevels)
    assert isinstance(_kinds.score_for(frozenset({"binary"}), usual), LevelsOnly)


def test_methods_of_methods_take_what_those_inside_take(registered):
    assert kinds_taken(Auto()) == kinds_taken(Collapsed()) == kinds_taken(Bagged()) == EVERY
    assert kinds_taken(Bagged(Exact())) == {"continuous"}
    assert kinds_taken(Collapsed(score=LinearGaussian())) == {"continuous"}
    chosen, notes = _kinds.with_score_for(Auto().collapsed, read(frame()))
    assert isinstance(chosen, Collapsed)
    assert isinstance(chosen.score, OfLevels)
    assert "score" in notes[0]


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_the_list_of_methods_says_whether_one_has_a_model_for_levels(name):
    words = plugins.described("methods", "takes_kinds")[name]
    takes_levels = kinds_taken(plugins.load("methods", name)()) > MEASUREMENTS
    assert bool(words) >= takes_levels
    assert ("all" in words.lower() and "measurements" not in words) >= takes_levels
