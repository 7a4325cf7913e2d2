"""A real arm behind our topics: an `ArmDriver`, and `ArmControl` around it.

The driver is found by its name. The simulated arm has a node of its own, which also simulates the task. Each of several
real arms has one in a namespace of its own, e.g. `/left/robot_node`, and takes its part of the one command of all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.publisher import Publisher
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.arm.arm_control import NO_WRENCH, ArmControl
from robot_rl.arm.control_thread import starting_beside
from robot_rl.arm.driver import ArmDriver, find_driver, joint_names
from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import RobotNodeConfig
from robot_rl.env.robot_io import Command, check_arms
from robot_rl.env.state_assembler import ARM_PARTS, FORCELESS_PARTS, Freshness, StateAssembler
from robot_rl.errors import ArmStoppedError, CommandRefusedError, ConfigError, RobotRLError
from ros_nodes.interface import convert, topics
from ros_nodes.interface.frames import of_arm
from ros_nodes.interface.topics import Topic
from ros_nodes.node.commander import Commander
from ros_nodes.node.managed import ManagedNode
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.spin import run_with_threads

WATCH_RATE = 100.0
"""How often it checks for what has expired [Hz]."""
FAULT_SETTLES = 0.5
"""Time after which a fault of the arm is no passing one, such as a late pose, and holds the arm by a stop [s]."""


class ArmNode(ManagedNode):
    """The node; its parameters are those of `RobotNodeConfig` and of the driver."""

    def __init__(self, **options: Any) -> None:
        with starting_beside():  # DDS: who publishes waits for its threads, which would wait for a processor
            super().__init__("robot_node", **options)
        self.config = config = declare(self, RobotNodeConfig, more=True)
        refuse_changes(self, RobotNodeConfig)
        self.max_age = config.max_age
        self._faulty_since: float | None = None
        cell = self._cell()
        self._commander = Commander(self, config, cell=cell, arms=(config.arm_name,))
        self._streams: dict[str, Publisher] = {
            part: self.publisher(self._own(topic))
            for part, topic in zip(("pose", "twist", "wrench", "joints"), topics.MEASURED, strict=True)
        }
        self._tool, self._transforms = self.publisher(self._own(topics.TOOL)), self.transforms()
        measures = self.publisher(topics.MEASURES)
        self._due: dict[str, int] = {}  # when each part may be published again [ns]
        self._refused = 0
        self._active_since = time.monotonic()
        commands = topics.SAFE_COMMAND.of_arms([config.arm_name] if config.arm_name else ())
        self.subscribe(commands._replace(name=f"{cell.rstrip('/')}/{commands.name}"), self._follow)
        self.create_service(Trigger, topics.TARE_SERVICE[0], self._on_tare)
        self.create_service(Trigger, topics.RECOVER_SERVICE[0], self._on_recover)
        # The driver comes last, and starts at once: a controller may wait for commands as soon as it is connected.
        self._driver = driver = self._make_driver()
        measures.publish(String(data=" ".join(sorted(driver.measures))))
        forceless = "wrench" not in driver.measures
        measured = FORCELESS_PARTS if forceless else ARM_PARTS
        self._parts = StateAssembler(freshness=Freshness(max_age=config.max_age), measured=measured)
        self._arm = ArmControl(
            driver,
            self,
            self._parts,
            self._commander.cap,
            wrench_cutoff=config.wrench_cutoff,
            interpolation=config.interpolation,
            more_faults=self._own_faults,
        )
        self._arm.start(self._publish)
        self.timer(1.0 / WATCH_RATE, self._arm.check)
        if forceless:
            self.get_logger().warning(f"{NO_WRENCH}; zeros are published (crisp: wrench_topic)")
        self.manage(start_inactive=config.start_inactive)

    def destroy_node(self) -> None:
        """Hold the arm first."""
        self._arm.close()
        super().destroy_node()

    def switched(self, active: bool) -> None:
        """Hold the arm; what was commanded before a transition does not count after it."""
        self._active_since = time.monotonic()
        if not active:
            self._arm.stop(f"{self.get_name()} is no longer active")

    def sign(self) -> str:
        """Return what its heartbeats carry: the reason why it passes nothing on, a fault of the arm, or its name.

        So that an arm which obeys nothing holds the others, too.
        """
        faults = self._driver.faults()
        self._faulty_since = (self._faulty_since or time.monotonic()) if faults else None
        settled = self._faulty_since is not None and time.monotonic() - self._faulty_since > FAULT_SETTLES
        fault = f"{topics.fault_of(self.config.arm_name)}{'; '.join(faults)}"
        return self.inactive() or (fault if settled else self._commander.misfit() or self.get_name())

    def health(self) -> tuple[bytes, str]:
        """Return whether the arm would obey."""
        if faults := self._arm.faults():
            return DiagnosticStatus.ERROR, "; ".join(faults)
        doing = f"the arm holds: {self._arm.holds}" if self._arm.holds else "the arm follows commands"
        if not self._arm.measures_wrench:
            return DiagnosticStatus.WARN, f"{doing}; forces are not measured"
        return DiagnosticStatus.OK, doing

    def facts(self) -> Mapping[str, object]:
        """Return the number of commands by their result, and how much is measured."""
        now = self.wall.now()
        ages = {f"{part} age_s": self._parts.age(part, now) for part in self._streams if part in self._parts.received}
        received = {f"received {part}": count for part, count in self._parts.received.items()}
        counts = {"followed": self._arm.followed, "refused": self._refused, "capped": self._arm.capped}
        return counts | self._commander.facts() | ages | received

    def _cell(self) -> str:
        """Return the namespace of the cell: the node's own, or, of one of several arms, the one above.

        Raises:
            ConfigError: if the node's namespace is not that of its arm.
        """
        place, _, last = self.get_namespace().rpartition("/")
        if not self.config.arm_name:
            return self.get_namespace()
        if last != self.config.arm_name:
            raise ConfigError(
                f"arm_name is {self.config.arm_name}, and the node is in the namespace {self.get_namespace()}; start "
                f"it in one that ends with /{self.config.arm_name}, e.g. with -r __ns:=/{self.config.arm_name}"
            )
        return place or "/"

    def _own(self, topic: Topic) -> Topic:
        """Return a topic of the arm in its own frames; its name is in the node's namespace already."""
        return topic._replace(frame=of_arm(topic.frame, self.config.arm_name))

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
        with starting_beside():
            return kind(settings, self)

    def _own_faults(self) -> list[str]:
        """Return why the arm would not obey now: the state of the node, who commands it, time."""
        return [*filter(None, (self.inactive(), self._commander.fault(), self.time_fault(self.max_age)))]

    def _follow(self, message: MultiDOFJointTrajectory) -> None:
        try:
            command = convert.command_of(message)
            if command is None:
                self._arm.stop("a stop was requested")
                return
            command = self._part_of(command)
            if 1e-9 * (self.wall.now() - command.stamp) > time.monotonic() - self._active_since:
                raise CommandRefusedError(f"it was made before {self.get_name()} was activated")
            self._arm.command(command)
        except RobotRLError:
            self._refused += 1
            raise

    def _part_of(self, command: Command) -> Command:
        """Return this arm's part of a command.

        Raises:
            ActionError: if it has none.
        """
        name = self.config.arm_name
        if name in command.arms:
            return command.of_arm(name)
        check_arms(command, [name] if name else ())
        return command

    def _publish(self, part: str, stamp: int, value: Any) -> None:
        """Publish a measurement, unless it comes too soon after the one before."""
        if stamp < self._due.get(part, 0):
            return
        self._due[part] = stamp + round(0.9 * NS_PER_S / self.config.state_rate)
        self._streams[part].publish(self._message(part, stamp, value))
        if part == "pose":
            self._transforms.tcp(stamp, value, self.config.arm_name)
            self._tool.publish(convert.tool_message(stamp, self._arm.take_tool()))
            if not self._arm.measures_wrench:  # whoever waits for the topic would wait for ever
                self._streams["wrench"].publish(self._message("wrench", stamp, np.zeros(6)))

    def _message(self, part: str, stamp: int, value: Any) -> Any:
        if part == "joints":
            return convert.joints_message(stamp, joint_names(self._driver, len(value.position)), value)
        makers: dict[str, Callable[[int, Any], Any]] = {
            "pose": convert.pose_message,
            "twist": convert.twist_message,
            "wrench": convert.wrench_message,
        }
        return makers[part](stamp, value)

    def _on_tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        response.success = self._arm.tare()
        response.message = "tared" if response.success else "no wrench has been measured"
        return response

    def _on_recover(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """End the faults of the driver: whoever calls the service consents."""
        del request  # holds nothing
        try:
            self._arm.recover()
        except ArmStoppedError as error:
            response.message = str(error)
            return response
        faults = self._arm.faults()
        response.success, response.message = not faults, "; ".join(faults) or "the arm holds, and follows commands"
        return response


def main() -> int:
    """Run the node."""
    return run_with_threads(ArmNode, acts=True)


if __name__ == "__main__":
    sys.exit(main())
