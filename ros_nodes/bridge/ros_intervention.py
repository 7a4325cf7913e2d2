"""The operator's interventions over topics, for the actor: the newest of each arm, and the reset before an episode."""

from __future__ import annotations

from functools import partial

from sensor_msgs.msg import Joy
from std_srvs.srv import SetBool

from robot_rl.clock import Clock
from robot_rl.data.schema import Source
from robot_rl.env.state_assembler import measurement_fault
from robot_rl.env.task import Operator
from robot_rl.errors import GraphError, SpecError
from robot_rl.teleop.intervention import Intervention, InterventionOperator, SeveralInterventions
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
        self._newest: dict[str, Intervention | None] = {}  # by arm; a single one has no name
        self._reset_client = node.create_client(SetBool, topics.OPERATOR_RESET[0])

    @staticmethod
    def source_of(head: TaskHead) -> Source:
        """Return the source of the operator's steps."""
        return Source.SCRIPT if head.operator == "script" else Source.HUMAN

    def make_operator(self, head: TaskHead, clock: Clock, timeout: float) -> Operator | None:
        """Return the operator of a task, or None; an intervention older than `timeout` [s] does not count."""
        if head.operator == "none":
            return None
        for arm in head.spec.each.keys() - self._newest.keys():
            self._newest[arm] = None
            receive = partial(self._receive, arm, None if head.lockstep else clock)
            self._node.subscribe(topics.INTERVENTION.of_arm(arm), receive)
        on_reset = partial(self._reset, head.operator == "script")
        if not head.spec.arms:
            return InterventionOperator(head.spec, partial(self._newest.get, ""), clock, timeout, on_reset)
        leaders = {
            name: InterventionOperator(spec, partial(self._newest.get, name), clock, timeout)
            for name, spec in head.spec.each.items()
        }
        return SeveralInterventions(leaders, on_reset)

    def answered(self, stamp: int) -> bool:
        """Return whether an intervention of `stamp` [ns] or later has come, for every arm."""
        return all(newest is not None and newest.stamp >= stamp for newest in self._newest.values())

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

    def _receive(self, arm: str, clock: Clock | None, message: Joy) -> None:
        """Take an intervention; in lockstep there is no clock, since its stamp comes before the time.

        Raises:
            SpecError: if it is of the future.
        """
        newest = convert.intervention_of(message)
        if clock is not None and (fault := measurement_fault(newest.stamp, -1, (), clock.now())):
            raise SpecError(f"the intervention's {fault}")
        self._newest[arm] = newest
        self._arrivals.ring()
