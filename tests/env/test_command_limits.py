from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command
from robot_rl.errors import ActionError, CommandRefusedError, ConfigError, SpecError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, rotvec_from_quat

LIMITS = CommandLimits()
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
HERE = Pose(np.array([0.5, 0.0, 0.2]), DOWN)
NOW = 10 * NS_PER_S


def guard(limits=LIMITS, pose=HERE, now=NOW):
    made = CommandGuard(limits)
    made.measured_pose(pose, now)
    made.measured_wrench(np.zeros(6), now)
    return made


def to(offset=(0.0, 0.0, 0.0), rotvec=(0.0, 0.0, 0.0), stamp=NOW, ttl=0.3):
    quaternion = quat_multiply(HERE.quaternion, quat_from_rotvec(np.array(rotvec, float)))
    return Command(stamp, ttl, Pose(HERE.position + np.array(offset), quaternion))


def lead(command):
    turn = rotvec_from_quat(quat_multiply(quat_conjugate(HERE.quaternion), command.T_base_target.quaternion))
    return np.linalg.norm(command.T_base_target.position - HERE.position), np.linalg.norm(turn)


def test_a_command_within_the_limits_is_the_same_object():
    command = to((0.01, -0.01, 0.01), (0.02, 0.0, 0.05))
    guarded = guard().check(command, NOW)
    assert guarded.command is command
    assert guarded.limited == ()


def test_a_set_point_far_away_is_brought_near_in_the_same_direction():
    guarded = guard().check(to((0.1, 0.0, 0.1), (0.0, 0.0, 3.0)), NOW)
    assert set(guarded.limited) == {"speed", "turn rate"}
    distance, angle = lead(guarded.command)
    assert distance == pytest.approx(LIMITS.max_speed * LIMITS.reaction_time)
    assert angle == pytest.approx(LIMITS.max_turn_rate * LIMITS.reaction_time)
    way = guarded.command.T_base_target.position - HERE.position
    assert way / np.linalg.norm(way) == pytest.approx([np.sqrt(0.5), 0.0, np.sqrt(0.5)])


def test_the_lead_changes_no_faster_than_the_acceleration_allows():
    made = guard()
    first = made.check(to((0.03, 0.0, 0.0)), NOW).command
    later = NOW + NS_PER_S // 1000
    second = made.check(to((-0.03, 0.0, 0.0), stamp=later), later)
    assert "acceleration" in second.limited
    change = np.linalg.norm(second.command.T_base_target.position - first.T_base_target.position)
    assert change == pytest.approx(LIMITS.max_acceleration * LIMITS.reaction_time * 0.001)


def test_the_set_point_stays_in_the_box():
    edge = Pose(np.array([0.699, 0.0, 0.001]), DOWN)
    command = Command(NOW, 0.3, Pose(np.array([0.715, 0.0, -0.01]), DOWN))
    guarded = guard(pose=edge).check(command, NOW)
    assert guarded.limited == ("box",)
    assert guarded.command.T_base_target.position.tolist() == [0.7, 0.0, 0.0]


@given(pose=st.tuples(*[st.floats(-1.0, 1.5)] * 3), target=st.tuples(*[st.floats(-1.0, 1.5)] * 3), paused=st.booleans())
def test_wherever_the_arm_is_the_set_point_leads_it_by_no_more_than_the_bound_and_never_away_from_the_box(
    pose, target, paused
):
    here = Pose(np.array(pose), DOWN)
    made = guard(pose=here)
    made.release()
    if not paused:
        made.check(Command(NOW - NS_PER_S // 10, 0.3, here), NOW)
    position = made.check(Command(NOW, 0.3, Pose(np.array(target), DOWN)), NOW).command.T_base_target.position
    assert np.linalg.norm(position - here.position) <= LIMITS.max_speed * LIMITS.reaction_time + 1e-12
    assert outside(position) <= max(0.0, outside(here.position)) + 1e-12


def outside(point):
    return float(np.linalg.norm(point - np.clip(point, LIMITS.box_low, LIMITS.box_high)))


somewhere = st.tuples(st.floats(-0.2, 1.2), st.floats(-0.8, 0.8), st.floats(-0.5, 1.0)).map(np.array)
event = st.one_of(
    st.tuples(st.just("pose"), somewhere),
    st.tuples(st.just("drift"), st.tuples(*[st.floats(-0.02, 0.02)] * 3).map(np.array)),
    st.tuples(st.just("command"), somewhere),
    st.tuples(st.just("release"), st.none()),
)


@given(st.lists(event, max_size=40))
def test_outside_the_box_the_arm_holds_until_the_release_and_then_moves_inwards_only(events):
    made, position, stamp, nearest = CommandGuard(LIMITS), HERE.position, NOW, 0.0
    made.measured_wrench(np.zeros(6), NOW)
    for what, value in [("pose", HERE.position), *events]:
        stamp += NS_PER_S // 1000
        if what in ("pose", "drift"):
            position = value if what == "pose" else position + value
            made.measured_pose(Pose(position, DOWN), stamp)
            if outside(position) > max(LIMITS.box_tolerance, nearest + LIMITS.box_tolerance) + 1e-12:
                assert "outside the box" in made.tripped
            if made.tripped is None:
                nearest = min(nearest, outside(position))
        elif what == "release":
            made.release()
            nearest = outside(position)
        else:
            command = Command(stamp, 0.3, Pose(value, DOWN))
            if made.tripped is not None:
                with pytest.raises(CommandRefusedError, match="outside the box"):
                    made.check(command, stamp)
                continue
            target = made.check(command, stamp).command.T_base_target.position
            assert np.linalg.norm(target - position) <= LIMITS.max_speed * LIMITS.reaction_time + 1e-12
            assert outside(target) <= outside(position) + 1e-12


def test_the_way_back_into_the_box_ends_inside_and_going_out_again_latches_again():
    made, position, stamp = guard(), np.array([0.75, 0.0, 0.2]), NOW
    made.measured_pose(Pose(position, DOWN), NOW + 1)
    assert "the tcp is 50 mm outside the box" in made.tripped
    made.release()
    for _ in range(20):
        stamp += NS_PER_S // 10
        made.measured_pose(Pose(position, DOWN), stamp)
        made.measured_wrench(np.zeros(6), stamp)
        assert made.tripped is None
        position = made.check(Command(stamp, 0.3, Pose(np.array([0.6, 0.1, 0.2]), DOWN)), stamp).command
        position = position.T_base_target.position
    assert outside(position) == 0.0
    made.measured_pose(Pose(np.array([0.706, 0.0, 0.2]), DOWN), stamp + 1)
    assert "6 mm outside the box" in made.tripped


def test_a_long_life_is_cut():
    guarded = guard().check(to(ttl=5.0), NOW)
    assert (guarded.command.ttl, guarded.limited) == (LIMITS.max_ttl, ("ttl",))


@pytest.mark.parametrize(
    "bad",
    [
        to(stamp=NOW - NS_PER_S),
        to(ttl=float("nan")),
        to((np.nan, 0.0, 0.0)),
        replace(to(), T_base_target=Pose(HERE.position, np.zeros(4))),
        replace(to(), gripper_width=float("inf")),
    ],
    ids=["expired", "ttl", "position", "quaternion", "gripper"],
)
def test_what_is_no_command_is_refused(bad):
    with pytest.raises(ActionError):
        guard().check(bad, NOW)


def test_refusals_say_why():
    made = guard()
    made.check(to(), NOW)
    with pytest.raises(CommandRefusedError, match="comes twice"):
        made.check(to(), NOW)
    with pytest.raises(CommandRefusedError, match="future"):
        made.check(to(stamp=NOW + NS_PER_S), NOW)
    with pytest.raises(CommandRefusedError, match=r"pose is 0.30 s old"):
        made.check(to(stamp=NOW + 3 * NS_PER_S // 10), NOW + 3 * NS_PER_S // 10)
    with pytest.raises(CommandRefusedError, match="nothing valid has come"):
        CommandGuard(LIMITS).check(to(), NOW)


def test_a_nan_in_the_wrench_is_no_measurement():
    made = guard()
    later = NOW + NS_PER_S
    made.measured_pose(HERE, later)
    with pytest.raises(SpecError, match="the wrench's value has a NaN"):
        made.measured_wrench(np.full(6, np.nan), later)
    with pytest.raises(CommandRefusedError, match=r"wrench is 1.00 s old"):
        made.check(to(stamp=later), later)


@pytest.mark.parametrize(
    ("stamp", "now", "reason"),
    [
        (NOW, NOW, "does not rise: a clock was set back, or two nodes publish it"),
        (NOW - NS_PER_S, NOW, "does not rise"),
        (NOW + NS_PER_S, NOW, "lies in the future: the clocks of the machines differ"),
    ],
)
def test_stamps_that_jump_are_refused_and_what_was_known_grows_old(stamp, now, reason):
    made = guard()
    with pytest.raises(SpecError, match=f"the pose's stamp {reason}"):
        made.measured_pose(HERE, stamp, now)
    with pytest.raises(SpecError, match=f"the wrench's stamp {reason}"):
        made.measured_wrench(np.zeros(6), stamp, now)
    assert made.stale(NOW + NS_PER_S) is not None


def test_after_a_stop_earlier_commands_do_not_count():
    made = guard()
    made.stop(NOW + 5)
    with pytest.raises(CommandRefusedError):
        made.check(to(stamp=NOW), NOW)
    assert made.check(to(stamp=NOW + 6), NOW + 6)


def test_too_much_force_latches_until_it_is_released():
    made = guard()
    made.measured_wrench(np.array([0.0, 0.0, -81.0, 0, 0, 0]), NOW + 1)
    made.measured_wrench(np.zeros(6), NOW + 2)
    made.trip("another reason")
    with pytest.raises(CommandRefusedError, match="contact force of 81 N"):
        made.check(to(stamp=NOW + 3), NOW + 3)
    made.release()
    assert made.check(to(stamp=NOW + 4), NOW + 4)


@pytest.mark.parametrize("low", [(0.8, -0.3, 0.0), (0.3, -0.3), (0.7, 0.0, 0.0)])
def test_a_box_that_is_none_is_refused(low):
    with pytest.raises(ConfigError, match="box_low"):
        CommandGuard(replace(LIMITS, box_low=low))


@given(factor=st.floats(0.01, 1.0))
def test_a_lowered_speed_shortens_the_lead_at_once(factor):
    made = guard()
    made.lower("max_speed", factor * LIMITS.max_speed)
    assert made.limits == replace(LIMITS, max_speed=factor * LIMITS.max_speed)
    found, _ = lead(made.check(to((0.2, 0.0, 0.0)), NOW).command)
    assert found <= factor * LIMITS.max_speed * LIMITS.reaction_time + 1e-9


def test_a_lowered_force_trips_earlier():
    made = guard()
    made.lower("max_force", 10.0)
    made.measured_wrench(np.array((0.0, 0.0, 11.0, 0.0, 0.0, 0.0)), NOW + 1)
    assert made.tripped == "contact force of 11 N, allowed are 10 N"


@pytest.mark.parametrize("value", [LIMITS.max_speed * 1.001, 0.0, -0.1, float("nan")])
def test_a_limit_is_never_raised_nor_switched_off(value):
    made = guard()
    with pytest.raises(ConfigError, match=r"max_speed is 0\.3 and may only be lowered"):
        made.lower("max_speed", value)


def test_lowered_twice_the_second_counts_and_the_first_does_not_come_back():
    made = guard()
    made.lower("max_speed", 0.2)
    made.lower("max_speed", 0.1)
    with pytest.raises(ConfigError, match=r"max_speed is 0\.1"):
        made.lower("max_speed", 0.2)


def test_the_box_counts_from_the_start():
    with pytest.raises(ConfigError, match="box_low counts from the start; limits that may be lowered: max_speed"):
        guard().lower("box_low", 0.1)
