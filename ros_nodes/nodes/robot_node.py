"""A real arm behind our topics: an `ArmDriver`, and `CommandFollower` on the way to it.

The driver is found by its name. The simulated arm has a node of its own, which also simulates the task.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.publisher import Publisher
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.arm.command_follower import CommandFollower
from robot_rl.arm.driver import ArmDriver, find_driver
from robot_rl.arm.wrench_filter import ContactWrench
from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import RobotNodeConfig
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness, StateAssembler, Tool
from robot_rl.errors import CommandRefusedError, ConfigError, RobotRLError
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, topics
from ros_nodes.node.commander import Commander
from ros_nodes.node.managed import ManagedNode
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.spin import run_with_threads

WATCH_RATE = 100.0
"""How often it checks for what has expired [Hz]."""


class ArmNode(ManagedNode):
    """The node; its parameters are those of `RobotNodeConfig` and of the driver."""

    def __init__(self, **options: Any) -> None:
        super().__init__("robot_node", **options)
        self.config = config = declare(self, RobotNodeConfig, more=True)
        refuse_changes(self, RobotNodeConfig)
        self.max_age = config.max_age
        self._driver = self._make_driver()
        self._parts = StateAssembler(freshness=Freshness(max_age=config.max_age))
        self._contact = ContactWrench(config.wrench_cutoff)
        self._gripper_width = 0.0
        self._commander = Commander(self, config)
        self._pose: Pose | None = None
        self._overspeed: str | None = None
        names = (topics.POSE, topics.TWIST, topics.WRENCH, topics.JOINTS)
        self._streams: dict[str, Publisher] = {
            part: self.publisher(topic)
            for part, topic in zip(("pose", "twist", "wrench", "joints"), names, strict=True)
        }
        self._tool = self.publisher(topics.TOOL)
        self._due: dict[str, int] = {}  # when each part may be published again [ns]
        self._follower = CommandFollower(self._driver, config.max_age)
        self._followed = self._refused = self._capped = 0
        self._active_since = time.monotonic()
        self._driver.start(self._receive)
        self.subscribe(topics.SAFE_COMMAND, self._follow)
        self.create_service(Trigger, topics.TARE_SERVICE[0], self._on_tare)
        self.timer(1.0 / WATCH_RATE, self._watch)
        if not self._driver.measures_wrench:
            self.get_logger().warning(
                "the wrench is not measured (crisp: wrench_topic): no limit on forces is in effect"
            )
        self.manage(start_inactive=config.start_inactive)

    def destroy_node(self) -> None:
        """Hold the arm first."""
        self._follower.stop("its node has ended")
        self._driver.close()
        super().destroy_node()

    def switched(self, active: bool) -> None:
        """Hold the arm; what was commanded before a transition does not count after it."""
        self._active_since = time.monotonic()
        if not active:
            self._follower.stop(f"{self.get_name()} is no longer active")

    def health(self) -> tuple[bytes, str]:
        """Return whether the arm would obey."""
        if faults := self._faults():
            return DiagnosticStatus.ERROR, "; ".join(faults)
        doing = f"the arm holds: {self._follower.holds}" if self._follower.holds else "the arm follows commands"
        if not self._driver.measures_wrench:
            return DiagnosticStatus.WARN, f"{doing}; forces are not measured"
        return DiagnosticStatus.OK, doing

    def facts(self) -> Mapping[str, object]:
        """Return the number of commands by their result, and how much is measured."""
        now = self.wall.now()
        ages = {f"{part} age_s": self._parts.age(part, now) for part in self._streams}
        received = {f"received {part}": count for part, count in self._parts.received.items()}
        counts = {"followed": self._followed, "refused": self._refused, "capped": self._capped}
        return counts | self._commander.facts() | ages | received

    def _make_driver(self) -> ArmDriver:
        kind = find_driver(self.config.driver)
        own, others = (set(one.__dataclass_fields__) for one in (RobotNodeConfig, kind.Config))
        if own & others:
            raise ConfigError(
                f"driver {self.config.driver} names parameters that robot_node has already: "
                f"{', '.join(sorted(own & others))}; rename them in its Config"
            )
        settings = declare(self, kind.Config)
        refuse_changes(self, kind.Config)
        return kind(settings, self)

    def _watch(self) -> None:
        """Hold when the command has expired, the arm is not measured, or would not obey."""
        if self._follower.holds is None and (faults := self._faults()):
            self._follower.stop("; ".join(faults))
        self._follower.check(self.wall.now(), self._age())

    def _faults(self) -> list[str]:
        """Return why the arm would not obey now: its state, faults of its driver, who commands it, speed, time."""
        own = (self.inactive(), self._commander.fault(), self._overspeed, self.time_fault(self.max_age))
        return [*self._driver.faults(), *filter(None, own)]

    def _follow(self, message: MultiDOFJointTrajectory) -> None:
        try:
            command = convert.command_of(message)
            if command is None:
                self._follower.stop("a stop was requested")
                return
            if faults := self._faults():
                self._follower.stop("; ".join(faults))
                raise CommandRefusedError("; ".join(faults))
            if 1e-9 * (self.wall.now() - command.stamp) > time.monotonic() - self._active_since:
                raise CommandRefusedError(f"it was made before {self.get_name()} was activated")
            self._follower.command(self._within_cap(command), self.wall.now(), self._age())
        except RobotRLError:
            self._refused += 1
            raise
        self._followed += 1

    def _within_cap(self, command: Command) -> Command:
        if self._pose is None:
            return command  # the follower refuses it: the arm is not measured
        try:
            capped = self._commander.cap.apply(command, self._pose)
        except CommandRefusedError as error:
            self._follower.stop(str(error))
            raise
        if capped is not command:
            self._capped += 1
            self.problem("a set-point too far from the tcp was brought nearer (cap_lead, cap_turn)")
        return capped

    def _receive(self, part: str, stamp: int, value: Any) -> None:
        """Publish a measurement, unless it is broken or comes too soon after the one before."""
        if part == "gripper":
            self._gripper_width = float(value)
            return
        if not self._parts.add(part, stamp, value, self.wall.now()):
            self.problem(f"the {part} was refused: its {self._parts.last_refusal(part)}")
            return
        if part == "pose":
            self._pose = value
        elif part == "twist":
            self._overspeed = self._commander.cap.overspeed(value)
        elif part == "wrench":
            value = self._contact.add(stamp, value)  # also those in between: their peak counts
        if stamp < self._due.get(part, 0):
            return
        self._due[part] = stamp + round(0.9 * NS_PER_S / self.config.state_rate)
        self._streams[part].publish(_message(part, stamp, value))
        if part == "pose":
            tool = Tool(self._gripper_width, self._contact.take_peak())
            self._tool.publish(convert.tool_message(stamp, tool))

    def _age(self) -> float:
        return self._parts.age("pose", self.wall.now())

    def _on_tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        response.success = self._driver.measures_wrench and self._contact.tare()
        response.message = "tared" if response.success else "no wrench has been measured"
        return response


def _message(part: str, stamp: int, value: Any) -> Any:
    if part == "joints":
        names = [f"joint{number}" for number in range(1, len(value.position) + 1)]
        return convert.joints_message(stamp, names, value)
    makers: dict[str, Callable[[int, Any], Any]] = {
        "pose": convert.pose_message,
        "twist": convert.twist_message,
        "wrench": convert.wrench_message,
    }
    return makers[part](stamp, value)


def main() -> int:
    """Run the node."""
    return run_with_threads(ArmNode)


if __name__ == "__main__":
    sys.exit(main())
