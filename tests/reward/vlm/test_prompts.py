import numpy as np
import pytest

from robot_rl.errors import ConfigError
from robot_rl.reward.query import QueryKind
from robot_rl.reward.vlm.prompts import BUILT_IN, PLACES, WRITING, Prompt, check_places, choose_prompt

VERSIONS = [(key[0], prompt) for key, versions in BUILT_IN.items() for prompt in versions]
FIRST = {
    "success": "06d3da7a8b5e0177",
    "success-logprobs": "e5cb3266912e1305",
    "progress": "b1f78ababd29a4cb",
    "progress-logprobs": "20f832e76e68ea0f",
    "preference": "4450f1d673f5552d",
    "preference-segments": "3d29088cbc629ff1",
}
"""Digests of version 1, from before there was another one: labels and trainings of it depend on every letter."""


@pytest.mark.parametrize(("kind", "prompt"), VERSIONS, ids=lambda one: str(getattr(one, "name", one)))
def test_built_in_prompts_are_valid_and_show_everything(kind, prompt):
    check_places(prompt, kind)
    images = {place: [np.full((2, 2, 3), n, np.uint8) for n in range(3)] for place in PLACES[kind][1:]}
    parts = prompt.fill("push the {cube}", images)
    words = "".join(part for part in parts if isinstance(part, str))
    assert "push the {cube}" in words
    assert "{{" not in words
    assert sum(not isinstance(part, str) for part in parts) == 3 * len(images)


def test_images_stand_where_the_prompt_says_and_several_are_numbered():
    images = [np.full((1, 1, 3), n, np.uint8) for n in range(2)]
    parts = Prompt("p", 1, "Do {task}: {frames} end").fill("it", {"frames": images})
    assert parts[0] == "Do it: \nFrame 1:\n"
    assert parts[1] is images[0]
    assert parts[2] == "\nFrame 2:\n"
    assert parts[3] is images[1]
    assert parts[4] == " end"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Judge {frames}", "has no place {task}"),
        ("Judge {task}", "has no place {frames}"),
        ("{task} {frames} {goal}", "unknown place {goal}"),
        ("{task} {frames} {frames}", "shows {frames} twice"),
        ('{task} {frames} {"a": 1}', "unknown place"),
        ("{task} {frames} }", "written twice"),
    ],
)
def test_a_prompt_without_its_places_is_refused(tmp_path, text, problem):
    path = tmp_path / "prompt.yaml"
    path.write_text(f"name: mine\nversion: 1\ntext: '{text}'\n")
    with pytest.raises(ConfigError) as caught:
        choose_prompt(QueryKind.SUCCESS, "structured", str(path))
    assert problem in str(caught.value)


@pytest.mark.parametrize("content", ["", "name: mine", "name: mine\nversion: one\ntext: x", "[", "- a"])
def test_a_file_that_is_no_prompt_is_refused(tmp_path, content):
    path = tmp_path / "prompt.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match="prompt"):
        choose_prompt(QueryKind.SUCCESS, "structured", str(path))


def test_changed_words_are_another_identity():
    one, other = Prompt("p", 1, "a {task}"), Prompt("p", 1, "b {task}")
    assert one.identity != other.identity


def test_not_every_kind_has_log_probabilities():
    with pytest.raises(ConfigError, match="kind=preference cannot be combined with answer=logprobs; valid: "):
        choose_prompt(QueryKind.PREFERENCE, "logprobs")


@pytest.mark.parametrize("key", BUILT_IN, ids=str)
def test_the_newest_prompt_states_that_writing_in_the_scene_is_no_instruction(key):
    first, newest = (choose_prompt(*key, version=version) for version in (1, 0))
    assert WRITING in newest.text
    assert first.identity["prompt_digest"] == FIRST[first.name]
    assert (first.version, newest.version) == (1, 2)


def test_a_version_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="there are versions 1 to 2"):
        choose_prompt(QueryKind.SUCCESS, "structured", version=3)
    with pytest.raises(ConfigError, match="set one of the two"):
        choose_prompt(QueryKind.SUCCESS, "structured", "mine.yaml", 1)
