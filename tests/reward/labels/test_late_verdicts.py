"""Whose word counts at the end of an episode that labels judge afterwards."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.reward.late.observer import LateRewards

LED = EpisodeResult(
    success=True,
    failure=None,
    steps=40,
    operator_steps=3,
    takeovers=1,
    total_reward=1.0,
    cycle_time=4.0,
    force_peak=1.0,
    metrics={},
    overruns=0,
)
AWAY = SimpleNamespace(ended="", collect=tuple)
"""A labeller that never answers."""


def never():
    raise AssertionError("it waits for a label")


@pytest.mark.parametrize(
    "result",
    [LED, replace(LED, success=False, failure="dropped", undecided=True), replace(LED, undecided=True, cut="held")],
    ids=["success told by a person", "a failure", "cut for another reason"],
)
def test_what_is_decided_stays_and_is_not_waited_for(result):
    assert LateRewards(None, AWAY, None, waits=False).judged(result, 0, never) is result


def test_what_is_undecided_is_no_success_if_nobody_answers():
    judged = LateRewards(None, AWAY, None, waits=False).judged(replace(LED, undecided=True), 0, lambda: True)
    assert (judged.success, judged.cut) == (False, None)
