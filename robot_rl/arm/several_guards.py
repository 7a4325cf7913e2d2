"""The guards of several arms as one: what must hold one arm holds all, and a command passes whole or not at all.

It knows the guards and, where the arms can meet, their keep-out. Each guard knows its arm's limits, and nothing of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import LOWERABLE
from robot_rl.env.cell_geometry.keep_out import KeepOut
from robot_rl.env.command_limits import LATCHED, CommandGuard, GuardedCommand
from robot_rl.env.robot_io import Command, check_command
from robot_rl.errors import CommandRefusedError, RobotRLError
from robot_rl.geometry import Pose

SKEW = 0.25
"""How far apart in time the poses of arms that could meet may be, as a share of `max_age`."""


class SeveralGuards:
    """What a `CommandGuard` is to one arm. Measurements go to the guard of their arm.

    Args:
        guards: Of each arm, by name, with its limits in its own base frame.
        keep_out: How near the arms may come to each other; None: they cannot meet. The guards then need twists.
    """

    def __init__(self, guards: Mapping[str, CommandGuard], keep_out: KeepOut | None = None) -> None:
        self._guards, self._keep_out = dict(guards), keep_out
        self._tripped: str | None = None  # by what is no single arm's

    @property
    def tripped(self) -> str | None:
        """Why the emergency stop is latched, or None; of several arms all reasons, as one release ends all."""
        first, reasons = self._tripped or "", {name: guard.tripped for name, guard in self._guards.items()}
        marks = {name: f"arm {name}: " for name, reason in reasons.items() if reason is not None}
        own = [f"{mark}{reasons[name]}" for name, mark in marks.items() if mark not in first]  # its first reason stays
        return "; ".join([*filter(None, [first]), *own]) or None

    @property
    def outside(self) -> float:
        """How far the tcp of an arm was measured outside its box [m], the farthest of them."""
        return max(guard.outside for guard in self._guards.values())

    @property
    def inwards_only(self) -> bool:
        """Whether an arm may only come in, as it is outside its box."""
        return any(guard.inwards_only for guard in self._guards.values())

    def trip(self, reason: str) -> None:
        """Latch the stop of all arms; the first reason stays until `release`.

        A reason that was kept from before, and names arms as `tripped` does, is the first one of those arms, too.
        """
        self._tripped = self._tripped or reason

    def release(self) -> None:
        """Release the latched stop; only an operator does that."""
        self._tripped = None
        for guard in self._guards.values():
            guard.release()

    def lower(self, name: str, value: float) -> None:
        """Lower a limit of all arms, as `CommandGuard.lower`; an arm whose own is not higher keeps it."""
        for guard in self._guards.values():
            present = getattr(guard.limits, name) if name in LOWERABLE else value
            guard.lower(name, min(value, present))

    def stale(self, now: int) -> str | None:
        """Why the state of an arm cannot be trusted at time `now` [ns], or None."""
        return self._first(lambda guard: guard.stale(now)) or self._apart_in_time()

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
        if (apart := self._apart_in_time()) is not None:
            raise CommandRefusedError(apart)
        pushed = [name for name, point in command.arms.items() if point.wrench is not None]
        if self._keep_out is not None and pushed:
            raise CommandRefusedError(
                f"a feed-forward wrench of {', '.join(pushed)} could push arms together that keep_out keeps apart"
            )
        guarded = {name: self._check(name, guard, command, now) for name, guard in self._guards.items()}
        targets = {name: one.command.T_base_target for name, one in guarded.items()}
        moved = self._kept_apart(targets)
        limited = tuple(f"{name} {what}" for name, one in guarded.items() for what in one.limited)
        limited += tuple(f"{name} keep-out" for name in moved)
        if not limited:
            return GuardedCommand(command, ())
        targets |= moved
        points = {name: replace(one.command.set_point, T_base_target=targets[name]) for name, one in guarded.items()}
        ttl = min(one.command.ttl for one in guarded.values())
        return GuardedCommand(Command.of_arms(command.stamp, ttl, points), limited)

    def _kept_apart(self, targets: Mapping[str, Pose]) -> dict[str, Pose]:
        """Return other set-points for the arms that would come too close at these."""
        if self._keep_out is None:
            return {}
        motions = {name: guard.motion_to(targets[name]) for name, guard in self._guards.items()}
        kept = self._keep_out.limit(motions)
        changed = {name: pose for name, pose in kept.items() if not _same(pose, targets[name])}
        return {name: self._guards[name].move(pose) for name, pose in changed.items()}

    def _apart_in_time(self) -> str | None:
        """Why the poses cannot be compared: where an arm was earlier says little on how near the others are now."""
        if self._keep_out is None:
            return None
        stamps = [guard.pose_stamp for guard in self._guards.values()]
        skew = (max(stamps) - min(stamps)) / NS_PER_S
        allowed = SKEW * min(guard.limits.max_age for guard in self._guards.values())
        if skew <= allowed:
            return None
        return f"the arms' poses were measured {skew:.3f} s apart, allowed are {allowed:.3f} s"

    def _check(self, name: str, guard: CommandGuard, command: Command, now: int) -> GuardedCommand:
        try:
            return guard.check(command.of_arm(name), now)
        except RobotRLError as error:
            raise CommandRefusedError(f"arm {name}: {error}") from error

    def _first(self, fault: Callable[[CommandGuard], str | None]) -> str | None:
        """Return the first fault of an arm, with its name."""
        faults = ((name, fault(guard)) for name, guard in self._guards.items())
        return next((f"arm {name}: {text}" for name, text in faults if text is not None), None)


def _same(one: Pose, other: Pose) -> bool:
    """Whether two poses are the same, bit for bit."""
    return np.array_equal(one.position, other.position) and np.array_equal(one.quaternion, other.quaternion)
