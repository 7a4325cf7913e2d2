"""The service with which a person says that the scene is ready, and who waits for it."""

from __future__ import annotations

from rclpy.task import Future
from std_srvs.srv import Trigger

from robot_rl.env.task import TaskSpec
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode

FACT = "waits_for_person"
"""Name in a node's diagnostics for whether it waits."""


def to_make_ready(spec: TaskSpec) -> str:
    """Describe what a person does before an episode of a real arm."""
    return "make the scene ready" if spec.start else "make the scene ready and bring the arm to its start pose"


class OperatorReady:
    """Whoever waits lets the node go on meanwhile: it has to be awaited in a callback group of its own.

    Args:
        node: Whose service.
    """

    def __init__(self, node: RobotNode) -> None:
        self._waiting: Future[bool] | None = None
        node.create_service(Trigger, topics.READY_SERVICE[0], self._on_ready)

    @property
    def waits(self) -> bool:
        """Whether somebody is waited for."""
        return self._waiting is not None

    async def wait(self) -> bool:
        """Wait until the person is ready: True; or when another waits instead, False."""
        self.give_up()  # the earlier caller has given up, or was killed
        waiting: Future[bool] = Future()
        self._waiting = waiting
        return bool(await waiting)

    def give_up(self) -> None:
        """End the waiting, if anybody waits: they get False."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set_result(False)

    def confirm(self) -> str | None:
        """Report that the operator is ready; return why that has no effect now, or None."""
        if self._waiting is None:
            return "no episode waits to begin"
        waiting, self._waiting = self._waiting, None
        waiting.set_result(True)
        return None

    def _on_ready(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        reason = self.confirm()
        response.success, response.message = reason is None, reason or ""
        return response
