import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.system.atomic_file import to_json
from robot_rl.system.printable import LONGEST, LONGEST_ERROR, one_line, printable, printable_error, printable_json, some


@given(st.text(st.characters()))
def test_nothing_printable_moves_a_terminal(text):
    shown = printable(text)
    assert all(c == "\n" or c.isprintable() for c in shown)
    assert "\n" not in one_line(text) and len(one_line(text)) <= LONGEST + 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: ä 手", "plain: ä 手"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\rb", "a\\rb"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_escapes(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()), st.none() | st.just(2))
def test_json_that_is_printed_has_the_same_value_and_moves_no_terminal(text, indent):
    shown = printable_json(to_json({text: [text]}, indent=indent))
    assert all(c == "\n" or c.isprintable() for c in shown)
    assert json.loads(shown) == {text: [text]}


def test_an_error_that_quotes_a_long_name_is_cut():
    assert len(printable_error("x" * 100_000)) == LONGEST_ERROR + 3
    assert printable_error("short") == "short"


def test_some_of_many_are_named_and_the_others_counted():
    assert [some(list("abcd")[:count]) for count in (0, 3, 4)] == ["", "a, b, c", "a, b, c and 1 more"]
    assert some(list("abcd"), 2, "; ") == "a; b and 2 more"
