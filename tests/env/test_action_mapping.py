from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robot_rl.env.action_mapping import AXES, SafetyFilter, describe_actions
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import ArmSpec, TaskSpec, Workspace
from robot_rl.errors import ActionError, ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, swing_twist_z

BOX = Workspace(low=(-0.05, -0.04, -0.03), high=(0.05, 0.04, 0.02), yaw=0.35, tilt=0.2)
SPEC = TaskSpec("t", "do it", max_steps=10, control_period=0.1, workspace=BOX, gripper_open_width=0.08)
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
RESET = Pose(np.array([0.5, 0.1, 0.3]), DOWN)


def state(pose):
    return RobotState(0, pose, np.zeros(6), np.zeros(6), np.zeros(7), np.zeros(7))


def near_reset(offset=(0.0, 0.0, 0.0), rotvec=(0.0, 0.0, 0.0)):
    """A pose displaced in the base frame and turned in the tcp's."""
    return Pose(RESET.position + offset, quat_multiply(RESET.quaternion, quat_from_rotvec(np.array(rotvec))))


def apply(spec, action, pose=RESET, reset=RESET):
    safety = SafetyFilter(spec)
    return safety.apply(safety.check(np.asarray(action, np.float32)), state(pose), reset, stamp=5)


def axis(name, value=1.0):
    action = np.zeros(6)
    action[AXES.index(name)] = value
    return action


def test_an_action_of_one_is_one_step_in_the_tcp_frame():
    # The tcp looks down with x forward: its y is the base's -y, its z the base's -z.
    for name, direction in (("x", [1, 0, 0]), ("y", [0, -1, 0]), ("z", [0, 0, -1])):
        target = apply(SPEC, axis(name)).command.T_base_target
        assert target.position - RESET.position == pytest.approx(0.01 * np.array(direction))
        assert target.quaternion == pytest.approx(RESET.quaternion)
    turned = apply(SPEC, axis("yaw")).command.T_base_target
    relative = quat_multiply(quat_conjugate(RESET.quaternion), turned.quaternion)
    assert swing_twist_z(relative) == pytest.approx((0.06, 0.0))
    assert turned.position == pytest.approx(RESET.position)


def test_the_set_point_starts_from_where_the_arm_is_not_from_where_it_should_be():
    here = near_reset(offset=(0.02, 0.0, 0.0))
    target = apply(SPEC, axis("x"), here).command.T_base_target
    assert target.position == pytest.approx(np.add(here.position, (0.01, 0.0, 0.0)))


@pytest.mark.parametrize(("axis_name", "sign"), [(a, s) for a in ("x", "y", "z") for s in (1, -1)])
def test_the_box_stops_every_side_and_says_by_how_much(axis_name, sign):
    number = AXES.index(axis_name)
    base_sign = sign * (1, -1, -1)[number]
    edge = (BOX.high if base_sign > 0 else BOX.low)[number]
    offset = np.zeros(3)
    offset[number] = edge
    safe = apply(SPEC, axis(axis_name, sign), near_reset(offset))
    assert safe.command.T_base_target.position == pytest.approx(RESET.position + offset)
    expected = np.zeros(6)
    expected[number] = base_sign * 0.01
    assert safe.clipped == pytest.approx(expected)


def test_an_action_within_the_box_is_not_clipped():
    assert apply(SPEC, 0.5 * np.ones(6)).clipped == pytest.approx(np.zeros(6))


def test_yaw_and_tilt_are_clipped_apart():
    safe = apply(SPEC, axis("yaw"), near_reset(rotvec=(0.0, 0.0, 0.34)))
    relative = quat_multiply(quat_conjugate(RESET.quaternion), safe.command.T_base_target.quaternion)
    assert swing_twist_z(relative) == pytest.approx((0.35, 0.0))
    assert safe.clipped[5] == pytest.approx(0.05)
    # Tilted along the diagonal beyond the limit: pulled back along the diagonal.
    safe = apply(SPEC, np.zeros(6), near_reset(rotvec=(0.2, 0.2, 0.0)))
    relative = quat_multiply(quat_conjugate(RESET.quaternion), safe.command.T_base_target.quaternion)
    assert swing_twist_z(relative) == pytest.approx((0.0, 0.2), abs=1e-9)
    assert relative[1] == pytest.approx(relative[2])


def test_locked_axes_go_back_to_their_reset_value():
    spec = replace(SPEC, action_axes=("x", "z", "yaw"))
    here = near_reset(offset=(0.01, 0.012, 0.0), rotvec=(0.05, -0.03, 0.1))
    safe = apply(spec, [0.0, 0.0, 0.0], here)
    target = safe.command.T_base_target
    assert target.position - RESET.position == pytest.approx([0.01, 0.0, 0.0])
    relative = quat_multiply(quat_conjugate(RESET.quaternion), target.quaternion)
    assert swing_twist_z(relative) == pytest.approx((0.1, 0.0), abs=2e-3)
    assert swing_twist_z(relative)[1] == pytest.approx(0.0, abs=1e-9)


def test_a_command_expires_after_some_control_periods():
    assert apply(SPEC, np.zeros(6)).command.ttl == pytest.approx(0.3)
    assert apply(SPEC, np.zeros(6)).command.stamp == 5
    assert SafetyFilter(SPEC, ttl_periods=1.5).apply(np.zeros(6), state(RESET), RESET, 0).command.ttl == pytest.approx(
        0.15
    )


@pytest.mark.parametrize(
    ("wish", "width"), [(-1.0, 0.0), (-0.5, 0.0), (-0.49, None), (0.0, None), (0.49, None), (0.5, 0.08), (1.0, 0.08)]
)
def test_the_gripper_closes_keeps_or_opens(wish, width):
    spec = replace(SPEC, action_axes=("x",), gripper=True)
    assert apply(spec, [0.0, wish]).command.gripper_width == width
    assert apply(replace(spec, gripper=False), [wish]).command.gripper_width is None


def test_an_axis_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"rol.*roll"):
        SafetyFilter(replace(SPEC, action_axes=("x", "rol")))


@pytest.mark.parametrize(
    "action",
    [np.zeros(5), np.zeros((1, 6)), axis("x", np.nan), axis("x", np.inf), axis("x", 1.001), "x", None, [[0], 1]],
)
def test_a_bad_action_is_refused(action):
    with pytest.raises(ActionError):
        SafetyFilter(SPEC).check(action)


def test_rounding_beyond_one_is_forgiven_and_clipped():
    assert SafetyFilter(SPEC).check(axis("x", 1.0 + 5e-7)).max() == 1.0


anywhere = st.builds(
    lambda p, r: near_reset(p, r),
    arrays(float, 3, elements=st.floats(-0.2, 0.2)),
    arrays(float, 3, elements=st.floats(-0.6, 0.6)),
)
axis_choices = st.sets(st.sampled_from(AXES), min_size=1).map(lambda chosen: tuple(a for a in AXES if a in chosen))


@given(arrays(np.float32, 6, elements=st.floats(-1.0, 1.0, width=32)), anywhere, axis_choices)
def test_the_set_point_is_never_outside_the_box(action, pose, chosen):
    spec = replace(SPEC, action_axes=chosen)
    safe = apply(spec, action[: len(chosen)], pose)
    target = safe.command.T_base_target
    offset = target.position - RESET.position
    assert (offset >= np.array(BOX.low) - 1e-12).all()
    assert (offset <= np.array(BOX.high) + 1e-12).all()
    relative = quat_multiply(quat_conjugate(RESET.quaternion), target.quaternion)
    yaw, tilt = swing_twist_z(relative)
    assert tilt <= BOX.tilt + 1e-9
    assert abs(yaw) <= BOX.yaw * 1.01  # the rotation vector is clipped; its z is the yaw to second order
    assert np.linalg.norm(target.quaternion) == pytest.approx(1.0)
    locked = [name not in chosen for name in AXES[:3]]
    assert offset[locked] == pytest.approx(0.0)
    # Without clipping it is one step from the measured pose at most.
    if not safe.clipped.any() and not any(locked):
        step = quat_rotate(quat_conjugate(pose.quaternion), target.position - pose.position)
        assert np.abs(step).max() <= spec.action_translation * (1 + 1e-6)


@pytest.mark.parametrize(("wish", "width"), [(-1.0, 0.02), (0.25, 0.035), (1.0, 0.05), (0.0, None)])
def test_a_gripper_that_goes_to_any_width_steps_from_where_it_is(wish, width):
    spec = replace(SPEC, action_axes=("x",), gripper=True, gripper_step=0.02)
    safety, here = SafetyFilter(replace(spec, gripper_step=0.015)), replace(state(RESET), gripper_width=0.035)
    made = safety.apply(safety.check([0.0, wish]), here, RESET, stamp=5).command.gripper_width
    assert made == (None if width is None else pytest.approx(0.035 + 0.015 * wish))
    assert (spec.action_size, spec.grippers, spec.environment.choices) == (2, 0, 0)


@pytest.mark.parametrize(("wish", "at", "end"), [(-1.0, 0.005, 0.0), (1.0, 0.075, 0.08)])
def test_its_step_ends_where_it_is_closed_or_open(wish, at, end):
    safety = SafetyFilter(replace(SPEC, action_axes=("x",), gripper=True, gripper_step=0.02))
    made = safety.apply(safety.check([0.0, wish]), replace(state(RESET), gripper_width=at), RESET, stamp=5)
    assert made.command.gripper_width == end


@pytest.mark.parametrize("wrong", [{"gripper": False}, {"gripper_step": -0.01}, {"gripper_step": 0.09}])
def test_a_gripper_step_that_cannot_be_made_is_one_line(wrong):
    spec = replace(SPEC, **({"gripper": True, "gripper_step": 0.01} | wrong))
    with pytest.raises(ConfigError, match=r"task t: gripper_step is .* m; it needs gripper: true, .* 0.08 m, or 0"):
        SafetyFilter(spec)


def test_what_each_entry_moves_is_told_in_their_order():
    one = replace(SPEC, action_axes=("yaw", "x"), wrench_axes=("z", "roll"), action_force=20.0, action_torque=0.5)
    chosen = replace(one, gripper=True)
    anywhere = replace(chosen, gripper_step=0.02)
    told = "yaw 0.06 rad, x 0.01 m, push z 20 N, push roll 0.5 Nm"
    assert describe_actions(one) == f"{told}, every 0.1 s"
    assert describe_actions(chosen) == f"{told}, gripper, every 0.1 s"
    assert describe_actions(anywhere) == f"{told}, gripper 0.02 m, every 0.1 s"
    arms = {name: ArmSpec(BOX, action_axes=("x",), gripper=True) for name in ("left", "right")}
    both = TaskSpec.of_arms(arms, name="t", instruction="do it", max_steps=10, control_period=0.05)
    assert describe_actions(both) == "left x 0.01 m, right x 0.01 m, 2 grippers, every 0.05 s"
    for spec in (one, chosen, anywhere, both):
        assert describe_actions(spec).count(",") == spec.action_size
