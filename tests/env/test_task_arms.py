"""Several arms in one loop: actions and observations by arm, one command, and who led what."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import ARMS_SPEC, SPEC, fake_arms, fake_workcell

from robot_rl.data.schema import Source
from robot_rl.env.cell_geometry.capsule import KeepOutLimits
from robot_rl.env.choice import grippers_of, join_grippers, split_grippers
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command, SetPoint, check_command
from robot_rl.env.task import TaskSpec, check_one_arm
from robot_rl.errors import ActionError, ConfigError
from robot_rl.geometry import Pose

P, H, HOLD = Source.POLICY, Source.HUMAN, Source.HOLD
OPEN, KEEP, CLOSE = 1.0, 0.0, -1.0


def act(*left, right=(0.0, 0.0), grippers=(KEEP, KEEP)):
    return np.array([*left, *right, join_grippers(grippers)], np.float32)


def test_two_grippers_are_one_choice_of_nine_and_no_two_pairs_are_the_same():
    entries = (CLOSE, KEEP, OPEN)
    joint = {(a, b): join_grippers([a, b]) for a in entries for b in entries}
    assert sorted(joint.values()) == pytest.approx(np.linspace(-1, 1, 9).tolist())
    assert all(split_grippers(np.float32(entry), 2) == list(pair) for pair, entry in joint.items())
    assert joint[KEEP, KEEP] == 0.0
    assert (split_grippers(-1.0, 1), join_grippers([OPEN])) == ([CLOSE], OPEN)


def test_the_facts_of_a_cell_are_those_of_its_arms():
    spec = ARMS_SPEC.environment
    assert (spec.action_size, spec.choices, spec.grippers, spec.arms) == (6, 9, 2, ("left", "right"))
    assert ARMS_SPEC.of_arm("right").action_axes == ("x", "y")
    assert ARMS_SPEC.of_arm("right").environment.choices == 3
    assert (SPEC.environment.choices, SPEC.environment.arms, SPEC.grippers, dict(SPEC.arms)) == (0, (), 0, {})
    assert [grippers_of(choices) for choices in (0, 1, 2, 3, 5, 9, 18, 27)] == [0, 0, 0, 1, 0, 2, 0, 3]
    with pytest.raises(ConfigError, match="fake_arms has the arms left, right, and a mouse leads one arm"):
        check_one_arm(ARMS_SPEC, "a mouse")
    check_one_arm(SPEC, "a mouse")


def test_an_arm_whose_gripper_goes_to_any_width_beside_one_that_only_closes_and_opens():
    left = replace(ARMS_SPEC.arms["left"], gripper_step=0.01)
    spec = TaskSpec.of_arms({**ARMS_SPEC.arms, "left": left}, name="t", instruction="", max_steps=9, control_period=0.1)
    assert (spec.action_size, spec.grippers, spec.environment.choices) == (7, 1, 3)
    assert [one.action_size for one in spec.each.values()] == [4, 3]
    cell, robots = fake_arms(spec)
    env = RobotEnv(cell)
    env.start(0, "e")
    width = cell.io.read().arms["left"].gripper_width
    env.advance(np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.0, CLOSE], np.float32))
    assert robots["left"].commands[-1].gripper_width == pytest.approx(width + 0.005)
    assert robots["right"].commands[-1].gripper_width == 0.0


def test_each_arm_has_its_own_observations_and_one_arm_keeps_its_keys():
    with_arms = RobotEnv(fake_arms()[0])
    keys = {f"state/{arm}/{what}" for arm in ("left", "right") for what in ("tcp_pose", "tcp_twist", "wrench")}
    assert set(with_arms.observation_specs) == keys | {f"state/{arm}/gripper_width" for arm in ("left", "right")}
    one = {"state/tcp_pose", "state/tcp_twist", "state/wrench", "state/goal"}
    assert set(RobotEnv(fake_workcell()).observation_specs) == one


def test_each_arm_moves_by_its_own_part_of_the_action():
    cell, robots = fake_arms()
    env = RobotEnv(cell)
    start = env.start(0, "e")
    assert list(start.arms) == ["left", "right"]
    env.advance(act(1.0, 0.0, 0.0, right=(0.0, -1.0), grippers=(OPEN, CLOSE)))
    left, right = (robots[name].commands[-1] for name in robots)
    # The tcps look down: y of the tool is -y of the base.
    assert left.T_base_target.position == pytest.approx([0.01, 0.0, 0.0], abs=1e-3)
    assert right.T_base_target.position == pytest.approx([0.0, 0.01, 0.0], abs=1e-3)
    assert (left.gripper_width, right.gripper_width) == (0.08, 0.0)
    assert left.stamp == right.stamp
    assert left.ttl == right.ttl


@pytest.mark.parametrize(
    ("led", "source", "arms"),
    [
        ({}, P, (P, P)),
        ({"left": [0.5, 0, 0, 1]}, H, (H, P)),
        ({"right": [0.5, 0, 0]}, H, (P, H)),
        ({"left": [0, 0, 0, 0]}, P, (HOLD, P)),
        ({"left": [0, 0, 0, 0], "right": [0, 0, 0]}, HOLD, (HOLD, HOLD)),
        ({"left": [0, 0, 0, 0], "right": [0.5, 0, 0]}, H, (HOLD, H)),
        ({"left": [0.5, 0, 0, 0], "right": [0.5, 0, 0]}, H, (H, H)),
    ],
)
def test_one_hand_leads_an_arm_while_the_policy_keeps_the_other(led, source, arms):
    cell, _ = fake_arms()
    env = RobotEnv(cell, interventions=True)
    env.start(0, "e")
    wanted = act(0.2, 0.3, 0.4, right=(0.6, 0.7), grippers=(CLOSE, OPEN))
    cell.operator.led = {arm: np.array(action, float) for arm, action in led.items()}
    step = env.advance(wanted).recorded
    assert (step.source, tuple(step.arm_sources)) == (source, arms)
    np.testing.assert_array_equal(step.action_policy, wanted)
    expected = {"left": [0.2, 0.3, 0.4, CLOSE], "right": [0.6, 0.7, OPEN], **led}
    np.testing.assert_allclose(step.action[:5], [*expected["left"][:3], *expected["right"][:2]], atol=1e-6)
    assert split_grippers(step.action[-1], 2) == [expected["left"][-1], expected["right"][-1]]


def test_control_of_each_arm_changes_hands_without_a_jump():
    cell, _ = fake_arms()
    env = RobotEnv(cell, interventions=True, handover=HandoverLimits(linear=0.5))
    env.start(0, "e")
    wanted = act(1.0, 0.0, 0.0, right=(1.0, 0.0))
    env.advance(wanted)
    cell.operator.led = {"left": np.array([-1.0, 0.0, 0.0, 0.0])}
    step = env.advance(wanted).recorded
    assert step.action[:5].tolist() == pytest.approx([0.5, 0.0, 0.0, 1.0, 0.0]), "0.5 m/s^2 * (0.1 s)^2 = 0.5 of 1 cm"


def test_an_action_of_nobody_is_refused():
    cell, robots = fake_arms()
    env = RobotEnv(cell, interventions=True)
    env.start(0, "e")
    cell.operator.led = {"third": np.zeros(3)}
    with pytest.raises(ActionError, match="the operator leads third, and fake_arms is for the arms left, right"):
        env.advance(act(0, 0, 0))
    assert not robots["left"].commands


def test_a_demonstration_leads_all_arms_and_succeeds():
    env = RobotEnv(fake_arms()[0])
    env.start(0, "e", demonstrate=True)
    steps = []
    while not steps or not steps[-1].ended:
        steps.append(env.advance(act(0, 0, 0)))
    assert steps[-1].success
    assert {tuple(step.recorded.arm_sources) for step in steps} == {(H, H)}


def test_a_robot_with_other_arms_than_the_task_is_refused_in_one_line():
    both, _ = fake_arms()
    with pytest.raises(
        ConfigError, match="fake_reach is for one arm without a name, and the robot has the arms left, r"
    ):
        RobotEnv(replace(fake_workcell(), io=both.io)).start(0, "e")
    one = fake_workcell()
    with pytest.raises(ConfigError, match="fake_arms is for the arms left, right, and the robot has one arm without"):
        RobotEnv(replace(both, io=one.io)).start(0, "e")
    apart = {"left": ARMS_SPEC.arms["left"], "middle": ARMS_SPEC.arms["right"]}
    with pytest.raises(ConfigError, match="for the arms left, middle, and the robot has the arms left, right"):
        RobotEnv(fake_arms(replace(ARMS_SPEC, arms=apart))[0]).start(0, "e")


def test_workspaces_that_cross_need_a_keep_out():
    near = {name: replace(arm, base_position=(0.0, 0.0, 0.0)) for name, arm in ARMS_SPEC.arms.items()}
    crossing = replace(ARMS_SPEC, arms=near)
    with pytest.raises(
        ConfigError, match="the workspaces of left and right cross by 200 mm, and nothing keeps the arms"
    ):
        RobotEnv(fake_arms(crossing)[0]).start(0, "e")
    RobotEnv(fake_arms(replace(crossing, keep_out=KeepOutLimits()))[0]).start(0, "e")


HERE = Pose(np.zeros(3), np.array([0.0, 1.0, 0.0, 0.0]))


@pytest.mark.parametrize(
    ("command", "arms", "message"),
    [
        (
            Command(1, 1.0, HERE),
            ("left", "right"),
            "one set-point for the arms left, right: a command names the set-point",
        ),
        (
            Command.of_arms(1, 1.0, {"left": SetPoint(HERE)}),
            ("left", "right"),
            "for the arms left, and the robot has the",
        ),
        (
            Command.of_arms(1, 1.0, {"left": SetPoint(HERE), "right": SetPoint(HERE)}),
            (),
            "the robot has one arm, without",
        ),
        (
            Command.of_arms(1, 1.0, {"left": SetPoint(HERE), "right": SetPoint(HERE, np.nan)}),
            ("left", "right"),
            "arm right: gripper width must be finite",
        ),
    ],
)
def test_a_command_for_other_arms_is_refused_in_one_line(command, arms, message):
    with pytest.raises(ActionError, match=message) as caught:
        check_command(command, 0, arms)
    assert "\n" not in str(caught.value)
