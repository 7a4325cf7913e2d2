"""`use_sim_time`: stamps are those of `/clock`, as with Gazebo, Isaac or `ros2 bag play --clock`; no watch is off."""

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Bool
from waiting import eventually

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.robot_io import Command
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, topics
from ros_nodes.node.parameters import declare
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.robot_node import ArmNode
from ros_nodes.nodes.safety_node import SafetyNode

HERE = Pose(np.array([0.5, 0.0, 0.2]), np.array([0.0, 1.0, 0.0, 0.0]))
CELL = ["--ros-args", "-r", "__ns:=/cell"]
SPEED = 0.8
"""Simulated time is slower than real time."""


class Simulator(RobotNode):
    """Publishes `/clock`, from 5 s on, and what it simulates: an arm."""

    def __init__(self, **options):
        super().__init__("simulator", **options)
        self.time, self.runs = 5 * NS_PER_S, True
        self._clock = self.create_publisher(Clock, "/clock", 10)
        self._pose, self._wrench = self.publisher(topics.POSE), self.publisher(topics.WRENCH)
        self.timer(0.01, self._step)

    def _step(self):
        if self.runs:
            self.time += round(0.01 * SPEED * NS_PER_S)
            self._clock.publish(Clock(clock=convert.time_message(self.time)))
            self._pose.publish(convert.pose_message(self.time, HERE))
            self._wrench.publish(convert.wrench_message(self.time, np.zeros(6)))


class Hand(RobotNode):
    """Commands, with stamps of simulated time."""

    def __init__(self, **options):
        super().__init__("hand", **options)
        self.received, self.stopped = [], [""]
        self._commands, self.estop = self.publisher(topics.COMMAND), self.publisher(topics.ESTOP)
        self.subscribe(topics.SAFE_COMMAND, lambda message: self.received.append(convert.command_of(message)))
        self.subscribe(topics.STOPPED, lambda message: self.stopped.append(message.data))

    def moves(self):
        count = len(self.received)
        self._commands.publish(convert.command_message(Command(self.wall.now(), 0.3, HERE)))
        return eventually(lambda: any(command is not None for command in self.received[count:]), 0.5)


@pytest.fixture
def rig(graph):
    simulator = graph.add(Simulator)
    hand = graph.add(Hand, use_sim_time=True)
    graph.add(SafetyNode, use_sim_time=True, required_nodes=["teleop_node"], liveliness_lease=1.0)
    return simulator, hand


def test_commands_pass_by_the_time_of_the_clock_and_required_nodes_are_watched(rig, graph):
    simulator, hand = rig
    assert eventually(lambda: "no heartbeat of the required node teleop_node yet" in hand.stopped[-1])
    assert not hand.moves()
    teleop = graph.add(lambda **options: RobotNode("teleop_node", **options))
    assert eventually(hand.moves), hand.stopped
    assert hand.wall.now() < 60 * NS_PER_S
    assert hand.received[-1] is not None
    assert hand.received[-1].stamp <= simulator.time
    graph.remove(teleop)
    assert eventually(lambda: "no heartbeat of the required node teleop_node" in hand.stopped[-1])
    assert not hand.moves()


def test_the_arm_holds_while_simulated_time_stands_still(rig, graph):
    simulator, hand = rig
    graph.add(lambda **options: RobotNode("teleop_node", **options))
    assert eventually(hand.moves), hand.stopped
    simulator.runs = False
    assert eventually(lambda: "simulated time has stood still for" in hand.stopped[-1])
    assert hand.received[-1] is None
    simulator.runs = True
    assert eventually(hand.moves), hand.stopped
    hand.estop.publish(Bool(data=True))
    assert eventually(lambda: "topic estop" in hand.stopped[-1])


def test_the_arm_holds_after_simulated_time_was_set_back(rig, graph):
    simulator, hand = rig
    graph.add(lambda **options: RobotNode("teleop_node", **options))
    assert eventually(hand.moves), hand.stopped
    before = hand.wall.now()
    simulator.time -= 2 * NS_PER_S
    assert eventually(lambda: "/clock was set back and is 1." in hand.stopped[-1])
    assert hand.received[-1] is None
    assert hand.wall.now() >= before
    simulator.time += 2 * NS_PER_S
    assert eventually(hand.moves), hand.stopped


class Commander(Hand):
    """In the place of the safety node."""

    def __init__(self, **options):
        RobotNode.__init__(self, "safety_node", cli_args=CELL, **options)
        declare(self, CommandLimits)
        self.commands = self.publisher(topics.SAFE_COMMAND)


def test_a_command_expires_where_simulated_time_was_set_back(graph):
    simulator = graph.add(Simulator)
    commander = graph.add(Commander, use_sim_time=True)
    node = graph.add(lambda **options: ArmNode(cli_args=CELL, **options), use_sim_time=True, driver="standin")
    assert eventually(lambda: commander.commands.get_subscription_count() == 1)
    assert eventually(lambda: node.health()[1] == "the arm holds: no command has come yet")
    here = Pose(np.array([0.45, 0.0, 0.2]), HERE.quaternion)
    commander.commands.publish(convert.command_message(Command(commander.wall.now(), 0.3, here)))
    assert eventually(lambda: node.health()[1] == "the arm follows commands")
    simulator.time -= 4 * NS_PER_S
    assert eventually(lambda: "/clock was set back" in node.health()[1], 1.0)


def test_a_clock_that_nobody_publishes_is_named(graph):
    node = graph.add(lambda **options: RobotNode("lost", **options), use_sim_time=True)
    assert "nothing has come on /clock" in node.time_fault(1.0)
    assert graph.add(lambda **options: RobotNode("found", **options)).time_fault(1.0) is None
