"""What the node of a task publishes: JSON, and with the package `robot_rl_msgs` the same as typed messages.

The typed messages are for plots and for programs that are not ours; our own nodes read the JSON.
"""

from __future__ import annotations

import importlib
from typing import Any

from rclpy.node import Node

from robot_rl.env.action_mapping import check_no_wrench
from ros_nodes.interface import qos, topics
from ros_nodes.interface.convert import header
from ros_nodes.interface.task_messages import Estimates, OutcomeMessage, TaskHead, to_message
from ros_nodes.node.robot_node_base import RobotNode

try:
    typed: Any = importlib.import_module("robot_rl_msgs.msg")
except ImportError:  # a package of this repository that is built with colcon
    typed = None
if not hasattr(typed, "Verdict"):
    typed = None  # the folder of a checkout, which is not built

VERDICT_LEAD = 0.015
"""In real time, how long before the end of a control period the step is judged [s]: the verdict shall arrive in it."""
TYPED = "task/typed/"
"""Where the typed messages are: `facts`, `estimates`, `verdict`."""
WITHOUT = (
    "robot_rl_msgs is not built: task/head, task/estimates and task/verdict are JSON only, and there are no actions"
)


class TaskPublisher:
    """Publishes the facts of a task, its part of the observation, and its verdicts.

    Args:
        node: Whose publishers.
    """

    def __init__(self, node: RobotNode) -> None:
        self._head, self._estimates = node.publisher(topics.HEAD), node.publisher(topics.ESTIMATES)
        self._verdicts = node.publisher(topics.VERDICT)
        self._typed: dict[type[Any], Any] = {}
        if typed is None:
            node.get_logger().info(WITHOUT)
            return
        for kind, name, profile in (
            (typed.TaskFacts, "facts", qos.LATCHED),
            (typed.Estimates, "estimates", qos.EVENT),
            (typed.Verdict, "verdict", qos.EVENT),
        ):
            self._typed[kind] = Node.create_publisher(node, kind, f"{TYPED}{name}", profile)

    def head(self, head: TaskHead) -> None:
        """Publish the facts.

        Raises:
            ConfigError: if the task commands a wrench, and the arm is a real one, which follows none.
        """
        if head.simulation is None:
            check_no_wrench(head.spec, "an arm behind robot_node")
        self._head.publish(to_message(head))
        if typed is not None:
            spec, facts = head.spec, typed.TaskFacts(operated_by=head.operator, lockstep=head.lockstep)
            facts.name, facts.control_period, facts.max_steps = spec.name, float(spec.control_period), spec.max_steps
            facts.cameras = list(head.cameras)
            self._typed[typed.TaskFacts].publish(facts)

    def estimates(self, estimates: Estimates) -> None:
        """Publish the task's part of the observation."""
        self._estimates.publish(to_message(estimates))
        if typed is not None and self._typed[typed.Estimates].get_subscription_count():
            numbered = [(f"{key}/{i}", v) for key, values in estimates.values.items() for i, v in enumerate(values)]
            message = typed.Estimates(header=header(estimates.stamp, ""), episode=max(0, estimates.episode))
            message.names, message.values = [name for name, _ in numbered], [value for _, value in numbered]
            self._typed[typed.Estimates].publish(message)

    def verdict(self, verdict: OutcomeMessage) -> None:
        """Publish how things stand after a step."""
        self._verdicts.publish(to_message(verdict))
        if typed is not None:
            message = typed.Verdict(header=header(verdict.stamp, ""), episode=max(0, verdict.episode))
            message.success, message.failure = verdict.success, verdict.failure or ""
            message.reward = float(verdict.reward)
            message.metric_names, message.metric_values = list(verdict.metrics), list(verdict.metrics.values())
            self._typed[typed.Verdict].publish(message)
