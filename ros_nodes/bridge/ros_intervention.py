"""The operator's interventions over topics, for the actor: the newest one, and the reset before each episode."""

from __future__ import annotations

from functools import partial

from sensor_msgs.msg import Joy
from std_srvs.srv import SetBool

from robot_rl.clock import Clock
from robot_rl.data.schema import Source
from robot_rl.errors import GraphError
from robot_rl.teleop.intervention import Intervention, InterventionOperator
from ros_nodes.bridge.ros_task import RESET_LIMIT
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import TaskHead
from ros_nodes.node.robot_node_base import RobotNode

SCRIPT_LIMIT = 10.0
"""Time that a scripted operator has for a reset, and for its first answer after it [s]."""


class RosIntervention:
    """Receives interventions, and announces new episodes to the node that sends them.

    Args:
        node: Where to subscribe; it is being spun in another thread.
        arrivals: Rung by every intervention.
    """

    def __init__(self, node: RobotNode, arrivals: Arrivals) -> None:
        self._node, self._arrivals = node, arrivals
        self._newest: Intervention | None = None
        self._reset_client = node.create_client(SetBool, topics.OPERATOR_RESET[0])
        node.subscribe(topics.INTERVENTION, self._receive)

    @staticmethod
    def source_of(head: TaskHead) -> Source:
        """Return the source of the operator's steps."""
        return Source.SCRIPT if head.operator == "script" else Source.HUMAN

    def make_operator(self, head: TaskHead, clock: Clock, timeout: float) -> InterventionOperator | None:
        """Return the operator of a task, or None; an intervention older than `timeout` [s] does not count."""
        if head.operator == "none":
            return None
        return InterventionOperator(
            head.spec, lambda: self._newest, clock, timeout, partial(self._reset, head.operator == "script")
        )

    def answered(self, stamp: int) -> bool:
        """Return whether an intervention of `stamp` [ns] or later has come."""
        return self._newest is not None and self._newest.stamp >= stamp

    def _reset(self, script: bool, seed: int, demonstrate: bool) -> None:
        del seed  # a scripted operator has it from the task
        answer = self._arrivals.call(
            self._node, self._reset_client, SetBool.Request(data=demonstrate), SCRIPT_LIMIT if script else RESET_LIMIT
        )
        if not answer.success:
            raise GraphError(f"the operator cannot be told of a new episode: {answer.message}")
        if not script:
            return  # a person has confirmed to be ready
        if not self._arrivals.wait_for(lambda: self.answered(int(answer.message)), SCRIPT_LIMIT):
            raise GraphError(f"nothing has come from the operator on {topics.INTERVENTION.name}; is sim_node running?")

    def _receive(self, message: Joy) -> None:
        self._newest = convert.intervention_of(message)
        self._arrivals.ring()
