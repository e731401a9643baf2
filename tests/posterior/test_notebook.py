"""Results in a notebook: words and a table, in which names are text."""

from dataclasses import replace

import pytest

from tests.posteriors import random_linear

HOSTILE = ("<script>alert(1)</script>", "a\"b'", "[mg/dl] & $x$", "\x1b[31m")


@pytest.fixture
def posterior():
    found = random_linear(2, d=4)
    facts = dict(zip(HOSTILE, found.summary["columns"].values(), strict=True))
    return replace(found, names=HOSTILE, summary=found.summary | {"columns": facts})


def test_a_posterior_its_effects_and_its_diagnostics_show_themselves(posterior):
    shown = {
        "edges more probable": posterior._repr_html_(),
        "P(no directed path)": posterior.effect(*HOSTILE[:2])._repr_html_(),
        "R-hat": posterior.diagnostics()._repr_html_(),
    }
    for words, html in shown.items():
        assert words in html
        assert "<table>" in html
        assert "<script" not in html
        assert "\x1b" not in html
    assert "&lt;script&gt;" in shown["edges more probable"]


def test_the_words_come_from_the_result(posterior):
    assert posterior.describe()[0].split(":")[0] in posterior._repr_html_()
    assert posterior._repr_html_().count("<tr>") == 13  # a heading and twelve rows
