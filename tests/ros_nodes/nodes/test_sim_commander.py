"""The simulated arm obeys one node, within a cap of its own, as the node of a real arm does."""

import numpy as np
import pytest
from waiting import eventually

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.robot_io import Command
from ros_nodes.interface import convert, topics
from ros_nodes.node.parameters import declare
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.sim_node import SimNode


class Commanding(RobotNode):
    """Sends set-points on `safe_command`, and keeps the measured poses."""

    def __init__(self, name, **options):
        super().__init__(name, **options)
        declare(self, CommandLimits)
        self.poses = []
        self.subscribe(topics.POSE, lambda message: self.poses.append(convert.pose_of(message.pose)))
        self._commands = self.publisher(topics.SAFE_COMMAND)

    def go(self, offset):
        pose = self.poses[-1]
        target = type(pose)(pose.position + np.array(offset), pose.quaternion)
        self._commands.publish(convert.command_message(Command(self.wall.now(), 0.3, target)))

    def way(self, offset, seconds=0.6):
        """Return how far the arm goes [m] while it is commanded away all the time."""
        assert eventually(lambda: self.poses)
        start, end = self.poses[-1].position, self.wall.now() + round(seconds * NS_PER_S)
        while self.wall.now() < end:
            self.go(offset)
            eventually(lambda: False, 0.02)
        return float(np.linalg.norm(self.poses[-1].position - start))


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("rogue", {}, "/rogue publishes on /safe_command; only /safety_node may"),
        ("safety_node", {"cap_lead": 0.02}, "max_speed * reaction_time 0.027 is more than cap_lead 0.02"),
    ],
)
def test_who_is_not_the_safety_node_or_has_wider_limits_does_not_move_the_simulated_arm(
    graph, name, parameters, reason
):
    sim = graph.add(SimNode, task="reach", **parameters)
    commanding = graph.add(lambda **options: Commanding(name, **options))
    assert commanding.way([0.1, 0.0, 0.0]) < 0.002
    assert eventually(lambda: commanding.go([0.1, 0.0, 0.0]) or any(reason in text for text in sim.problems))


def test_the_simulated_arm_stays_in_its_own_box_whatever_it_is_sent(graph):
    sim = graph.add(SimNode, task="reach", cap_box_low=[0.4, -0.1, 0.1], cap_box_high=[0.53, 0.1, 0.3])
    declared = {"box_low": [0.4, -0.1, 0.1], "box_high": [0.53, 0.1, 0.3]}
    commanding = graph.add(lambda **options: Commanding("safety_node", **options), **declared)
    assert eventually(lambda: commanding.way([0.02, 0.0, 0.0]) > 0.01)
    commanding.way([0.3, 0.0, 0.0], 1.0)
    assert max(pose.position[0] for pose in commanding.poses) < 0.532
    assert any("outside the arm's own box" in text for text in sim.problems)
