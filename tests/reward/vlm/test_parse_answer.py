import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.reward.answer import Status
from robot_rl.reward.vlm.parse_answer import read_choice, read_preference, read_progress, read_success


def success(verdict="success", confidence=90, **extra):
    return json.dumps({"seen": 'a {peg} in a "hole"', "verdict": verdict, "confidence": confidence, **extra})


def progress(*percent, frames=None):
    numbers = frames or range(1, len(percent) + 1)
    rows = [{"frame": n, "seen": "", "percent": p} for n, p in zip(numbers, percent, strict=True)]
    return json.dumps({"frames": rows, "unsure": False})


@pytest.mark.parametrize(("verdict", "value"), [("success", 0.9), ("failure", 0.1)])
def test_the_confidence_is_in_the_verdict(verdict, value):
    assert read_success(success(verdict)).values == pytest.approx((value,))


@pytest.mark.parametrize(
    "text",
    [
        success(),
        f"Let me see.\n{success()}\nThat is my answer.",
        f"```json\n{success()}\n```",
        f"<think>It could be {success('failure')} but no</think>{success()}",
        f"{success()} I repeat: {success()}",
        f"A set {{like this}} is no object. {success()}",
    ],
)
def test_prose_around_the_answer_is_no_hindrance(text):
    assert read_success(text).values == pytest.approx((0.9,))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("Success!", "no JSON object"),
        (success()[:-3], "no JSON object"),
        (success(confidence=190), "confidence"),
        (success(confidence="90"), "confidence"),
        (success("succes"), "verdict"),
        (success(extra=1), "extra"),
        ('{"verdict": "success"}', "seen"),
        (success() + success("failure"), "differ"),
        ("[1, 2]", "no JSON object"),
    ],
)
def test_what_does_not_keep_to_the_form_is_no_value(text, why):
    reading = read_success(text)
    assert (reading.status, reading.values) == (Status.UNPARSABLE, ())
    assert why in reading.details["why"]


def test_unsure_is_a_status():
    assert read_success(success("unsure")).status is Status.UNSURE
    assert read_preference('{"seen": "", "closer": "unsure"}').status is Status.UNSURE
    assert read_progress('{"frames": [], "unsure": true}', 3).status is Status.UNSURE


@pytest.mark.parametrize(("closer", "value"), [("first", 1.0), ("second", 0.0), ("neither", 0.5)])
def test_preferences(closer, value):
    assert read_preference(json.dumps({"seen": "", "closer": closer})).values == (value,)


def test_progress_is_by_the_number_of_the_frame():
    assert read_progress(progress(30, 10, 20, frames=(3, 1, 2)), 3).values == (0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    "text", [progress(1, 2), progress(1, 2, 3, 4), progress(1, 2, 3, frames=(1, 2, 2)), progress(1, 2, 103)]
)
def test_progress_of_other_frames_is_no_value(text):
    assert read_progress(text, 3).status is Status.UNPARSABLE


def test_choice_by_hand():
    """p = (0.5 + 0.1) / (0.6 + 0.2), spellings added up."""
    tokens = (("True", math.log(0.5)), (" true", math.log(0.1)), ("False", math.log(0.2)), ("Hm", math.log(0.05)))
    reading = read_choice(tokens)
    assert reading.values == pytest.approx((0.75,))
    assert reading.details["log_odds"] == pytest.approx(math.log(3.0))
    assert not reading.details["bounded"]


def test_a_word_that_is_not_told_counts_as_the_least_probable_one():
    reading = read_choice((("True", math.log(0.9)), ("Yes", math.log(0.01))))
    assert reading.values == pytest.approx((0.9 / 0.91,))
    assert reading.details["bounded"]


def test_neither_word_is_no_value():
    assert read_choice((("The", -0.1), ("It", -2.0))).status is Status.UNPARSABLE


@given(st.text(alphabet=st.sampled_from('{}[]":,abc 0198.-\\ntrue'), max_size=60))
def test_nothing_that_a_model_may_write_raises_or_becomes_a_value_by_chance(text):
    for reading in (read_success(text), read_preference(text), read_progress(text, 2)):
        assert reading.status is Status.UNPARSABLE


@given(st.floats(-2000.0, 0.0), st.floats(-2000.0, 0.0))
def test_a_choice_is_a_probability_exactly_if_its_tokens_can_be_a_distribution(yes, no):
    reading = read_choice((("True", yes), ("False", no)))
    assert (reading.status is Status.OK) == (math.exp(yes) + math.exp(no) <= 1.01)
    if reading.status is Status.OK:
        assert 0.0 <= reading.values[0] <= 1.0
        assert math.isfinite(reading.details["log_odds"])


@given(st.lists(st.floats(), min_size=1, max_size=4), st.permutations(["True", "False", "The", "It"]))
def test_numbers_that_are_no_log_probabilities_are_no_value_and_raise_nothing(logs, tokens):
    reading = read_choice(tuple(zip(tokens, logs, strict=False)))
    possible = all(log <= 0.01 for log in logs) and sum(map(math.exp, logs)) <= 1.01
    choices = [log for token, log in zip(tokens, logs, strict=False) if token in ("True", "False")]
    assert (reading.status is Status.OK) == (possible and max(choices, default=-math.inf) > -math.inf)
    if reading.status is Status.OK:
        assert 0.0 <= reading.values[0] <= 1.0
        assert math.isfinite(reading.details["log_odds"])


@pytest.mark.parametrize(
    "text",
    [
        "{" * 5_000_000,
        '{"seen":' + "[" * 100_000,
        '{"seen":' * 30_000 + "1" + "}" * 30_000,
        '{"verdict": "success"} ' * 10_000,
        '{"confidence": 1' + "0" * 10_000 + "}",
        '{"\\ud800\u001b[31m": 1}',
        "<think>" * 30_000,
    ],
    ids=["braces", "deep list", "deep object", "many objects", "long number", "names", "thoughts"],
)
def test_a_hostile_reply_is_refused_quickly_with_one_printable_line(text):
    started = time.monotonic()
    for reading in (read_success(text), read_preference(text), read_progress(text, 2)):
        assert reading.status is Status.UNPARSABLE
        assert reading.details["why"].isprintable()
        assert len(reading.details["why"]) < 400
    assert time.monotonic() - started < 3.0, "the first one took two minutes"
