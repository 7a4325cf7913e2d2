"""The box of the limits against what an arm reaches: known arms, and the box that is proposed instead."""

import re

import numpy as np
import pytest
from standing_arm import StandingArm

from robot_rl.arm.kinematics.fr3 import fr3_chain
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.arm.kinematics.universal_robots import ur_chain
from robot_rl.doctor.standing.box_in_reach import StandingTool, judge_box
from robot_rl.doctor.standing.examine_arm import StandingRobot, examine_arm
from robot_rl.geometry import Pose

READY = {
    "fr3": (fr3_chain(), np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])),
    "ur5e": (ur_chain("ur5e"), np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])),
    "so101": (so101_chain(), np.array([0.0, -0.6, 0.9, 0.9, 0.0])),
}
UP = np.array([0.0, 0.0, 1.0])
TOOL = Pose(np.array([0.0, 0.0, 0.15]), np.array([0.0, 1.0, 0.0, 0.0]))


def standing(arm, tool=None):
    chain, joints = READY[arm]
    end = chain.pose(joints)
    return StandingTool(chain, joints, end if tool is None else end @ tool)


def around(tool, half):
    at = tool.T_base_tcp.position
    return at - half, at + half


@pytest.mark.parametrize("arm", READY)
def test_a_small_box_is_in_reach_and_what_is_proposed_for_a_large_one_is_too(arm):
    tool = standing(arm)
    assert judge_box(tool, around(tool, 0.03)).severity == "ok"
    found = judge_box(tool, around(tool, 0.4))
    assert found.severity == "note" and 0 < found.value < 27
    low, high = (
        [float(number) for number in numbers.split(", ")] for numbers in re.findall(r"\[([-0-9., ]+)\]", found.cure)
    )
    assert judge_box(tool, (low, high)).severity == "ok"
    assert min(np.subtract(high, low)) > 0.1


def test_how_far_a_point_is_out_of_reach_is_measured_from_where_the_arm_ends():
    tool = standing("ur5e")
    at = tool.T_base_tcp.position
    found = judge_box(tool, (at, at + 2.0 * UP))
    short = float(re.search(r"up to (\d+) mm short", found.text)[1])
    lengths = 0.425 + 0.3922 + 0.0997  # upper arm, forearm, and the wrist where it points up
    assert at[2] + 2.0 - 1e-3 * short < 0.1625 + lengths + 0.01
    assert found.value == 18  # those half the way up, and those at its end


def test_where_the_arm_is_stretched_is_named_although_it_reaches():
    tool = standing("ur5e")
    at = tool.T_base_tcp.position
    assert judge_box(tool, (at, at + 0.2 * UP)).severity == "ok"
    found = judge_box(tool, (at, at + 0.275 * UP))
    assert found.severity == "note" and found.text.endswith("out of reach, or stretched")


def test_the_tool_counts():
    """The same box about the flange, for a tool that leads it 15 cm the other way."""
    bare, tooled = standing("fr3"), standing("fr3", TOOL)
    low, high = around(bare, 0.16)
    assert judge_box(bare, (low, high)).severity == "ok"
    moved = tooled.T_base_tcp.position - bare.T_base_tcp.position
    assert judge_box(tooled, (low + moved, high + moved)).severity == "ok"
    assert judge_box(tooled, (np.minimum(low, low + moved), high)).severity == "note"


def test_a_tcp_outside_of_the_box_is_named():
    tool = standing("ur5e")
    low, high = around(tool, 0.1)
    found = judge_box(tool, (low + 0.2, high + 0.2))
    assert found.severity == "note" and "outside of the box" in found.text and "box_low" in found.cure


@pytest.mark.parametrize(("known", "names"), [(fr3_chain(), {"arm box"}), (ur_chain("ur3"), set()), (None, set())])
def test_it_is_examined_where_the_driver_knows_the_kinematics_of_the_joints_it_reports(known, names):
    class Arm(StandingArm):
        chain = known

    robot = StandingRobot(lambda host: Arm(Arm.Config(), host), 0.2, ((0.4, -0.1, 0.2), (0.6, 0.1, 0.3)))
    assert {result.name for result in examine_arm(robot, 0.3)} & {"arm box"} == names
