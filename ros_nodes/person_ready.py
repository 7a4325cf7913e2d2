"""Waiting until a person has said that all is ready. It knows the service by which they say so, not what it is for."""

from __future__ import annotations

from rclpy.task import Future
from std_srvs.srv import Trigger

from robot_rl.env.task import TaskSpec
from ros_nodes import topics
from ros_nodes.node import RobotNode

FACT = "waits_for_person"
"""Name in a node's diagnostics for whether it waits."""


def to_make_ready(spec: TaskSpec) -> str:
    """What a person does before an episode of a real arm."""
    return "make the scene ready" if spec.start else "make the scene ready and bring the arm to its start pose"


class PersonReady:
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
        """Returns when the person is ready: True; or when another waits instead, False."""
        if self._waiting is not None:
            self._waiting.set_result(False)  # whoever asked before has given up, or was killed
        waiting: Future[bool] = Future()
        self._waiting = waiting
        return bool(await waiting)

    def say(self) -> str | None:
        """The person is ready; why that is of no use now, or None."""
        if self._waiting is None:
            return "no episode waits to begin"
        waiting, self._waiting = self._waiting, None
        waiting.set_result(True)
        return None

    def _on_ready(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        reason = self.say()
        response.success, response.message = reason is None, reason or ""
        return response
