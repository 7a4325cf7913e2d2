"""Follows each command until it expires, and holds the arm whenever there is nothing to follow.

Between commands the set-point may be on its way to the newest one; see `SetPointPath`.
"""

from __future__ import annotations

from robot_rl.arm.driver import ArmDriver
from robot_rl.arm.set_point.set_point_path import Interpolation, SetPointPath
from robot_rl.env.robot_io import Command, check_command
from robot_rl.errors import ActionError, StaleStateError
from robot_rl.geometry import Pose


class CommandFollower:
    """Passes commands on to a driver.

    Args:
        driver: The arm.
        max_age: Oldest pose with which the arm may move [s].
        interpolation: How the set-point gets from one command to the next.
    """

    def __init__(self, driver: ArmDriver, max_age: float, interpolation: Interpolation = "none") -> None:
        self._driver, self._max_age, self._path = driver, max_age, SetPointPath(interpolation)
        self._expires: int | None = None  # of the command that is followed [ns]
        self._moved = 0  # when the set-point was moved last [ns]
        self.holds: str | None = "no command has come yet"
        """Why the arm holds; None while it follows a command."""

    def interpolate(self, kind: Interpolation) -> None:
        """Have set-points get from one command to the next in another way, from the next command on."""
        self._path = SetPointPath(kind)

    def command(self, command: Command, now: int, age: float, pose: Pose | None = None) -> None:
        """Follow a command.

        Args:
            command: Which.
            now: Time [ns].
            age: Of the arm's newest pose [s].
            pose: That pose, where the way to the first set-point begins; None: at the set-point.

        Raises:
            ActionError: as `check_command` raises it, or if it has a wrench; the command before it stays in force.
            StaleStateError: if the arm is not measured; then it holds.
        """
        expires = check_command(command, now)
        if command.wrench is not None:
            raise ActionError(
                f"the command has a feed-forward wrench, {command.wrench.tolist()}, and drivers of arms follow "
                "set-points only; a simulated arm takes a wrench, too; use a task without wrench_axes"
            )
        if age > self._max_age:
            self._hold("it is not measured")
            raise StaleStateError(age, self._max_age, what="pose of the arm")
        self._path.go(pose or command.T_base_target, command.T_base_target, now)
        self._expires, self._moved, self.holds = expires, now, None  # first: a driver that fails may have moved
        self._driver.move_to(self._path.at(now))
        if command.gripper_width is not None:
            self._driver.move_gripper(command.gripper_width)

    def stop(self, reason: str) -> None:
        """Hold at once."""
        self._hold(reason)

    def check(self, now: int, age: float) -> None:
        """Move the set-point on; hold if the command has expired or the arm is not measured. To be called often.

        Args:
            now: Time [ns].
            age: Of the arm's newest pose [s].
        """
        if self._expires is None:
            return
        if now >= self._expires:
            self._hold(self.holds or "the last command has expired")
        elif age > self._max_age:
            self._hold("it is not measured")
        elif self._path.on_way(self._moved):
            self._moved = now
            self._driver.move_to(self._path.at(now))

    def _hold(self, reason: str) -> None:
        self.holds = reason
        if self._expires is not None:  # once: holding again where gravity has pulled it to would let it sink
            self._expires = 0  # a driver that fails is told again
            self._path.end()
            self._driver.hold()
            self._expires = None
