"""A controller of ros2_control: whether it is active, and its activation with a person's consent."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import Any

from rclpy.task import Future

from robot_rl.errors import ConfigError
from ros_nodes.node.robot_node_base import RobotNode

LOOK_PERIOD = 0.5
"""Time between two questions for its state [s]."""
PATIENCE = 3.0
"""Time without an answer after which its state is not known [s]."""
SWITCH_LIMIT = 2
"""Longest time that an activation may take [s]."""
CURES = {
    "inactive": "robot/recover activates it",
    "unconfigured": "configure it: ros2 control set_controller_state {name} inactive",
    "finalized": "load it anew: ros2 control load_controller {name}",
}


class ManagedController:
    """Asks the controller manager for the state of a controller.

    Args:
        node: Whose clients and timer.
        manager: Full name of the controller manager, e.g. `/controller_manager`.
        name: Of the controller.
        replaces: Controllers that are deactivated when it is activated, because they claim the same joints.

    Raises:
        ConfigError: if `controller_manager_msgs` is not installed.
    """

    def __init__(self, node: RobotNode, manager: str, name: str, replaces: Sequence[str]) -> None:
        try:
            services: Any = importlib.import_module("controller_manager_msgs.srv")
        except ImportError as error:
            raise ConfigError(
                "controller: its state is asked for by the package controller_manager_msgs: install "
                "ros-$ROS_DISTRO-controller-manager-msgs, or leave `controller` out and activate it by hand"
            ) from error
        self._node, self._manager, self._name, self._replaces = node, manager.rstrip("/"), name, list(replaces)
        self._services = services
        self._list = node.create_client(services.ListControllers, f"{self._manager}/list_controllers")
        self._switch = node.create_client(services.SwitchController, f"{self._manager}/switch_controller")
        self._states: dict[str, str] = {}
        self._heard = -PATIENCE
        self._asked = self._refused = ""  # what was asked for and is not answered yet; why it did not work
        node.timer(LOOK_PERIOD, self._look)

    def fault(self) -> str | None:
        """Return why it would not obey now, with the cure; None if it would."""
        if time.monotonic() - self._heard > PATIENCE:
            return f"{self._manager} does not say which controllers are active; is ros2_control_node running?"
        state = self._states.get(self._name)
        if state == "active":
            return None
        if state is None:
            known = ", ".join(sorted(self._states)) or "none"
            return f"{self._manager} has no controller {self._name!r}; it has: {known} (parameter `controller`)"
        if self._asked:
            return f"the controller {self._name} is being activated"
        cure = CURES.get(state, "see the log of ros2_control_node").format(name=self._name)
        refused = f"; {self._manager} did not activate it: {self._refused}" if self._refused else ""
        return f"the controller {self._name} is {state}: {cure}{refused}"

    def activate(self) -> None:
        """Have it activated, if it is inactive; return at once. A person has consented."""
        if self._states.get(self._name) != "inactive" or self._asked or not self._switch.service_is_ready():
            return
        kind = self._services.SwitchController.Request
        request = kind(activate_controllers=[self._name], strictness=kind.STRICT, activate_asap=True)
        request.deactivate_controllers = [name for name in self._replaces if self._states.get(name) == "active"]
        request.timeout.sec = SWITCH_LIMIT
        self._asked, self._refused = self._name, ""
        self._switch.call_async(request).add_done_callback(self._switched)

    def _look(self) -> None:
        if self._list.service_is_ready():
            self._list.call_async(self._services.ListControllers.Request()).add_done_callback(self._take)

    def _take(self, future: Future[Any]) -> None:
        answer = future.result()
        if answer is not None:
            self._states = {one.name: one.state for one in answer.controller}
            self._heard = time.monotonic()

    def _switched(self, future: Future[Any]) -> None:
        answer, self._asked = future.result(), ""
        if answer is not None and not answer.ok:
            self._refused = getattr(answer, "message", "") or "see its log"  # `message` is there from Jazzy on
        self._look()
