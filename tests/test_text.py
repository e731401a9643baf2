"""Text from the data cannot command a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.text import printable


@given(st.text())
def test_what_is_shown_holds_nothing_that_a_terminal_obeys(text):
    assert printable(text).isprintable()


@given(st.text())
def test_letters_of_all_scripts_stay_as_they_are(text):
    kept = "".join(c for c in text if c.isprintable())
    assert printable(kept) == kept


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("glucose [mg/dl]", "glucose [mg/dl]"),
        ("größe µ 長さ", "größe µ 長さ"),
        ("a\nb", r"a\nb"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202etxt.exe", r"\u202etxt.exe"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
    ],
)
def test_control_characters_are_shown_as_python_writes_them(text, shown):
    assert printable(text) == shown
