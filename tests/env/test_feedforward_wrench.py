"""A feed-forward wrench from the action to the command: where it pushes, what bounds it, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC, fake_arms, fake_workcell
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.cell.cell_guards import guards_for
from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.action_mapping import AXES, SafetyFilter
from robot_rl.env.cell_geometry.capsule import KeepOutLimits
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.feed_forward.wrench_border import BORDER_STIFFNESS, BORDER_TURN_STIFFNESS, LOOK_AHEAD
from robot_rl.env.handover import Handover, HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command, RobotState, SetPoint, check_command
from robot_rl.env.task import ArmSpec, TaskSpec, Workspace
from robot_rl.errors import ActionError, CommandRefusedError, ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, rotvec_from_quat

BOX = Workspace(low=(-0.05, -0.04, -0.03), high=(0.05, 0.04, 0.02), yaw=0.35, tilt=0.2)
WRENCH = {"wrench_axes": AXES, "action_force": 15.0, "action_torque": 2.0}
STEPS = TaskSpec("t", "do it", max_steps=10, control_period=0.1, workspace=BOX)
PUSHING = replace(STEPS, **WRENCH)
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
RESET = Pose(np.array([0.5, 0.1, 0.3]), DOWN)
NOW = 10 * NS_PER_S
unit = st.floats(-1, 1, width=32)
offsets = st.tuples(st.floats(-0.08, 0.08), st.floats(-0.08, 0.08), st.floats(-0.08, 0.08)).map(np.array)
turns = st.tuples(*[st.floats(-0.5, 0.5)] * 3).map(np.array)
twists = st.lists(st.floats(-0.5, 0.5), min_size=6, max_size=6).map(np.array)


def at(offset=(0.0, 0.0, 0.0), rotvec=(0.0, 0.0, 0.0), twist=None):
    pose = Pose(RESET.position + offset, quat_multiply(RESET.quaternion, quat_from_rotvec(np.array(rotvec, float))))
    return RobotState(0, pose, np.zeros(6) if twist is None else twist, np.zeros(6), np.zeros(7), np.zeros(7))


def command_of(spec, action, state=None):
    safety = SafetyFilter(spec)
    return safety.apply(safety.check(np.asarray(action, np.float32)), state or at(), RESET, stamp=5).command


def pushed(spec, **entries):
    """The wrench of an action with these entries of a wrench."""
    action = np.zeros(spec.action_size)
    for name, value in entries.items():
        action[len(spec.action_axes) + spec.wrench_axes.index(name)] = value
    return command_of(spec, action).wrench


# ---------------------------------------------------------------- from an action to a command


def test_the_entries_after_the_steps_are_force_and_torque_in_the_tcp_frame():
    assert pushed(PUSHING, x=0.5) == pytest.approx([7.5, 0, 0, 0, 0, 0])
    assert pushed(PUSHING, y=-1.0, yaw=0.25) == pytest.approx([0, -15.0, 0, 0, 0, 0.5])
    some = replace(STEPS, action_axes=("x",), wrench_axes=("z", "pitch"), action_force=4.0, action_torque=1.0)
    assert (some.action_size, some.environment.action_size) == (3, 3)
    assert pushed(some, z=1.0, pitch=-1.0) == pytest.approx([0, 0, 4.0, 0, -1.0, 0])


def test_an_axis_may_have_a_step_only_or_a_force_only_and_the_gripper_comes_last():
    spec = replace(STEPS, action_axes=("x",), wrench_axes=("z",), action_force=5.0, gripper=True)
    command = command_of(spec, [1.0, -0.5, -1.0])
    assert command.T_base_target.position - RESET.position == pytest.approx([0.01, 0, 0])
    assert command.wrench == pytest.approx([0, 0, -2.5, 0, 0, 0])
    assert command.gripper_width == 0.0
    alone = replace(STEPS, action_axes=(), wrench_axes=("z",), action_force=5.0)
    assert command_of(alone, [1.0]).wrench == pytest.approx([0, 0, 5.0, 0, 0, 0])
    assert command_of(alone, [1.0], at((0.01, 0, 0))).T_base_target.position == pytest.approx(RESET.position)


@given(st.lists(unit, min_size=6, max_size=6), offsets, turns)
def test_without_a_wrench_a_command_is_the_same_bit_for_bit(action, offset, rotvec):
    state = at(offset, rotvec)
    one, other = command_of(STEPS, action, state), command_of(PUSHING, [*action, *np.zeros(6)], state)
    assert one.wrench is None
    assert other.wrench is None
    assert np.array_equal(one.T_base_target.position, other.T_base_target.position)
    assert np.array_equal(one.T_base_target.quaternion, other.T_base_target.quaternion)
    assert (one.ttl, one.stamp, one.gripper_width) == (other.ttl, other.stamp, other.gripper_width)


@given(st.lists(unit, min_size=12, max_size=12), offsets, turns, twists)
def test_no_force_points_out_of_the_workspace_harder_than_the_room_there_allows(action, offset, rotvec, twist):
    """The farthest out of where the tcp is, will be soon and is sent to counts; at the border there is nothing left."""
    state = at(offset, rotvec, twist)
    command = command_of(PUSHING, action, state)
    if command.wrench is None:
        return
    force = quat_rotate(state.T_base_tcp.quaternion, command.wrench[:3])
    for place in (offset, offset + LOOK_AHEAD * twist[:3], command.T_base_target.position - RESET.position):
        above, below = np.array(BOX.high) - place, place - np.array(BOX.low)
        assert (force <= BORDER_STIFFNESS * np.maximum(above, 0.0) + 1e-9).all()
        assert (-force <= BORDER_STIFFNESS * np.maximum(below, 0.0) + 1e-9).all()
    assert np.linalg.norm(command.wrench[:3]) <= 15.0 * np.sqrt(3) + 1e-6


@given(st.lists(unit, min_size=12, max_size=12), turns)
def test_no_torque_turns_the_tool_out_of_the_workspace_harder_than_the_room_there_allows(action, rotvec):
    state = at(rotvec=rotvec)
    wrench = command_of(PUSHING, action, state).wrench
    if wrench is None:
        return
    from_reset = quat_multiply(quat_conjugate(RESET.quaternion), state.T_base_tcp.quaternion)
    torque, (rx, ry, rz) = quat_rotate(from_reset, wrench[3:]), rotvec_from_quat(from_reset)
    assert torque[2] <= BORDER_TURN_STIFFNESS * max(BOX.yaw - rz, 0.0) + 1e-9
    assert -torque[2] <= BORDER_TURN_STIFFNESS * max(BOX.yaw + rz, 0.0) + 1e-9
    if np.hypot(rx, ry) >= BOX.tilt:
        assert torque[0] * rx + torque[1] * ry <= 1e-9, "it turns the tool back only"


def test_at_the_border_a_force_pulls_in_and_does_not_push_out():
    at_the_border = at((0.05, 0.0, 0.0))
    out, back = np.zeros(12), np.zeros(12)
    out[6], back[6] = 1.0, -1.0
    assert command_of(PUSHING, out, at_the_border).wrench[0] == 0.0
    assert command_of(PUSHING, back, at_the_border).wrench[0] == pytest.approx(-15.0)
    assert command_of(PUSHING, out, at((0.045, 0.0, 0.0))).wrench[0] == pytest.approx(BORDER_STIFFNESS * 0.005)
    out[0] = 1.0  # the step takes the room first
    assert command_of(PUSHING, out, at((0.045, 0.0, 0.0))).wrench[0] == 0.0


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"wrench_axes": ("x", "up")}, "wrench_axes: up; valid: x, y, z, roll, pitch, yaw, each once"),
        ({"wrench_axes": ("x", "x")}, "wrench_axes: x, x; valid: "),
        ({"action_force": -1.0}, "action_force is -1 N; it is finite and above 0 where wrench_axes has any of x, y, z"),
        ({"action_force": 0.0}, "action_force is 0 N"),
        ({"action_force": np.inf}, "action_force is inf N"),
        ({"action_torque": np.nan}, "action_torque is nan Nm"),
        ({"wrench_axes": ("x",)}, "action_torque is 2 Nm; it is finite and above 0 where wrench_axes has any of roll"),
        ({"wrench_axes": ()}, "action_force is 15 N; .* else 0$"),
    ],
    ids=str,
)
def test_a_wrench_that_is_none_is_refused_in_one_line(facts, named):
    with pytest.raises(ConfigError, match=named) as caught:
        SafetyFilter(replace(PUSHING, **facts))
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- which arms


def test_an_arm_that_follows_no_wrench_refuses_the_task_at_the_start():
    with pytest.raises(
        ConfigError, match="task fake_reach: wrench_axes are x, and this arm follows set-points only; a"
    ):
        RobotEnv(fake_workcell(replace(SPEC, wrench_axes=("x",), action_force=5.0)))
    arms = {name: ArmSpec(SPEC.workspace) for name in ("left", "right")}
    arms["right"] = replace(arms["right"], **WRENCH)
    spec = TaskSpec.of_arms(arms, name="two", instruction="", max_steps=9, control_period=0.1)
    assert spec.action_size == 6 + 12
    with pytest.raises(ConfigError, match=r"task two: arms.right: wrench_axes are x, y, z"):
        RobotEnv(fake_arms(spec)[0])


def test_arms_that_a_keep_out_keeps_apart_are_not_pushed():
    arms = {name: ArmSpec(SPEC.workspace, **WRENCH) for name in ("left", "right")}
    spec = TaskSpec.of_arms(arms, name="two", instruction="", max_steps=9, control_period=0.1, keep_out=KeepOutLimits())
    with pytest.raises(ConfigError, match=r"two: wrench_axes of left, right: .* leave out wrench_axes, or"):
        RobotEnv(replace(fake_arms(spec)[0], takes_wrench=True))


class Noted:
    """A robot that writes down what it is sent; it takes wrenches."""

    def __init__(self, io):
        self._io, self.commands = io, []
        self.read, self.stop = io.read, io.stop

    def command(self, command):
        self.commands.append(command)
        points = {name: replace(point, wrench=None) for name, point in command.arms.items()}
        bare = replace(command, wrench=None, arms=points)
        self._io.command(bare)


def test_the_command_of_several_arms_has_the_wrench_of_each():
    arms = {name: ArmSpec(SPEC.workspace, base_position=(0.0, y, 0.0)) for name, y in (("left", 1.0), ("right", -1.0))}
    arms["right"] = replace(arms["right"], action_axes=("x",), wrench_axes=("z",), action_force=5.0, gripper=True)
    spec = TaskSpec.of_arms(arms, name="two", instruction="", max_steps=9, control_period=0.1)
    cell, _ = fake_arms(spec)
    env = RobotEnv(replace(cell, io=(io := Noted(cell.io)), takes_wrench=True))
    env.start(0, "e")
    env.advance(np.array([0, 0, 0, 0, 0, 0, 0.5, -1.0, 0.0], np.float32))
    sent = io.commands[-1]
    assert sent.wrench is sent.arms["left"].wrench is None
    assert sent.arms["right"].wrench == pytest.approx([0, 0, -5.0, 0, 0, 0])
    assert np.array_equal(sent.of_arm("right").wrench, sent.arms["right"].wrench)
    first = Command.of_arms(1, 0.3, {"right": sent.arms["right"], "left": sent.arms["left"]})
    assert first.wrench is sent.arms["right"].wrench


@pytest.mark.parametrize("wrench", [np.full(6, np.nan), np.array([np.inf, 0, 0, 0, 0, 0]), np.zeros(5)], ids=str)
def test_a_wrench_that_is_not_six_finite_numbers_is_refused(wrench):
    with pytest.raises(ActionError, match="a wrench is six finite numbers"):
        check_command(Command(NOW, 0.3, RESET, wrench=wrench), NOW)
    with pytest.raises(ActionError, match="arm right: a wrench is six finite numbers"):
        points = {"left": SetPoint(RESET), "right": SetPoint(RESET, wrench=wrench)}
        check_command(Command.of_arms(NOW, 0.3, points), NOW, ("left", "right"))


# ---------------------------------------------------------------- the last check

LIMITS = CommandLimits(max_feedforward_force=20.0, max_feedforward_torque=3.0)
HERE = Pose(np.array([0.5, 0.0, 0.2]), DOWN)


def guard(limits=LIMITS, pose=HERE):
    made = CommandGuard(limits)
    made.measured_pose(pose, NOW)
    made.measured_wrench(np.zeros(6), NOW)
    return made


def push(wrench, stamp=NOW, pose=HERE, ttl=0.3):
    return Command(stamp, ttl, pose, wrench=np.array(wrench, float))


def test_without_a_limit_a_wrench_is_refused_and_it_is_said_how_to_allow_it():
    for wrench, named in (
        (
            (0, 3.0, 4.0, 0, 0, 0),
            "feed-forward force of 5 N, and max_feedforward_force is 0: none is allowed; set that",
        ),
        ((0, 0, 0, 0.5, 0, 0), "feed-forward torque of 0.5 Nm, and max_feedforward_torque is 0"),
    ):
        with pytest.raises(CommandRefusedError, match=named):
            guard(CommandLimits()).check(push(wrench), NOW)


def test_a_wrench_within_the_limits_is_the_same_object_and_a_larger_one_is_made_smaller_in_its_direction():
    command = push((0, 3.0, 4.0, 0, 0, 0.5))
    assert guard().check(command, NOW).command is command
    guarded = guard().check(push((0, 60.0, 80.0, 0, 0, 6.0)), NOW)
    assert guarded.limited == ("wrench",)
    assert guarded.command.wrench == pytest.approx([0, 12.0, 16.0, 0, 0, 3.0])


@given(st.lists(st.tuples(st.lists(st.floats(-500, 500), min_size=6, max_size=6), st.floats(0.002, 0.4)), max_size=12))
def test_force_and_torque_never_exceed_their_limit_nor_change_faster_than_it(rows):
    made, now, before, expires = guard(), NOW, np.zeros(6), None
    for wrench, wait in rows:
        now += round(wait * NS_PER_S)
        made.measured_pose(HERE, now)
        made.measured_wrench(np.zeros(6), now)
        sent = made.check(push(wrench, now), now).command.wrench
        for part, largest in ((slice(0, 3), 20.0), (slice(3, 6), 3.0)):
            assert np.linalg.norm(sent[part]) <= largest * (1 + 1e-9)
            if expires is not None and now < expires:
                change = np.linalg.norm(sent[part] - before[part])
                assert change <= largest * wait / LIMITS.feedforward_rise * (1 + 1e-6) + 1e-9
        before, expires = sent, now + round(0.3 * NS_PER_S)


def test_a_wrench_may_end_at_once_and_grows_from_nothing_after_a_stop():
    made = guard()
    made.check(push((20.0, 0, 0, 0, 0, 0)), NOW)
    later = NOW + NS_PER_S // 100
    assert made.check(Command(later, 0.3, HERE), later).limited == ()
    made.stop(later + 1)
    after = later + 1 + NS_PER_S // 100
    sent = made.check(push((-20.0, 0, 0, 0, 0, 0), after), after).command.wrench
    assert sent[0] == pytest.approx(-20.0 * 0.01 / LIMITS.feedforward_rise)


def test_where_a_wrench_is_allowed_the_guard_of_an_arm_has_to_know_its_speed():
    assert guards_for(LIMITS).each[""].needs_twist
    assert not guards_for(CommandLimits()).each[""].needs_twist


@given(
    st.lists(st.floats(-20, 20), min_size=3, max_size=3), st.tuples(*[st.floats(-0.004, 0.004)] * 3), st.integers(0, 7)
)
def test_no_force_points_out_of_the_box_at_its_border(force, offset, corner):
    limits = replace(LIMITS, box_tolerance=0.02)
    low, high = np.array(limits.box_low), np.array(limits.box_high)
    sides = np.array([corner >> axis & 1 for axis in range(3)], bool)
    position = np.where(sides, high, low) + offset
    made = guard(limits, Pose(position, DOWN))
    sent = made.check(push((*force, 0, 0, 0), pose=Pose(position, DOWN)), NOW).command
    out = quat_rotate(DOWN, sent.wrench[:3])
    assert (out <= BORDER_STIFFNESS * np.maximum(high - position, 0.0) + 1e-9).all()
    assert (-out <= BORDER_STIFFNESS * np.maximum(position - low, 0.0) + 1e-9).all()


def test_too_large_a_contact_force_latches_whatever_is_pushed():
    made = guard()
    made.measured_wrench(np.array([0, 0, 81.0, 0, 0, 0]), NOW + 1)
    with pytest.raises(CommandRefusedError, match="contact force of 81 N"):
        made.check(push((1.0, 0, 0, 0, 0, 0), NOW + 2), NOW + 2)


# ---------------------------------------------------------------- a change of control


def pushing_handover():
    """Blends one step axis, a force and a torque, over 0.2 s of 0.1 s steps."""
    spec = replace(STEPS, action_axes=("x",), wrench_axes=("z", "yaw"), action_force=50.0, action_torque=5.0)
    return Handover(spec, HandoverLimits(rise=2 * spec.control_period))


PUSH, STILL = np.array([0.0, 1.0, -1.0], np.float32), np.zeros(3, np.float32)


def test_a_push_ends_at_once_when_somebody_takes_over():
    handover = pushing_handover()
    assert handover.blend(PUSH, led_by_operator=False).tolist() == PUSH.tolist()  # the policy starts as it wants
    assert handover.blend(STILL, led_by_operator=True).tolist() == [0.0, 0.0, 0.0]
    assert not handover.blending


def test_a_push_that_both_want_goes_on_and_another_one_grows_from_nothing():
    handover = pushing_handover()
    handover.blend(PUSH, led_by_operator=False)
    assert handover.blend(0.5 * PUSH, led_by_operator=True).tolist() == [0.0, 0.5, -0.5]
    executed = [handover.blend(-PUSH, led_by_operator=False)[1:].tolist() for _ in range(2)]
    assert executed == [[-0.5, 0.5], [-1.0, 1.0]]


def test_a_policy_whose_push_alternates_has_it_back_soon():
    handover = pushing_handover()
    handover.blend(STILL, led_by_operator=True)
    executed = [handover.blend(sign * PUSH, led_by_operator=False)[1] for sign in (1, -1, 1, -1, 1)]
    assert executed == pytest.approx([0.5, -1.0, 1.0, -1.0, 1.0])
