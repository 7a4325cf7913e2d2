"""Facts of an episode are typed in the program and the same JSON on disk, whoever wrote them."""

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tagged import episode

from robot_rl.data.episode_facts import EpisodeFacts, FactValues
from robot_rl.data.schema import EpisodeBuilder
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
JSON = st.recursive(SCALARS, lambda part: st.lists(part, max_size=3), max_leaves=5)
OLD = {
    **{"task": "reach", "seed": 7, "demonstration": True, "T_base_reset": [0.5, 0.0, 0.2, 3.1, 0.0, 0.0]},
    **{"success": True, "failure": None, "overruled": "classifier", "judge": "operator", "led": "by a script"},
}
"""Metadata as the revision before wrote them, with a key of somebody's own."""


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=6))
def test_unknown_facts_are_kept_and_known_ones_replaced(metadata):
    facts = EpisodeFacts(metadata).updated(success=True, cut="stop")
    assert facts.metadata == {**metadata, "success": True, "cut": "stop"}
    assert (facts.success, facts.cut) == (True, "stop")


def test_what_the_revision_before_wrote_is_read():
    facts = EpisodeFacts(OLD)
    assert (facts.task, facts.seed, facts.demonstration, facts.success, facts.failure) == ("reach", 7, True, True, None)
    assert facts.T_base_reset == (0.5, 0.0, 0.2, 3.1, 0.0, 0.0)
    assert (facts.judge, facts.overruled, facts.cut, facts.interrupted) == ("operator", "classifier", None, False)


def test_without_metadata_nothing_is_known():
    facts = EpisodeFacts({})
    assert (facts.task, facts.seed, facts.success, facts.task_success, facts.outcome) == ("", None, None, None, "")
    assert not facts.demonstration
    assert not facts.interrupted


def test_each_key_has_a_property_that_returns_it_but_for_those_of_copies():
    values: dict[str, Any] = {"copied_from": {"store": "s", "episode_id": "e", "fingerprint": "f", "rewards": None}}
    values |= {"T_base_reset_of_arms": {"left": (0.0,) * 6, "right": (1.0,) * 6}}
    values |= {"T_base_reset": (0.0,) * 6, "seed": 3, "task": "t", "outcome": "near miss"}
    for key, kind in get_type_hints(FactValues).items():
        if key in ("recorded_as", "renamed_from"):
            continue  # for people only
        value = values.get(key, True if "bool" in str(kind) else "text")
        assert getattr(EpisodeFacts.of(**{key: value}), key) == value


@pytest.mark.parametrize(
    "origin", ["text", {}, {"store": 1, "episode_id": "", "fingerprint": "", "rewards": None}], ids=str
)
def test_a_copy_of_nothing_is_refused(origin):
    with pytest.raises(DataError, match="copied_from of an episode is"):
        _ = EpisodeFacts({"copied_from": origin}).copied_from


@pytest.mark.parametrize("pose", [[1.0, 2.0], "up", 3.0, [None] * 6], ids=str)
def test_a_pose_that_is_none_is_refused(pose):
    with pytest.raises(DataError, match="T_base_reset of an episode"):
        _ = EpisodeFacts({"T_base_reset": pose}).T_base_reset


def test_facts_come_back_from_a_store_with_and_without_the_arrays(tmp_path):
    whole = episode(0, 4)
    builder = EpisodeBuilder(whole.episode_id, OLD)
    for row in range(len(whole)):
        builder.add(whole.step(row))
    builder.note(task_success=False)
    made = builder.finish(whole.observation(len(whole)), int(whole.stamp_obs[-1]))
    with EpisodeStore.create(tmp_path / "store") as store:
        store.append(made)
        (row,) = store.summaries()
        assert row.facts.metadata == store.read(whole.episode_id).facts.metadata == {**OLD, "task_success": False}
        assert (row.success, row.facts.task_success) == (True, False)
