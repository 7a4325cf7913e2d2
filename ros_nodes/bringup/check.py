"""`robot-rl up --check`: are the nodes there, well, and agreed on topics, types and quality of service? Nothing moves.

All nodes are started but the main one, which alone commands; then the graph is looked at, and what the nodes say of
themselves: a camera that is not there, a controller that is silent.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible

from ros_nodes.bringup.supervisor import Supervisor
from ros_nodes.bringup.table import NodeSpec
from ros_nodes.interface import topics
from ros_nodes.interface.topics import EACH_ARM, HEARTBEAT, TOPICS, Topic
from ros_nodes.node.robot_node_base import LIMIT, is_neighbour

PATIENCE = 60.0
"""How long nodes may take to show up [s]."""
SETTLE = 3.0
"""Time from the last node to the look at the graph [s]: its topics follow it, and its diagnostics."""
PARTING = 22.0
"""How long the graph may hold a node that was killed [s]: its lease of 20 s, and time to look again."""


def check(specs: Sequence[NodeSpec], namespace: str, environment: dict[str, str]) -> int:
    """Start the nodes, report line by line what is wrong, and end them; return the exit code."""
    others = [spec for spec in specs if not spec.main]
    supervisor = Supervisor(others, namespace, environment)
    os.environ.update(environment)
    rclpy.init(args=[])
    node = rclpy.create_node("robot_rl_check", namespace=namespace or None)
    diagnosed = _Diagnosed(node)
    try:
        supervisor.start()
        missing = _wait_for(node, {spec.executable for spec in others}, supervisor)
        _spin(node, SETTLE)
        deadline = time.monotonic() + PARTING
        doubled = _any_twice(node)
        while doubled and not missing and time.monotonic() < deadline and topic_problems(node) + diagnosed.problems():
            doubled = _any_twice(node)
            _spin(node, SETTLE)  # what nodes say while another is there twice does not count
        problems = [f"node {name} has not shown up within {PATIENCE:g} s" for name in sorted(missing)]
        problems += topic_problems(node) + diagnosed.problems()
    finally:
        supervisor.end()
        node.destroy_node()
        rclpy.try_shutdown()
    for name, limits in diagnosed.limits():
        print(f"limits of {name}: {limits}")
    for warning in diagnosed.warnings():
        print(f"robot-rl: warning: {warning}", file=sys.stderr)
    for problem in problems:
        print(f"robot-rl: {problem}", file=sys.stderr)
    if not problems:
        print(f"{len(others)} nodes are there and well: topics, types and quality of service fit")
    return 1 if problems else 0


def type_name(topic: Topic) -> str:
    """Return the type of a topic's messages, as ROS writes it."""
    return f"{topic.type.__module__.split('.')[0]}/msg/{topic.type.__name__}"


def topic_problems(node: Node) -> list[str]:
    """List what is wrong with the topics of our table in the graph that a node sees, one sentence each."""
    known = {node.resolve_topic_name(topic.name): topic for topic in TOPICS if "{" not in topic.name}
    each, cell = {topic.name: topic for topic in EACH_ARM}, f"{node.get_namespace().rstrip('/')}/"
    problems = []
    for name, types in node.get_topic_names_and_types():
        of_an_arm = name.removeprefix(cell).partition("/")[2] if name.startswith(cell) else ""
        topic = known.get(name) or each.get(of_an_arm)
        if topic is None:
            continue
        wanted = type_name(topic)
        if types != [wanted]:
            problems.append(f"{name} has type {', '.join(types)}, it should be {wanted}")
            continue
        readers = node.get_subscriptions_info_by_topic(name)
        for writer in node.get_publishers_info_by_topic(name):
            for reader in readers:
                verdict, reason = qos_check_compatible(writer.qos_profile, reader.qos_profile)
                if verdict == QoSCompatibility.ERROR:
                    problems.append(f"{name}: {reader.node_name} cannot read what {writer.node_name} sends: {reason}")
    return problems


def _wait_for(node: Node, names: set[str], supervisor: Supervisor) -> set[str]:
    """Wait for nodes of these names; return those that are missing in the end."""
    deadline = time.monotonic() + PATIENCE
    missing = names
    while missing and time.monotonic() < deadline:
        _spin(node, 0.1)
        here = node.get_namespace()
        missing = names - {name for name, where in node.get_node_names_and_namespaces() if where == here}
        if any(code not in (None, 0) for code in supervisor.codes().values()):
            break  # it has said why
    return missing


def _any_twice(node: Node) -> bool:
    """Return whether a node of the namespace is there twice, as after a kill until its lease has run out."""
    here = node.get_namespace()
    names = {name for name, where in node.get_node_names_and_namespaces() if where == here}
    return any(node.count_publishers(HEARTBEAT.name.format(node=name)) > 1 for name in names)


class _Diagnosed:
    """What nodes say of themselves."""

    def __init__(self, node: Node) -> None:
        self._newest: dict[str, deque[DiagnosticStatus]] = {}
        self._is_ours: Callable[[DiagnosticStatus], bool] = lambda status: is_neighbour(node, status.name)
        topic = topics.DIAGNOSTICS
        node.create_subscription(topic.type, topic.name, self._take, topic.qos)

    def problems(self) -> list[str]:
        """List their problems, one sentence each: those reported twice, since a start is never in order."""
        return self._of_level(DiagnosticStatus.ERROR)

    def warnings(self) -> list[str]:
        """List what they warn of in the same way, e.g. of a camera that is too slow."""
        return self._of_level(DiagnosticStatus.WARN)

    def limits(self) -> list[tuple[str, str]]:
        """List the nodes that limit commands, each with the limits in force."""
        newest = (reported[-1] for reported in self._newest.values())
        listed = [
            (
                status.name,
                [f"{one.key.removeprefix(LIMIT)} {one.value}" for one in status.values if one.key.startswith(LIMIT)],
            )
            for status in newest
        ]
        return [(name, ", ".join(limits)) for name, limits in listed if limits]

    def _of_level(self, level: bytes) -> list[str]:
        reports = (reported for reported in self._newest.values() if all(one.level == level for one in reported))
        return [f"{reported[-1].name}: {reported[-1].message}" for reported in reports]

    def _take(self, message: DiagnosticArray) -> None:
        for status in filter(self._is_ours, message.status):
            self._newest.setdefault(status.name, deque(maxlen=2)).append(status)


def _spin(node: Node, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        rclpy.spin_once(node, timeout_sec=left)
