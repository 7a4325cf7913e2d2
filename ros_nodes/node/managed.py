"""Nodes on the way to the arm that can be switched: `active`, or `inactive`, where they publish but pass nothing."""

from __future__ import annotations

from typing import Any

from robot_rl.errors import ConfigError
from ros_nodes.node.robot_node_base import RobotNode

try:
    from ros_nodes.node.lifecycle import Lifecycle
except ImportError:  # `lifecycle_msgs` is a package of its own
    Lifecycle = None  # type: ignore[assignment, misc]

CURES = {"unconfigured": "configure", "inactive": "activate"}
"""The transition out of a state."""


class ManagedNode(RobotNode):
    """A node that is managed where ROS offers it, and else always active.

    A subclass calls `manage` at the end of its constructor, asks `inactive` before it passes anything, and overrides
    `switched`. No transition may move the arm.

    Args:
        name: Its name, unless a remapping changes it.
        options: What `rclpy.node.Node` takes, e.g. `context`.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._passes = False
        self._lifecycle = Lifecycle(self, self._switch) if Lifecycle is not None else None

    def manage(self, *, start_inactive: bool) -> None:
        """Take the first state.

        Raises:
            ConfigError: if the node shall start inactive and could not be activated.
        """
        if self._lifecycle is not None:
            self._lifecycle.start(active=not start_inactive)
            return
        if start_inactive:
            raise ConfigError(
                "start_inactive: nobody could activate this node, because the package lifecycle_msgs is missing; "
                "install ros-$ROS_DISTRO-lifecycle-msgs, or leave start_inactive out"
            )
        self.get_logger().info("always active: the package lifecycle_msgs is missing (ros2 lifecycle)")
        self._switch(True)

    def destroy_node(self) -> None:
        """End the state machine with the node."""
        super().destroy_node()
        if self._lifecycle is not None:
            self._lifecycle.destroy()

    def inactive(self) -> str | None:
        """Return why it passes nothing on, and how to change that; None while it is active."""
        if self._passes:
            return None
        name, state = self.get_fully_qualified_name(), self._lifecycle.state if self._lifecycle else "starting"
        if state == "finalized":
            return f"{self.get_name()} is shut down; start it again"
        cure = CURES.get(state, "activate")
        return f"{self.get_name()} is {'inactive' if state not in CURES else state}: ros2 lifecycle set {name} {cure}"

    def switched(self, active: bool) -> None:
        """Do what belongs to a transition: hold the arm when it is no longer active."""

    def sign(self) -> str:
        """Return what its heartbeats carry: the reason why it passes nothing on, or its name."""
        return self.inactive() or super().sign()

    def _switch(self, active: bool) -> None:
        self._passes = active
        self.switched(active)
        self._beat()  # whoever requires this node need not wait for the next one
