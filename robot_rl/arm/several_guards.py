"""The guards of several arms as one: what must hold one arm holds all, and a command passes whole or not at all.

It knows the guards; each of them knows its arm's limits, and nothing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.command_limits import LATCHED, CommandGuard, GuardedCommand
from robot_rl.env.robot_io import Command, SetPoint, check_command
from robot_rl.errors import CommandRefusedError, RobotRLError


class SeveralGuards:
    """What a `CommandGuard` is to one arm. Measurements go to the guard of their arm.

    Args:
        guards: Of each arm, by name; all have the same limits, each in the base frame of its arm.
    """

    def __init__(self, guards: Mapping[str, CommandGuard]) -> None:
        self._guards = dict(guards)
        self._tripped: str | None = None  # by what is no single arm's

    @property
    def tripped(self) -> str | None:
        """Why the emergency stop is latched, or None."""
        return self._tripped or self._first(lambda guard: guard.tripped)

    @property
    def outside(self) -> float:
        """How far the tcp of an arm was measured outside its box [m], the farthest of them."""
        return max(guard.outside for guard in self._guards.values())

    def trip(self, reason: str) -> None:
        """Latch the stop of all arms; the first reason stays until `release`."""
        self._tripped = self.tripped or reason

    def release(self) -> None:
        """Release the latched stop; only an operator does that."""
        self._tripped = None
        for guard in self._guards.values():
            guard.release()

    def lower(self, name: str, value: float) -> CommandLimits:
        """Lower a limit of all arms, as `CommandGuard.lower`."""
        lowered = [guard.lower(name, value) for guard in self._guards.values()]
        return lowered[0]

    def stale(self, now: int) -> str | None:
        """Why the state of an arm cannot be trusted at time `now` [ns], or None."""
        return self._first(lambda guard: guard.stale(now))

    def stop(self, stamp: int) -> None:
        """Take over a stop: commands made before it are refused, and the next one starts from rest."""
        for guard in self._guards.values():
            guard.stop(stamp)

    def check(self, command: Command, now: int) -> GuardedCommand:
        """Return the command with each set-point within the limits of its arm.

        Raises:
            CommandRefusedError: as `CommandGuard.check`, if one arm's part is refused; the others' then count as sent,
                until the stop that follows.
            ActionError: as `check_command`.
        """
        if (tripped := self.tripped) is not None:
            raise CommandRefusedError(f"{LATCHED}{tripped}; release it by hand")
        check_command(command, now, self._guards)
        guarded = {name: self._check(name, guard, command, now) for name, guard in self._guards.items()}
        limited = tuple(f"{name} {what}" for name, one in guarded.items() for what in one.limited)
        if not limited:
            return GuardedCommand(command, ())
        points = {n: SetPoint(one.command.T_base_target, one.command.gripper_width) for n, one in guarded.items()}
        ttl = min(one.command.ttl for one in guarded.values())
        return GuardedCommand(Command.of_arms(command.stamp, ttl, points), limited)

    def _check(self, name: str, guard: CommandGuard, command: Command, now: int) -> GuardedCommand:
        try:
            return guard.check(command.of_arm(name), now)
        except RobotRLError as error:
            raise CommandRefusedError(f"arm {name}: {error}") from error

    def _first(self, fault: Callable[[CommandGuard], str | None]) -> str | None:
        """Return the first fault of an arm, with its name."""
        faults = ((name, fault(guard)) for name, guard in self._guards.items())
        return next((f"arm {name}: {text}" for name, text in faults if text is not None), None)
