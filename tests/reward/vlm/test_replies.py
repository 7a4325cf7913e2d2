"""Replies of models, made by hypothesis: what keeps to the form is read exactly, and nothing else becomes a value."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.reward.answer import Status
from robot_rl.reward.query import QueryKind
from robot_rl.reward.vlm.clip_backend import goal_baseline_reward
from robot_rl.reward.vlm.parse_answer import read_choice, read_preference, read_progress, read_success
from robot_rl.reward.vlm.prompts import PLACES, Prompt

PERCENT = st.floats(0, 100) | st.integers(0, 100)
PROSE = st.text(st.characters(exclude_characters="{}<>"), max_size=30)


@given(PROSE, st.text(max_size=20), st.sampled_from(["success", "failure"]), PERCENT, PROSE)
def test_success_is_read_through_any_prose(before, seen, verdict, confidence, after):
    text = before + json.dumps({"seen": seen, "verdict": verdict, "confidence": confidence}) + after
    (value,) = read_success(text).values
    assert value == pytest.approx(confidence / 100 if verdict == "success" else 1 - confidence / 100)


@given(st.lists(PERCENT, min_size=1, max_size=8), st.integers(0, 2**31), PROSE)
def test_progress_is_by_number_in_whatever_order_it_comes(percents, seed, prose):
    rows = [{"frame": n, "seen": "", "percent": percent} for n, percent in enumerate(percents, 1)]
    np.random.default_rng(seed).shuffle(rows)
    found = read_progress(prose + json.dumps({"frames": rows, "unsure": False}), len(percents))
    assert found.values == pytest.approx([percent / 100 for percent in percents])
    for other in (len(percents) - 1, len(percents) + 1):
        assert read_progress(json.dumps({"frames": rows, "unsure": False}), other).status is Status.UNPARSABLE


@given(st.lists(st.integers(-2, 9), max_size=6))
def test_progress_of_any_other_numbers_is_no_value(numbers):
    rows = [{"frame": n, "seen": "", "percent": 50} for n in numbers]
    found = read_progress(json.dumps({"frames": rows, "unsure": False}), 3)
    assert (found.status is Status.OK) == (sorted(numbers) == [1, 2, 3])


@given(st.floats().filter(lambda value: not 0 <= value <= 100))
def test_a_confidence_that_is_no_percentage_is_no_value(confidence):
    text = json.dumps({"seen": "", "verdict": "success", "confidence": confidence})
    assert read_success(text).status is Status.UNPARSABLE


@given(st.sampled_from(["first", "second", "neither"]), st.sampled_from(["first", "second", "neither"]))
def test_two_answers_count_only_if_they_are_the_same(one, other):
    text = "\n".join(json.dumps({"seen": "", "closer": closer}) for closer in (one, other))
    assert (read_preference(text).status is Status.OK) == (one == other)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["seen", "verdict", "confidence", "frames", "closer"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_json_of_another_form_never_raises_and_has_values_only_if_it_is_valid(tree):
    text = json.dumps(tree)
    for found in (read_success(text), read_preference(text), read_progress(text, 2)):
        assert bool(found.values) == (found.status is Status.OK)
        assert all(0.0 <= value <= 1.0 for value in found.values)


@given(st.tuples(st.floats(-50, 0), st.floats(-50, 0)).filter(lambda logs: sum(map(math.exp, logs)) <= 1))
def test_a_choice_has_the_odds_of_its_two_tokens_and_the_opposite_the_opposite(logs):
    yes, no = logs
    there, back = (read_choice((("True", a), ("False", b))) for a, b in ((yes, no), (no, yes)))
    assert there.details["log_odds"] == pytest.approx(yes - no, abs=1e-6)
    assert there.values[0] + back.values[0] == pytest.approx(1.0)
    assert there.values[0] == pytest.approx(1 / (1 + math.exp(no - yes)))


@given(st.permutations([("True", -0.2), ("False", -2.0), ("true", -4.0), ("The", -5.0)]))
def test_a_choice_does_not_depend_on_the_order_of_the_tokens(tokens):
    assert read_choice(tokens).values == pytest.approx(read_choice(sorted(tokens)).values)


TEXT = st.text(st.characters(exclude_characters="{}"), max_size=15)


@pytest.mark.parametrize("kind", list(PLACES), ids=str)
@given(data=st.data())
def test_a_filled_prompt_has_every_text_and_image_in_its_place(kind, data):
    places = data.draw(st.permutations(PLACES[kind]))
    texts = data.draw(st.lists(TEXT, min_size=len(places) + 1, max_size=len(places) + 1))
    task = data.draw(st.text(max_size=10))
    images = {place: [np.zeros((1, 1, 3), np.uint8)] for place in places if place != "task"}
    pattern = "".join(text + "{" + place + "}" for text, place in zip(texts, places, strict=False)) + texts[-1]
    parts = Prompt("p", 1, pattern).fill(task, images)
    shown = "".join(part if isinstance(part, str) else "\0" for part in parts)
    wanted = [task if place == "task" else "\0" for place in places]
    assert shown == "".join(a + b for a, b in zip(texts, wanted, strict=False)) + texts[-1]
    order = [place for place in places if place != "task"]
    assert [id(part) for part in parts if not isinstance(part, str)] == [id(images[place][0]) for place in order]
    assert kind in QueryKind


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_a_score_is_largest_at_the_goal_and_the_same_after_any_rotation(seed, alpha):
    generator = torch.Generator().manual_seed(seed)
    x, goal, base = torch.nn.functional.normalize(torch.randn(3, 4, 6, generator=generator), dim=-1)
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=generator))
    plain = goal_baseline_reward(x, goal[0], base[0], alpha)
    turned = goal_baseline_reward(x @ turn, goal[0] @ turn, base[0] @ turn, alpha)
    torch.testing.assert_close(plain, turned, atol=1e-4, rtol=1e-4)
    assert (plain <= goal_baseline_reward(goal[:1], goal[0], base[0], alpha) + 1e-5).all()
