"""Who commands an arm: one node of a known name, whose limits are within the arm's own cap."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any

from pydantic import ValidationError
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import parameter_value_to_python

from robot_rl.arm.set_point.set_point_cap import SetPointCap
from robot_rl.config.command_limits import ArmCap, CommandLimits, limits_of_arm, parse_arm_limits
from robot_rl.env.robot_io import Command, RobotState, check_arms
from robot_rl.errors import RobotRLError
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import LIMIT, RobotNode

LOOK_RATE = 10.0
"""How often it looks for a new commander [Hz]."""
PATIENCE = 1.0
"""Time after which an unanswered request for its limits is repeated [s]."""
LIMITS, DIFFERING = [field.name for field in fields(CommandLimits)], "arm_limits"


class Commander:
    """Watches the writer of `safe_command`, and compares its limits with the cap when it appears.

    Args:
        node: The node that drives the arm.
        config: Its cap, and the name of the commander.
        on_known: Called when the limits of a commander have become known.
        cell: Namespace in which the commander is, where that is not the node's own.
        arms: Those of several arms that the node drives; a single one has no name.

    Raises:
        ConfigError: if the cap's box is not one.
    """

    def __init__(
        self,
        node: RobotNode,
        config: ArmCap,
        on_known: Callable[[], None] = lambda: None,
        *,
        cell: str | None = None,
        arms: Collection[str] = ("",),
    ) -> None:
        self.cap = SetPointCap(config)
        self._node, self._config, self._on_known, self._arms = node, config, on_known, arms
        place = "" if cell is None else f"{cell.rstrip('/')}/"
        self._writer = node.sole_writer(f"{place}{topics.SAFE_COMMAND.name}", f"{place}{config.commander}")
        self._client = node.create_client(GetParameters, f"{self._writer.expected}/get_parameters")
        self._asked = LIMITS if set(arms) == {""} else [*LIMITS, DIFFERING]
        self._known: frozenset[bytes] = frozenset()  # writers whose limits are known
        self._wider: list[str] = []
        self._asked_at = -PATIENCE
        node.timer(1.0 / LOOK_RATE, self._look)

    @property
    def pending(self) -> bool:
        """Whether the limits of the present commander are not known yet."""
        writers = self._writer.identity()
        return bool(writers) and writers != self._known and self._writer.conflict() is None

    def fault(self) -> str | None:
        """Return why whoever publishes commands now may not command; None if it may, or if nobody does."""
        if (conflict := self._writer.conflict()) is not None:
            return conflict
        if self.pending:
            return f"the limits of {self._writer.expected} are not known yet"
        return self.misfit()

    def misfit(self) -> str | None:
        """Return in what the limits of the present commander do not fit the cap; None as long as that is not known."""
        if not (self._wider and self._writer.identity()):
            return None
        return (
            f"the limits of {self._writer.expected} are wider than the cap of {self._node.get_name()}: "
            f"{'; '.join(self._wider)}; change one of each pair"
        )

    def overspeed(self, state: RobotState) -> str | None:
        """Return in what an arm is too fast; None if none is."""
        for arm, one in state.each.items():
            if (fault := self.cap.overspeed(one.twist)) is not None:
                return f"arm {arm}: {fault}" if arm else fault
        return None

    def apply(self, command: Command, state: RobotState) -> Command:
        """Return the command with each set-point within the cap; the same object if they are.

        Raises:
            CommandRefusedError: as `SetPointCap.apply`, for one of them.
            ActionError: if it is for other arms.
        """
        check_arms(command, state.arms)
        if not command.arms:
            return self.cap.apply(command, state.T_base_tcp)
        points, capped = {}, False
        for arm in command.arms:
            one = command.of_arm(arm)
            limited = self.cap.apply(one, state.arms[arm].T_base_tcp)
            points[arm] = limited.set_point
            capped |= limited is not one
        return Command.of_arms(command.stamp, command.ttl, points) if capped else command

    def facts(self) -> dict[str, object]:
        """Return the cap in force."""
        return {f"{LIMIT}{field.name}": getattr(self._config, field.name) for field in fields(ArmCap)}

    def _look(self) -> None:
        if not self.pending or time.monotonic() - self._asked_at < PATIENCE or not self._client.service_is_ready():
            return
        self._asked_at, writers = time.monotonic(), self._writer.identity()
        future = self._client.call_async(GetParameters.Request(names=self._asked))
        future.add_done_callback(lambda answered: self._compare(writers, answered.result()))

    def _compare(self, writers: frozenset[bytes], answer: Any) -> None:
        values = [parameter_value_to_python(value) for value in answer.values]
        if len(values) != len(self._asked) or None in values:
            self._wider = [f"it has no limits that could be compared: {', '.join(self._asked)}"]
        else:
            self._wider = self._compared(dict(zip(self._asked, values, strict=True)))
        self._known, self._asked_at = writers, -PATIENCE
        for sentence in self._wider:
            self._node.get_logger().error(f"{self._writer.expected}: {sentence}")
        self._on_known()

    def _compared(self, values: dict[str, Any]) -> list[str]:
        try:
            parsed = parse_arm_limits([entry for entry in values.pop(DIFFERING, []) if entry])
            limits = CommandLimits(**{**values, **{name: tuple(values[name]) for name in ("box_low", "box_high")}})
            each = [limits_of_arm(limits, arm, parsed) for arm in self._arms]
        except (TypeError, ValidationError, RobotRLError) as error:
            return [f"they are not valid: {error}"]
        return list(dict.fromkeys(sentence for one in each for sentence in self.cap.exceeded_by(one)))
