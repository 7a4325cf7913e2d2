"""A driver and what stands around it for every arm: checked measurements, the cap, expiry, and the hold at a fault.

`robot_node` runs it behind topics, and `ArmRobotIO` in this process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from robot_rl.arm.command_follower import CommandFollower
from robot_rl.arm.control_thread import starting_beside
from robot_rl.arm.driver import ArmDriver, DriverHost, Receive
from robot_rl.arm.set_point.set_point_cap import SetPointCap
from robot_rl.arm.set_point.set_point_path import InterpolationChoice, chosen
from robot_rl.arm.wrench_filter import ContactWrench
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import StateAssembler, Tool
from robot_rl.errors import CommandRefusedError
from robot_rl.geometry import Pose

NEARER = "a set-point too far from the tcp was brought nearer (cap_lead, cap_turn)"
NO_WRENCH = "this arm measures no force: no limit on forces is in effect"


class ArmControl:
    """Drives an arm. Every method may be called from any thread.

    Args:
        driver: The arm; `start` starts it.
        host: Its host.
        parts: Receives every valid measurement.
        cap: The last cap on set-points.
        wrench_cutoff: Corner frequency of the low-pass of the wrench [Hz]; 0: none.
        interpolation: How set-points get from one command to the next; `driver`: as is best for its arms.
        more_faults: Further reasons why the arm may not move, beyond those of its driver and its speed.
    """

    def __init__(
        self,
        driver: ArmDriver,
        host: DriverHost,
        parts: StateAssembler,
        cap: SetPointCap,
        *,
        wrench_cutoff: float,
        interpolation: InterpolationChoice = "driver",
        more_faults: Callable[[], list[str]] = list,
    ) -> None:
        self._driver, self._host, self._parts, self._cap = driver, host, parts, cap
        self._more_faults = more_faults
        self._contact = ContactWrench(wrench_cutoff)
        self._follower = CommandFollower(driver, host.max_age, chosen(interpolation, driver))
        self._lock = threading.RLock()
        self._receive: Receive = _discard
        self._pose: Pose | None = None
        self._overspeed: str | None = None
        self._gripper_width = 0.0
        self.measures_wrench = "wrench" in driver.measures
        self.followed = 0
        """Number of commands that were followed."""
        self.capped = 0
        """Number of them that the cap changed."""

    def start(self, receive: Receive) -> None:
        """Start the driver.

        Args:
            receive: Given every valid measurement, the wrench tared and filtered, in the driver's thread.
        """
        self._receive = receive
        self._driver.start(self._take)

    def close(self) -> None:
        """Hold, and release the arm, also one that cannot be told to hold."""
        try:
            self.stop("its program has ended")
        finally:
            self._driver.close()

    def interpolate(self, choice: InterpolationChoice) -> None:
        """Hold, and have set-points get from one command to the next in another way."""
        with self._lock:
            self._follower.stop("its interpolation is changed")
            self._follower.interpolate(chosen(choice, self._driver))

    @property
    def holds(self) -> str | None:
        """Why the arm holds; None while it follows a command."""
        return self._follower.holds

    def command(self, command: Command) -> None:
        """Follow a command until it expires.

        Raises:
            ActionError: as `check_command` raises it; the command before it stays in force.
            CommandRefusedError: if the arm has a fault, or the set-point is outside its own box; then it holds.
            StaleStateError: if the arm is not measured; then it holds.
        """
        with self._lock:
            if faults := self.faults():
                self._follower.stop("; ".join(faults))
                raise CommandRefusedError("; ".join(faults))
            self._follower.command(self._within_cap(command), self._host.wall.now(), self.age(), self._pose)
            self.followed += 1

    def stop(self, reason: str) -> None:
        """Hold at once."""
        with self._lock:
            self._follower.stop(reason)

    def check(self) -> None:
        """Hold if the command has expired, the arm is not measured, or it has a fault; to be called often.

        Faults are asked for only while a command is followed: over ROS, each look at the graph takes a millisecond.
        """
        faults = self.faults() if self._follower.holds is None else []
        with self._lock:
            if faults:
                self._follower.stop("; ".join(faults))
            self._follower.check(self._host.wall.now(), self.age())

    def faults(self) -> list[str]:
        """Return why the arm would not obey now."""
        return [*self._driver.faults(), *self._more_faults(), *filter(None, [self._overspeed])]

    def recover(self) -> None:
        """End the faults of the driver; only after a person has consented.

        Raises:
            ArmStoppedError: if one stays.
        """
        with self._lock:
            self._follower.stop("it recovers")
        with starting_beside():
            self._driver.recover()

    def tare(self) -> bool:
        """Make the present wrench zero; return whether one is measured. The tool must touch nothing."""
        return self.measures_wrench and self._contact.tare()

    def take_tool(self) -> Tool:
        """Return the gripper's width, and the largest force since the last call."""
        return Tool(self._gripper_width, self._contact.take_peak())

    def age(self) -> float:
        """Age of the newest pose [s]; infinite before the first."""
        return self._parts.age("pose", self._host.wall.now())

    def _within_cap(self, command: Command) -> Command:
        if self._pose is None:
            return command  # the follower refuses it: the arm is not measured
        try:
            capped = self._cap.apply(command, self._pose)
        except CommandRefusedError as error:
            self._follower.stop(str(error))
            raise
        if capped is not command:
            self.capped += 1
            self._host.problem(NEARER)
        return capped

    def _take(self, part: str, stamp: int, value: Any) -> None:
        """Check a measurement, and pass it on."""
        if part == "gripper":
            self._gripper_width = float(value)
            return
        filtered = self._contact.add if part == "wrench" else None  # of all samples: the peak of each counts
        if not self._parts.add(part, stamp, value, self._host.wall.now(), filtered):
            self._host.problem(f"the {part} was refused: its {self._parts.last_refusal(part)}")
            return
        if part == "pose":
            self._pose = value
        elif part == "twist":
            self._overspeed = self._cap.overspeed(value)
        self._receive(part, stamp, self._parts.newest(part))


def _discard(part: str, stamp: int, value: Any) -> None:
    """Drop what is measured before `start`."""
