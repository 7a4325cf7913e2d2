"""The state machine of a managed node (design.ros2.org/articles/node_lifecycle.html), with the services of ROS.

Needs `lifecycle_msgs`; `ros_nodes.node.managed` does without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from lifecycle_msgs.srv import ChangeState
from rclpy.callback_groups import CallbackGroup
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node


class Lifecycle(LifecycleNodeMixin, Node):
    """Gives a node `~/change_state`, `~/get_state` and the like.

    It is no node of its own: what rclpy takes of a node in its constructor is that of the other. (From Kilted on, the
    mixin demands `Node` as a base.)

    rclpy raises an exception out of the executor where a client asks for a transition that the present state has not,
    e.g. `activate` of an active node. That would end the node, so such a request is answered with `success` false.

    Args:
        node: The node.
        on_change: Called in each transition: with true as it becomes active, with false as it leaves that state.
    """

    def __init__(self, node: Node, on_change: Callable[[bool], None]) -> None:
        self._node, self._on_change = node, on_change
        self._services = node._services  # the executor serves what is in the node's own list
        LifecycleNodeMixin.__init__(self)
        self._change = self._service_change_state.callback
        self._service_change_state.callback = self._change_if_possible

    @property
    def handle(self) -> Any:
        """The handle of the node."""
        return self._node.handle

    @property
    def default_callback_group(self) -> CallbackGroup:
        """Return that of the node."""
        return cast("CallbackGroup", self._node.default_callback_group)

    def get_logger(self) -> RcutilsLogger:
        """Return that of the node."""
        return cast("RcutilsLogger", self._node.get_logger())

    @property
    def state(self) -> str:
        """The name of the present state: unconfigured, inactive, active or finalized; of a transition while in one."""
        return str(self._state_machine.current_state[1])

    def start(self, *, active: bool) -> None:
        """Go to `inactive`, and on to `active` if that is asked for."""
        self.trigger_configure()
        if active:
            self.trigger_activate()

    def destroy(self) -> None:
        """Release the state machine, which would keep the node in the graph; after the node's own end."""
        self._state_machine.destroy_when_not_in_use()

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let commands pass from now on."""
        return self._changed(True)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let nothing pass from now on."""
        return self._changed(False)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let nothing pass any more; from `active`, this is the only transition that happens."""
        return self._changed(False)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let nothing pass after a transition that failed; it may be configured again."""
        return self._changed(False)

    def _changed(self, active: bool) -> TransitionCallbackReturn:
        self._on_change(active)
        return TransitionCallbackReturn.SUCCESS

    def _change_if_possible(self, request: ChangeState.Request, response: ChangeState.Response) -> Any:
        possible = {label: number for number, label, *_ in self._state_machine.available_transitions}
        wanted = request.transition
        if wanted.label in possible or (not wanted.label and wanted.id in possible.values()):
            return self._change(request, response)
        self._node.get_logger().warning(
            f"no transition {wanted.label or wanted.id} from the state {self.state}; possible: {', '.join(possible)}"
        )
        response.success = False
        return response
