"""A service of the kind of `Trigger` that is also an action: with feedback, and it can be cancelled."""

from __future__ import annotations

import importlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup

from ros_nodes.node.robot_node_base import RobotNode

try:
    Trigger: Any = importlib.import_module("robot_rl_msgs.action").Trigger
except (ImportError, AttributeError):  # a package of this repository that is built with colcon; or its bare folder
    Trigger = None

FEEDBACK_PERIOD = 0.5
"""Time between two messages of feedback [s]."""


class TriggerAction:
    """Offers the action, where the package `robot_rl_msgs` is built; elsewhere the service does alone.

    Args:
        node: Whose action.
        name: That of the service.
        do: Does it, and returns whether it has worked, and the result or the reason.
        doing: Returns what is being done, for the feedback.
        cancel: Makes `do` end soon, without success.
    """

    def __init__(
        self,
        node: RobotNode,
        name: str,
        do: Callable[[], Awaitable[tuple[bool, str]]],
        *,
        doing: Callable[[], str],
        cancel: Callable[[], None],
    ) -> None:
        self._node, self._do, self._doing, self._cancel = node, do, doing, cancel
        if Trigger is not None:
            self._server: Any = ActionServer(
                node,
                Trigger,
                name,
                self._execute,
                cancel_callback=self._on_cancel,
                callback_group=ReentrantCallbackGroup(),
            )

    def _on_cancel(self, goal: Any) -> CancelResponse:
        del goal  # there is one at a time
        self._cancel()
        return CancelResponse.ACCEPT

    async def _execute(self, goal: Any) -> Any:
        began = time.monotonic()

        def report() -> None:
            goal.publish_feedback(Trigger.Feedback(doing=self._doing(), elapsed=time.monotonic() - began))

        report()
        timer = self._node.timer(FEEDBACK_PERIOD, report)
        try:
            success, message = await self._do()
        finally:
            self._node.destroy_timer(timer)
        if goal.is_cancel_requested:
            goal.canceled()
        elif success:
            goal.succeed()
        else:
            goal.abort()
        return Trigger.Result(success=success, message=message)
