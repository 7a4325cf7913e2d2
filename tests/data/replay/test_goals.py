"""Goals of steps: where a gripper is next moved, or else where the episode succeeded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.observation_scaling import ObservationPacker
from robot_rl.data.replay.percept import Percept, ToolElements
from robot_rl.data.replay.sample import LASTING_STEPS
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.spec import ArraySpec

OPEN, CLOSED, HALF = 2.0, 0.5, 1.25
TOOLS = ToolElements((0,), (1, 2))


def ring(capacity=500):
    return ReplayBuffer(capacity, 3, 1, tools=TOOLS)


def play(buffer, widths, name="episode", *, success=True, undecided=False):
    """An episode whose pose at step t is 10 t, with these widths of two grippers, (steps + 1, 2)."""
    rows = [np.array([10.0 * t, *width], np.float32) for t, width in enumerate(widths)]
    buffer.begin(Percept(rows[0]), name)
    for t, row in enumerate(rows[1:], 1):
        last = t == len(rows) - 1
        ends = (last and success and not undecided, last and (undecided or not success))
        step = Transition(np.zeros(1, np.float32), float(ends[0]), *ends, Source.POLICY, undecided=last and undecided)
        buffer.append(step, Percept(row))


def goals(buffer):
    """The pose of each step's goal; NaN where none is known."""
    count = len(buffer)
    sample = buffer.gather(np.arange(count), np.random.default_rng(0), n_step=1, discount=1.0, history=(0,))
    return (sample.observation[:, :1] + sample.to_goal)[:, 0].tolist()


def held(*moves, steps, at=OPEN):
    """The widths of one gripper, shape (steps + 1,), which moves to a width at a step: pairs of both."""
    widths = np.full(steps + 1, at)
    for step, width in moves:
        widths[step + 1 :] = width
    return widths


def two(left, right):
    return np.stack([left, right], axis=1)


def test_each_part_of_a_task_has_its_goal():
    buffer = ring()
    play(buffer, two(held((3, CLOSED), (22, OPEN), steps=25), held((10, CLOSED), steps=25)))
    assert goals(buffer) == 4 * [30] + 7 * [100] + 12 * [220] + 2 * [250]


def test_without_a_gripper_that_moves_the_goal_is_where_the_episode_succeeded():
    buffer = ring()
    play(buffer, two(held(steps=6), held(steps=6)))
    assert goals(buffer) == 6 * [60]


def test_a_slow_gripper_begins_to_move_once():
    buffer, steps = ring(), 12
    width = np.clip(OPEN - 0.2 * (np.arange(steps + 1) - 4.0), CLOSED, OPEN)  # from step 4 on, for 8 steps
    play(buffer, two(width, held(steps=steps)))
    assert goals(buffer) == 5 * [40] + 7 * [120]


@pytest.mark.parametrize("lasts", [1, LASTING_STEPS - 1, LASTING_STEPS, LASTING_STEPS + 1])
def test_a_move_that_is_soon_taken_back_is_no_goal(lasts):
    buffer, steps = ring(), 30
    play(buffer, two(held((8, CLOSED), (8 + lasts, OPEN), steps=steps), held(steps=steps)))
    seen = sorted(set(goals(buffer)))
    assert seen == ([80, 80 + 10 * lasts, 300] if lasts >= LASTING_STEPS else [300])


def test_a_grasp_that_fails_and_is_made_again_is_one_goal():
    buffer = ring()
    tries = held((5, HALF), (7, OPEN), (8, HALF), (9, OPEN), (12, CLOSED), (30, OPEN), steps=33)
    play(buffer, two(tries, held(steps=33)))
    assert sorted(set(goals(buffer))) == [120, 300, 330]


def test_moves_that_take_each_other_back_are_counted_for_each_gripper():
    buffer = ring()
    play(buffer, two(held((5, CLOSED), steps=40), held((6, CLOSED), (8, OPEN), (20, CLOSED), steps=40)))
    assert sorted(set(goals(buffer))) == [50, 200, 400]


def test_a_failure_has_no_goals():
    buffer = ring()
    play(buffer, two(held((3, CLOSED), steps=15), held(steps=15)), success=False)
    assert np.isnan(goals(buffer)).all()


@given(st.integers(1, 12), st.integers(0, 11), st.booleans())
def test_a_verdict_that_comes_late_tells_the_goals_as_one_that_comes_at_once(since, moved, success):
    widths = two(held((moved, CLOSED), steps=12), held(steps=12))
    buffer, at_once = ring(), ring()
    play(buffer, widths, undecided=True)
    assert buffer.decide("episode", float(success), success, since)
    play(at_once, widths[: since + 1], success=success)
    expected = goals(at_once)
    behind = (12 - since) * [10 * since if success else np.nan]
    np.testing.assert_array_equal(goals(buffer), [*expected, *behind])


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 29), st.booleans()), min_size=1, max_size=6))
def test_goals_are_those_of_each_episode_wherever_it_is_in_the_ring(episodes):
    small = ring(64)
    for steps, moved, success in episodes:
        play(small, two(held((moved, HALF), steps=steps), held(steps=steps)), success=success)
    again = ring(80)
    again.load_state_dict(small.state_dict())
    expected = []
    for steps, moved, success in episodes:
        one = ring()
        play(one, two(held((moved, HALF), steps=steps), held(steps=steps)), success=success)
        expected += goals(one)
    for buffer in (small, again):
        np.testing.assert_array_equal(goals(buffer), expected[len(expected) - len(buffer) :])


def test_in_a_replay_of_an_earlier_version_goals_are_where_episodes_succeeded():
    buffer, restored = ring(), ring()
    play(buffer, two(held((3, CLOSED), steps=9), held(steps=9)))
    play(buffer, two(held((3, CLOSED), steps=4), held(steps=4)), success=False)
    saved = buffer.state_dict()
    del saved["goal_at"]
    restored.load_state_dict(saved)
    assert goals(restored)[:9] == 9 * [90]
    assert np.isnan(goals(restored)[9:]).all()


def test_the_tools_of_all_arms_are_found_in_a_packed_observation():
    pose, width, other = ArraySpec((6,)), ArraySpec((1,)), ArraySpec((2,))
    one = ObservationPacker({"state/wrench": other, "state/tcp_pose": pose, "state/gripper_width": width})
    assert (one.elements_of("tcp_pose"), one.elements_of("gripper_width")) == ((1, 2, 3, 4, 5, 6), (0,))
    both = ObservationPacker(
        {
            f"state/{arm}/{key}": spec
            for arm in ("left", "right")
            for key, spec in (("tcp_pose", pose), ("other", other))
        }
    )
    assert both.elements_of("tcp_pose") == (2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15)
    assert both.elements_of("gripper_width") == ()
