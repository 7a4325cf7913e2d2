"""Follows each command until it expires, and holds the arm whenever there is nothing to follow."""

from __future__ import annotations

from robot_rl.arm.driver import ArmDriver
from robot_rl.env.robot_io import Command, check_command
from robot_rl.errors import StaleStateError


class CommandFollower:
    """Passes commands on to a driver.

    Args:
        driver: The arm.
        max_age: Oldest pose with which the arm may move [s].
    """

    def __init__(self, driver: ArmDriver, max_age: float) -> None:
        self._driver, self._max_age = driver, max_age
        self._expires: int | None = None  # of the command that is followed [ns]
        self.holds: str | None = "no command has come yet"
        """Why the arm holds; None while it follows a command."""

    def command(self, command: Command, now: int, age: float) -> None:
        """Follow a command.

        Args:
            command: Which.
            now: Time [ns].
            age: Of the arm's newest pose [s].

        Raises:
            ActionError: as `check_command` raises it; the command before it stays in force.
            StaleStateError: if the arm is not measured; then it holds.
        """
        expires = check_command(command, now)
        if age > self._max_age:
            self._hold("it is not measured")
            raise StaleStateError(age, self._max_age, what="pose of the arm")
        self._driver.move_to(command.T_base_target)
        if command.gripper_width is not None:
            self._driver.move_gripper(command.gripper_width)
        self._expires, self.holds = expires, None

    def stop(self, reason: str) -> None:
        """Hold at once."""
        self._hold(reason)

    def check(self, now: int, age: float) -> None:
        """Hold if the command has expired or the arm is not measured any more; to be called often.

        Args:
            now: Time [ns].
            age: Of the arm's newest pose [s].
        """
        if self._expires is None:
            return
        if now >= self._expires:
            self._hold("the last command has expired")
        elif age > self._max_age:
            self._hold("it is not measured")

    def _hold(self, reason: str) -> None:
        if self._expires is not None:  # once: holding again where gravity has pulled it to would let it sink
            self._expires = None
            self._driver.hold()
        self.holds = reason
