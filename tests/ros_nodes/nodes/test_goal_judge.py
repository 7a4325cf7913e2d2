"""The arm's own judge behind topics: a step is judged by where the arm was at its end, however late that is read."""

import time

import numpy as np
from real_cell import EXAMPLE
from waiting import eventually

from robot_rl.cell.goal import Goal, GoalConfig
from robot_rl.cell.task_file import load_task
from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.goal_judge import GoalJudge

SPEC = load_task(EXAMPLE, "plug")
PERIOD = round(SPEC.control_period * NS_PER_S)
START = Pose(np.array([0.5, 0.0, 0.2]), np.array([1.0, 0.0, 0.0, 0.0]))


class Arm(RobotNode):
    """Says where the arm is, and what it was commanded, with the stamps that a test gives."""

    def __init__(self, **options):
        super().__init__("arm", **options)
        self.poses, self.commands = self.publisher(topics.POSE), self.publisher(topics.SAFE_COMMAND)

    def measure(self, stamp):
        self.poses.publish(convert.pose_message(stamp, START))

    def command(self, stamp):
        """Waits until it has arrived: of commands that nobody has read yet only the newest is kept."""
        self.commands.publish(convert.command_message(Command(stamp, 1.0, START)))
        time.sleep(0.2)


def begun(graph):
    """An episode has begun: the arm, the stamps of what was judged since, and when it began [ns]."""
    arm, node, judged, seen = graph.add(Arm), graph.add(lambda **o: RobotNode("task", **o)), [], []
    goal = Goal(GoalConfig((0.02, 0.02, 0.02)))
    judge = GoalJudge(
        node, SPEC, goal, estimate=lambda stamp, _: seen.append(stamp), judge=lambda stamp, _: judged.append(stamp)
    )
    assert eventually(lambda: arm.measure(arm.wall.now()) or seen)
    assert eventually(lambda: arm.commands.get_subscription_count() == 1)
    judge.begin(3)
    return arm, judged, arm.wall.now()


def measured_until(arm, stamp, judged, count):
    """Whether that many steps are judged, as the same late measurement is read again and again."""
    return eventually(lambda: arm.measure(stamp) or len(judged) >= count)


def test_a_step_whose_last_pose_is_read_after_the_next_command_is_judged_all_the_same(graph):
    arm, judged, start = begun(graph)
    for step in range(2):
        arm.command(start + step * PERIOD)
    assert measured_until(arm, start + PERIOD, judged, 1)
    assert measured_until(arm, start + 2 * PERIOD, judged, 2)
    assert judged == [start + PERIOD, start + 2 * PERIOD]


def test_steps_that_one_pose_ended_are_judged_once(graph):
    arm, judged, start = begun(graph)
    for step in range(3):
        arm.command(start + step * PERIOD)
    assert measured_until(arm, start + 3 * PERIOD, judged, 1)
    time.sleep(0.1)
    assert judged == [start + 3 * PERIOD], "the arm was there once, which is no success of several steps"
