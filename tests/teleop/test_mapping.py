"""From a reading to an action: frames, dead zone, response, smoothing, clutch; and maps that are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.clock import NS_PER_S
from robot_rl.errors import SpecError
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply, quat_rotate
from robot_rl.teleop.device import DeviceError
from robot_rl.teleop.gamepad import Gamepad
from robot_rl.teleop.intervention import Intervention
from robot_rl.teleop.keyboard import TerminalKeyboard
from robot_rl.teleop.leader.leader_arm import LeaderArm
from robot_rl.teleop.mapping import MAPS, CommandMapper, DeviceMap, default_map, load_map
from robot_rl.teleop.pushed import PushedDevice
from robot_rl.teleop.spacemouse import SpaceMouse

AXES = ("x", "y", "z", "roll", "pitch", "yaw")
SIX = replace(SPEC, action_axes=AXES)
DOWN = Pose(np.array([0.5, 0.0, 0.3]), np.array([0.0, 1.0, 0.0, 0.0]))  # x as the base's, y and z turned round
PLAIN = DeviceMap(axes={axis: axis for axis in AXES}, dead_zone=0.0, exponent=1.0, smoothing=0.0)


def device(buttons=("take", "clutch", "slow", "grip")):
    return PushedDevice("browser", AXES, buttons, max_age=1e9)


def command(mapping, axes, buttons=(False,) * 4, *, spec=SIX, pose=DOWN, mapper=None, now=NS_PER_S):
    hand = device()
    hand.push(axes, buttons)
    mapper = mapper or CommandMapper(mapping, hand, spec)
    return mapper.intent(hand.read(), pose, now)


unit = st.floats(-1, 1)
vectors = st.tuples(*[unit] * 6)
rotations = st.tuples(*[st.floats(-1.5, 1.5)] * 3).map(np.array)


@given(vectors, rotations)
def test_in_the_base_frame_the_tool_goes_where_the_hand_points_however_it_is_turned(axes, rotvec):
    pose = Pose(np.zeros(3), quat_from_rotvec(rotvec))
    action = command(replace(PLAIN, scale=0.4, rotation_scale=0.4), axes, pose=pose).action
    for part in (slice(0, 3), slice(3, 6)):
        hand = np.array(axes[part])
        length = np.linalg.norm(hand)
        expected = 0.4 * hand / max(length, 1.0) if length else hand
        np.testing.assert_allclose(quat_rotate(pose.quaternion, action[part].astype(float)), expected, atol=1e-6)


@given(vectors, rotations)
def test_in_the_tool_frame_the_pose_does_not_matter(axes, rotvec):
    mapping = replace(PLAIN, frame="tool")
    pose = Pose(np.zeros(3), quat_from_rotvec(rotvec))
    np.testing.assert_array_equal(command(mapping, axes, pose=pose).action, command(mapping, axes).action)


def test_a_person_who_faces_the_robot_sees_left_and_right_changed():
    away = command(PLAIN, [0.5, 0, 0, 0, 0, 0]).action
    facing = command(replace(PLAIN, view=180.0), [0.5, 0, 0, 0, 0, 0]).action
    np.testing.assert_allclose(facing[:3], -away[:3], atol=1e-6)


@given(vectors, st.floats(0.0, 0.5), st.floats(1.0, 3.0))
def test_dead_zone_and_response_keep_directions_and_never_amplify(axes, dead_zone, exponent):
    mapping = replace(PLAIN, frame="tool", dead_zone=dead_zone, exponent=exponent)
    action = command(mapping, axes).action.astype(float)
    for part in (slice(0, 3), slice(3, 6)):
        hand = np.array(axes[part], np.float32).astype(float)  # the precision of readings
        length = float(np.linalg.norm(hand))
        if length <= dead_zone:
            assert not action[part].any()
            continue
        assert np.linalg.norm(action[part]) <= min(length, 1.0) + 1e-6
        np.testing.assert_allclose(np.cross(action[part], hand), 0, atol=1e-6)
        assert action[part] @ hand >= 0


def test_smoothing_is_a_first_order_filter_that_comes_to_rest():
    hand = device()
    mapper = CommandMapper(replace(PLAIN, frame="tool", smoothing=0.1), hand, SIX)
    hand.push([1, 0, 0, 0, 0, 0], (False,) * 4)
    mapper.intent(hand.read(), DOWN, 0)
    value = mapper.intent(hand.read(), DOWN, NS_PER_S // 10).action[0]
    assert value == pytest.approx(1 - np.exp(-1), abs=1e-6)
    hand.push([0] * 6, (False,) * 4)
    for tenth in range(2, 15):
        action = mapper.intent(hand.read(), DOWN, tenth * NS_PER_S // 10).action
    assert not action.any(), "rest is exactly zero, so that an idle hand is no command"


def test_buttons_clutch_slow_take_and_gripper():
    gripper = replace(SIX, gripper=True)
    mapping = replace(
        PLAIN, frame="tool", buttons={"take": "take", "clutch": "clutch", "slow": "slow", "gripper": "grip"}
    )
    hand = device()
    mapper = CommandMapper(mapping, hand, gripper)

    def at(second, *down):
        hand.push([0.9, 0, 0, 0, 0, 0], [name in down for name in hand.buttons])
        return mapper.intent(hand.read(), DOWN, second * NS_PER_S)

    assert not at(1).action.any()
    assert at(2, "clutch").action[0] == pytest.approx(0.9)
    assert at(3, "clutch", "slow").action[0] == pytest.approx(0.3)
    assert at(4, "take").take
    assert [at(5 + n, *down).action[6] for n, down in enumerate([("grip",), ("grip",), (), ("grip",), ()])] == [
        -1,
        0,
        0,
        1,
        0,
    ]
    assert at(20).pressed == frozenset()
    assert at(21, "slow").pressed == {"slow"}


def test_the_button_of_a_gripper_that_goes_to_any_width_moves_it_while_it_is_held():
    mapping, hand = replace(PLAIN, buttons={"gripper": "grip"}), device()
    mapper = CommandMapper(mapping, hand, replace(SIX, gripper=True, gripper_step=0.01))
    moved = []
    for second, down in enumerate([False, True, True, False, True, False], start=1):
        hand.push([0.0] * 6, [down and name == "grip" for name in hand.buttons])
        moved.append(mapper.intent(hand.read(), DOWN, second * NS_PER_S).action[6])
    assert moved == [0, -1, -1, 0, 1, 0]


def test_only_the_axes_of_the_task_are_commanded():
    action = command(PLAIN, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], spec=SPEC).action
    np.testing.assert_allclose(action, [0.1, -0.2, -0.3], atol=1e-6)


@pytest.mark.parametrize("kind", sorted(path.stem for path in MAPS.glob("*.yaml")))
def test_the_maps_that_come_with_it_fit_their_devices(kind):
    from robot_rl.console.protocol import AXES as CONSOLE_AXES
    from robot_rl.console.protocol import BUTTONS as CONSOLE_BUTTONS

    hands = {
        "spacemouse": (SpaceMouse.axes, SpaceMouse.buttons),
        "gamepad": (Gamepad.axes, Gamepad.buttons),
        "keyboard": (TerminalKeyboard.axes, TerminalKeyboard.buttons),
        "browser": (CONSOLE_AXES, CONSOLE_BUTTONS),
        "joy": ([f"axis_{n}" for n in range(8)], [f"button_{n}" for n in range(11)]),
        "spacenav": ([f"axis_{n}" for n in range(6)], [f"button_{n}" for n in range(2)]),
        "twist": (AXES, ()),
        "leader": (LeaderArm.axes, LeaderArm.buttons),
    }
    hand = PushedDevice(kind, *hands[kind])
    mapper = CommandMapper(default_map(kind), hand, replace(SIX, gripper=True))
    assert not mapper.intent(hand.read(), DOWN, NS_PER_S).action.any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("axes: {x: wheel}", "the map names axis wheel; valid: x, y, z"),
        ("axes: {up: x}", "axis of motion up; valid: x, y, z"),
        ("buttons: {fire: take}", "role fire; valid: take, clutch"),
        ("buttons: {take: trigger}", "button trigger; valid: take"),
        ("engage: hold", "engage is `hold`, but no button"),
        ("dead_zone: 1.5", "dead_zone: Input should be less than 1"),
        ("deadzone: 0.1", "deadzone"),
        ("frame: world", "frame: Input should be 'base' or 'tool'"),
        ("view: .nan", "view: Input should be a finite number"),
        ("axes: [x", "cannot read the device map"),
        ("", "the file"),
    ],
)
def test_a_map_that_is_wrong_says_what_is_valid(tmp_path, text, message):
    (tmp_path / "my.yaml").write_text(text)
    with pytest.raises(DeviceError) as error:
        CommandMapper(load_map(tmp_path / "my.yaml"), device(), SIX)
    assert message in str(error.value)


def test_turns_in_the_base_frame_turn_the_tool_about_the_bases_axes():
    turn = command(PLAIN, [0, 0, 0, 0, 0, 0.5]).action[3:].astype(float)
    turned = quat_multiply(DOWN.quaternion, quat_from_rotvec(turn))
    expected = quat_multiply(quat_from_rotvec(np.array([0, 0, 0.5])), DOWN.quaternion)
    np.testing.assert_allclose(turned, expected, atol=1e-6)


def test_a_device_commands_no_wrench_and_its_actions_have_the_length_of_the_task():
    spec = replace(SPEC, wrench_axes=("z", "yaw"), action_force=5.0, action_torque=1.0, gripper=True)
    mapping = replace(PLAIN, frame="tool", buttons={"close": "grip"})
    action = command(mapping, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0), (False, False, False, True), spec=spec).action
    assert action.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, -1.0]
    alone = replace(SPEC, action_axes=(), wrench_axes=("z",), action_force=5.0)
    assert command(mapping, (1.0,) * 6, spec=alone).action.tolist() == [0.0]


def test_an_intervention_carries_the_wrench_of_a_scripted_operator():
    spec = replace(SPEC, action_axes=("x",), wrench_axes=("z", "yaw"), action_force=5.0, action_torque=1.0)
    action = np.array([0.5, -0.25, 1.0], np.float32)
    intervention = Intervention.of_action(1, action, spec)
    assert intervention.wrench.tolist() == [0.0, 0.0, -0.25, 0.0, 0.0, 1.0]
    assert np.array_equal(intervention.action(spec), action)
    gripping = replace(spec, gripper=True)
    assert Intervention.of_action(1, np.append(action, 1.0), gripping).action(gripping).tolist() == [
        0.5,
        -0.25,
        1.0,
        1.0,
    ]
    with pytest.raises(SpecError, match="wrench has to be six finite numbers"):
        Intervention(1, True, np.zeros(6, np.float32), wrench=np.zeros(3, np.float32))
