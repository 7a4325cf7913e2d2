"""A node that the safety node requires: its process lives and works, whoever else claims its name."""

import os
import signal
import subprocess
import sys
import time

import pytest
from ros_nodes_graph import DOMAIN
from running import environment
from std_msgs.msg import Header
from waiting import PATIENCE, eventually

from ros_nodes.interface import topics
from ros_nodes.node.living import Living
from ros_nodes.node.required_node import RequiredNode
from ros_nodes.node.robot_node_base import RobotNode

LEASE, LIMIT = 0.25, 0.3
"""As by default, and within which a dead node has to be noticed [s]."""


STUCK = """
import time, rclpy
from ros_nodes.node.robot_node_base import RobotNode
rclpy.init()
node = RobotNode("teleop_node")
while not node.count_subscribers("heartbeat/teleop_node"):
    rclpy.spin_once(node)
node.timer(2.0, lambda: time.sleep(60.0))
rclpy.spin(node)
"""


@pytest.fixture
def processes():
    """Starts Python with these arguments, in the domain of the test."""
    started = []

    def start(*arguments):
        variables = environment(ROS_DOMAIN_ID=str(DOMAIN), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
        started.append(subprocess.Popen([sys.executable, *arguments], env=variables))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def teleop(processes):
    """A teleop_node in a process of its own."""
    return processes("-m", "ros_nodes.nodes.teleop_node")


class Watching(RobotNode):
    """Looks at it as often as the safety node does, and keeps when it was first missed."""

    def __init__(self, **options):
        super().__init__("watching", **options)
        self.required = RequiredNode(self, "teleop_node", LEASE, 1.0)
        self.fault, self.changed = "not looked at", 0.0
        self.timer(0.02, self._look)

    def _look(self):
        fault = self.required.fault()
        if (fault is None) != (self.fault is None):
            self.changed = time.monotonic()
        self.fault = fault


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_node_is_missed_within_0_3_s(graph, teleop, number):
    watching = graph.add(Watching)
    assert eventually(lambda: watching.fault is None), watching.fault
    time.sleep(0.2)
    at = time.monotonic()
    os.kill(teleop.pid, number)
    assert eventually(lambda: watching.fault is not None)
    assert "its process has ended or stands still" in watching.fault
    assert watching.changed - at < LIMIT
    if number == signal.SIGSTOP:
        os.kill(teleop.pid, signal.SIGCONT)
        assert eventually(lambda: watching.fault is None), watching.fault


@pytest.mark.parametrize("topic", ["heartbeat", "heartbeat/teleop_node"])
def test_somebody_else_who_takes_its_name_does_not_hide_that_it_stands_still(graph, teleop, topic):
    watching = graph.add(Watching)
    assert eventually(lambda: watching.fault is None), watching.fault
    rogue = graph.add(lambda **options: RobotNode("rogue", **options))
    beats = rogue.create_publisher(Header, topic, topics.HEARTBEAT.qos)
    rogue.timer(0.02, lambda: beats.publish(Header(frame_id="teleop_node")))
    os.kill(teleop.pid, signal.SIGSTOP)
    assert eventually(lambda: watching.fault is not None), "a rogue hides it"
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert watching.fault is not None
        time.sleep(0.02)
    if topic != "heartbeat":
        assert "rogue" in watching.fault


def test_a_node_that_lives_and_serves_no_callback_is_missed_as_well(graph, processes):
    watching = graph.add(Watching)
    processes("-c", STUCK)
    assert eventually(lambda: watching.fault is None), watching.fault
    assert eventually(lambda: watching.fault is not None, PATIENCE)
    assert "its process lives: is it stuck?" in watching.fault


COMMANDING = """
import rclpy
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode
rclpy.init()
node = RobotNode("actor_node")
node.publisher(topics.COMMAND)
rclpy.spin(node)
"""


def test_a_killed_node_that_was_started_again_is_one_writer_and_two_that_live_are_two(graph, processes):
    watching = graph.add(lambda **options: RobotNode("watching", **options))
    writer = watching.sole_writer(topics.COMMAND)
    first = processes("-c", COMMANDING)
    assert eventually(lambda: writer.identity())
    assert writer.conflict() is None
    second = processes("-c", COMMANDING)
    assert eventually(lambda: len(writer.identity()) == 2)
    for _ in range(50):
        assert "2 nodes publish on /command: " in writer.conflict()
        time.sleep(0.02)
    first.kill()
    assert eventually(lambda: writer.conflict() is None, 5.0), "its lease of 20 s is not waited for"
    assert len(writer.identity()) == 2
    rogue = graph.add(lambda **options: RobotNode("rogue", **options))
    rogue.publisher(topics.COMMAND)
    assert eventually(lambda: "rogue" in (writer.conflict() or ""))
    assert second.poll() is None


GONE_AT_ONCE = """
import os, signal, time, rclpy
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode
rclpy.init()
node = RobotNode("actor_node")
writer = node.publisher(topics.COMMAND)
while not writer.get_subscription_count():
    time.sleep(0.001)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_node_that_is_killed_before_its_name_or_its_life_is_known_is_no_second_writer(graph, processes):
    watching = graph.add(lambda **options: RobotNode("watching", **options))
    writer = watching.sole_writer(topics.COMMAND)
    watching.create_subscription(topics.COMMAND.type, topics.COMMAND.name, print, topics.COMMAND.qos)
    processes("-c", COMMANDING)
    assert eventually(lambda: writer.identity())
    for number in range(3):
        processes("-c", GONE_AT_ONCE).wait()
        assert eventually(lambda: writer.conflict() is None, 5.0), f"{number}: {writer.conflict()}"


def test_each_that_counts_the_living_is_told_of_each(graph, teleop):
    class Counting(RobotNode):
        def __init__(self, **options):
            super().__init__("counting", **options)
            self.counts = [Living(self, "heartbeat/teleop_node", LEASE)]
            self.timer(0.5, lambda: len(self.counts) < 3 and self.counts.append(Living(self, "heartbeat/teleop_node")))

    counting = graph.add(Counting)
    assert eventually(lambda: [one.count for one in counting.counts] == [1, 1, 1])
    teleop.kill()
    assert eventually(lambda: [one.count for one in counting.counts] == [0, 0, 0])


def test_a_node_whose_heartbeats_come_lives_even_if_dds_has_missed_its_return(graph):
    teleop = graph.add(lambda **options: RobotNode("teleop_node", **options))
    watching = graph.add(Watching)
    assert eventually(lambda: watching.required.fault() is None)
    watching.required.living.count = 0  # seen after a node of both ends had been killed, for minutes
    faults = []
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        faults.append(watching.required.fault())
        time.sleep(0.01)
    assert faults.count(None) > 0.8 * len(faults), "the machine may be busy once"
    assert eventually(lambda: watching.required.living.count == 1), "nor does DDS miss it for ever"
    graph.remove(teleop)
    assert eventually(lambda: "its process has ended" in (watching.required.fault() or ""))
