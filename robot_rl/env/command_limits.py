"""The last check of a command before it goes to the arm, in a process of its own: limits, expiry, and a latched stop.

It knows poses, forces and limits; it does not know tasks, policies or ROS. It is no certified safety function. What it
lets through unchanged is the same object that it was given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import LOWERABLE, CommandLimits
from robot_rl.env.cell_geometry.keep_out import ArmMotion
from robot_rl.env.feed_forward.wrench_border import BORDER_STIFFNESS, LOOK_AHEAD, held_back
from robot_rl.env.feed_forward.wrench_limiter import WrenchLimiter
from robot_rl.env.robot_io import Command, check_command
from robot_rl.env.state_assembler import MAX_AHEAD, measurement_fault
from robot_rl.errors import CommandRefusedError, ConfigError, SpecError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, rotvec_from_quat

LATCHED = "emergency stop: "
"""Prefix of the reason of a stop that only an operator releases; every other one ends with its cause."""


@dataclass(frozen=True, eq=False)
class GuardedCommand:
    """A command within all limits.

    Attributes:
        command: Within all limits.
        limited: Which limits changed it, e.g. `("box",)`; none if it is as it came.
    """

    command: Command
    limited: tuple[str, ...]


class CommandGuard:
    """Hold commands to limits.

    The set-point leads the measured pose by at most `max_speed * reaction_time`, and the lead changes by at most
    `max_acceleration * reaction_time` per second, so that the force of the arm's controller, and with it speed and
    acceleration, stay bounded however commands come. Then the set-point is put into the box.

    A measured pose that is outside the box by more than `box_tolerance` latches the stop. After the release, set-points
    lead the pose by the same bound, straight towards the box. Until the tcp is inside, a position that is further out
    than the nearest one so far by more than the tolerance latches the stop again.

    A feed-forward wrench is held to limits of its own (`WrenchLimiter`), and its force pushes towards the border of the
    box only as hard as the room there allows (`wrench_border`).

    Args:
        config: The limits.
        measures_wrench: Whether the arm measures forces; without, their limit does not count.
        needs_twist: Whether commands also need to know how fast the tcp moves.

    Raises:
        ConfigError: if the box is not one.
    """

    def __init__(self, config: CommandLimits, *, measures_wrench: bool = True, needs_twist: bool = False) -> None:
        if not (len(config.box_low) == len(config.box_high) == 3 and np.less(config.box_low, config.box_high).all()):
            raise ConfigError(
                f"box_low {list(config.box_low)} and box_high {list(config.box_high)} have to be three numbers each, "
                "every one of the first below that of the second"
            )
        self._config = config
        self._low, self._high = np.array(config.box_low), np.array(config.box_high)
        self._leads, self._wrenches = _leads(config), WrenchLimiter(config)
        self._allowed_outside = config.box_tolerance  # distance from the box that does not latch the stop [m]
        self._pose: Pose | None = None
        self._twist = np.zeros(6)
        needed = {"pose": True, "wrench": measures_wrench, "twist": needs_twist}
        self._needed = [what for what, is_needed in needed.items() if is_needed]
        self._stamps = dict.fromkeys(needed, -1)  # of the newest measurement
        self._last_stamp = -1  # of the newest command or stop
        self._lead = (np.zeros(3), np.zeros(3))
        self._lead_before, self._change = (
            np.zeros(3),
            0.0,
        )  # before the newest command, and by how much it may change [m]
        self.tripped: str | None = None
        """Why the emergency stop is latched, or None."""

    @property
    def limits(self) -> CommandLimits:
        """The limits in force."""
        return self._config

    # Inputs.

    def measured_pose(self, pose: Pose, stamp: int, now: int | None = None) -> None:
        """Take over where the tcp is; too far outside the box latches the stop.

        Args:
            pose: Of the tcp in the base frame.
            stamp: When it was there [ns].
            now: Time [ns]; None where time is only known from what is measured.

        Raises:
            SpecError: if that is no measurement: not finite, not newer than the last, or from the future.
        """
        self._take("pose", stamp, (pose.position, pose.quaternion), now)
        self._pose = pose
        outside = self._outside(pose)
        if outside > self._allowed_outside:
            self.trip(
                f"the tcp is {1e3 * outside:.0f} mm outside the box; bring it inside by hand, or consent: then it may "
                "move inwards only"
            )
        elif self.tripped is None:
            self._allow_outside(min(self._allowed_outside, outside + self._config.box_tolerance))

    def measured_wrench(self, wrench: np.ndarray, stamp: int, now: int | None = None) -> None:
        """Take over the wrench on the tool, shape (6,); too much force latches the stop.

        Raises:
            SpecError: as for the pose.
        """
        self._take("wrench", stamp, (wrench,), now)
        force = float(np.linalg.norm(wrench[:3]))
        if force > self._config.max_force:
            self.trip(f"contact force of {force:.0f} N, allowed are {self._config.max_force:.0f} N")

    @property
    def needs_twist(self) -> bool:
        """Whether commands need to know how fast the tcp moves."""
        return "twist" in self._needed

    def measured_twist(self, twist: np.ndarray, stamp: int, now: int | None = None) -> None:
        """Take over how the tcp moves, base frame [m/s, rad/s], shape (6,).

        Raises:
            SpecError: as for the pose.
        """
        self._take("twist", stamp, (twist,), now)
        self._twist = twist

    def trip(self, reason: str) -> None:
        """Latches the stop; the first reason stays until `release`."""
        self.tripped = self.tripped or reason

    def release(self) -> None:
        """Release the latched stop; only an operator does that. Outside the box, the tcp may then come in."""
        self.tripped = None
        self._allow_outside(self.outside + self._config.box_tolerance)

    def lower(self, name: str, value: float) -> None:
        """Lower a limit from now on.

        Args:
            name: One of `LOWERABLE`.
            value: Not above the present one.

        Raises:
            ConfigError: if it may not change, or would be raised.
        """
        if name not in LOWERABLE:
            raise ConfigError(f"{name} counts from the start; limits that may be lowered: {', '.join(LOWERABLE)}")
        present = getattr(self._config, name)
        if not 0.0 < value <= present:
            raise ConfigError(f"{name} is {present:g} and may only be lowered, to above 0, not set to {value:g}")
        change: dict[str, Any] = {name: float(value)}
        self._config = replace(self._config, **change)
        self._leads = _leads(self._config)

    # Results.

    @property
    def outside(self) -> float:
        """How far the tcp was measured outside the box [m]; 0 inside, and before the first measurement."""
        return 0.0 if self._pose is None else self._outside(self._pose)

    @property
    def inwards_only(self) -> bool:
        """Whether the tcp was measured so far outside the box that it may only come in."""
        return self.outside > self._config.box_tolerance

    @property
    def pose_stamp(self) -> int:
        """When the pose was measured [ns]; -1 before the first."""
        return self._stamps["pose"]

    def stale(self, now: int) -> str | None:
        """Why the arm's own state cannot be trusted at time `now` [ns], or None."""
        for what in self._needed:
            stamp = self._stamps[what]
            age = (now - stamp) / NS_PER_S
            if stamp < 0:
                return f"the arm's {what} is not known: nothing valid has come"
            if age > self._config.max_age:
                return f"the arm's {what} is {age:.2f} s old, allowed are {self._config.max_age:.2f} s"
        return None

    def stop(self, stamp: int) -> None:
        """Take over a stop: commands made before it are refused, and the next one starts from rest."""
        self._last_stamp = max(self._last_stamp, stamp)
        self._lead = (np.zeros(3), np.zeros(3))
        self._wrenches.rest(stamp)

    def check(self, command: Command, now: int) -> GuardedCommand:
        """Return the command within all limits.

        Raises:
            CommandRefusedError: if the stop is latched, the arm's state is stale, or the command comes out of order or
                from the future, or has a wrench that is not allowed.
            ActionError: as `check_command`.
        """
        if self.tripped is not None:
            raise CommandRefusedError(f"{LATCHED}{self.tripped}; release it by hand")
        check_command(command, now)
        if (stale := self.stale(now)) is not None:
            raise CommandRefusedError(stale)
        if command.stamp <= self._last_stamp:
            raise CommandRefusedError("it was made before the last one, or comes twice")
        if command.stamp - now > MAX_AHEAD * NS_PER_S:
            raise CommandRefusedError(
                f"it was made {(command.stamp - now) / NS_PER_S:.3f} s in the future: the clocks of the machines differ"
            )
        self._wrenches.check(command.wrench)
        target, limited = self._limit(command.T_base_target, cast("Pose", self._pose), command.stamp)
        self._last_stamp = command.stamp
        ttl = min(command.ttl, self._config.max_ttl)
        if ttl < command.ttl:
            limited = (*limited, "ttl")
        wrench = self._held_back(self._wrenches.limit(command.wrench, command.stamp, ttl), target)
        if wrench is not command.wrench:
            limited = (*limited, "wrench")
        if not limited:
            return GuardedCommand(command, ())
        return GuardedCommand(replace(command, ttl=ttl, T_base_target=target, wrench=wrench), limited)

    def motion_to(self, target: Pose) -> ArmMotion:
        """Return how the arm would be sent to a set-point, in its box.

        Args:
            target: In the base frame; it has passed `check`, so that the pose is known.
        """
        return ArmMotion(cast("Pose", self._pose), self._twist[:3], target, self._confine)

    def move(self, target: Pose) -> Pose:
        """Take over a set-point in place of the one that has just passed, and return it with a lead that is allowed.

        The lead may become shorter at once. Where it grows, or goes the other way, it grows as the limits say; its
        direction stays, since the straight way there is the one that is known to be free.

        Args:
            target: Pose of the tcp in the base frame.
        """
        pose, (before, _) = cast("Pose", self._pose), self._lead
        lead, turn = _lead_of(target, pose)
        length = float(np.linalg.norm(lead))
        if float(lead @ before) < 0.0 or length > np.linalg.norm(before):
            along = max(0.0, float(self._lead_before @ lead) / length)
            lead, _ = _shorten(lead, np.zeros(3), min(along + self._change, self._leads[0][0]))
        self._lead = lead, turn
        return Pose(pose.position + lead, target.quaternion)

    def _take(self, what: str, stamp: int, values: tuple[np.ndarray, ...], now: int | None) -> None:
        if fault := measurement_fault(stamp, self._stamps[what], values, now):
            raise SpecError(f"the {what}'s {fault}")
        self._stamps[what] = stamp

    def _held_back(self, wrench: np.ndarray | None, target: Pose) -> np.ndarray | None:
        """Return a wrench whose force, with this set-point, does not push the tcp out of the box; the same if it is."""
        if wrench is None:
            return None
        pose = cast("Pose", self._pose)
        places = np.array((pose.position, pose.position + LOOK_AHEAD * self._twist[:3], target.position))
        force = quat_rotate(pose.quaternion, wrench[:3])
        held = held_back(force, self._low, self._high, places, BORDER_STIFFNESS)
        if np.array_equal(held, force):
            return wrench
        return np.concatenate((quat_rotate(quat_conjugate(pose.quaternion), held), wrench[3:]))

    def _confine(self, position: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(position, self._low), self._high)

    def _outside(self, pose: Pose) -> float:
        """Return the distance of the tcp from the box [m]; 0 inside."""
        return float(np.linalg.norm(pose.position - np.clip(pose.position, self._low, self._high)))

    def _allow_outside(self, distance: float) -> None:
        self._allowed_outside = max(distance, self._config.box_tolerance)

    def _limit(self, target: Pose, pose: Pose, stamp: int) -> tuple[Pose, tuple[str, ...]]:
        elapsed = (stamp - self._last_stamp) / NS_PER_S if self._last_stamp >= 0 else math.inf
        elapsed = min(elapsed, self._config.reaction_time)
        wanted = _lead_of(target, pose)
        self._lead_before, self._change = self._lead[0], self._leads[0][1] * elapsed
        leads, limited = [], []
        names = (("speed", "acceleration"), ("turn rate", "turn acceleration"))
        for lead, before, (largest, rate), (speed, acceleration) in zip(
            wanted, self._lead, self._leads, names, strict=True
        ):
            slower, is_slower = _shorten(lead, np.zeros(3), largest)
            steadier, is_steadier = _shorten(slower, before, rate * elapsed)
            limited += [name for name, used in ((speed, is_slower), (acceleration, is_steadier)) if used]
            leads.append(steadier)
        self._lead = (leads[0], leads[1])
        position = target.position if not {"speed", "acceleration"} & set(limited) else pose.position + leads[0]
        inside = self._confine(position)
        if (inside != position).any():
            limited.append("box")
            # Outside the box, its border may be far away: the way back in has the bound of every other lead.
            nearer, is_nearer = _shorten(inside - pose.position, np.zeros(3), self._leads[0][0])
            if is_nearer:
                inside = pose.position + nearer
                leads[0] = nearer
                self._lead = (leads[0], leads[1])
        turned = {"turn rate", "turn acceleration"} & set(limited)
        quaternion = quat_multiply(pose.quaternion, quat_from_rotvec(leads[1])) if turned else target.quaternion
        return Pose(inside, quaternion), tuple(limited)


def _lead_of(target: Pose, pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Return the way from a pose to a set-point, base frame [m], and the turn, tcp frame [rad], shape (3,) each."""
    turn = rotvec_from_quat(quat_multiply(quat_conjugate(pose.quaternion), target.quaternion))
    return target.position - pose.position, turn


def _shorten(vector: np.ndarray, origin: np.ndarray, length: float) -> tuple[np.ndarray, bool]:
    """Return the vector, shortened to within `length` of the origin, and whether it was shortened."""
    way = vector - origin
    distance = float(np.linalg.norm(way))
    if distance <= length:
        return vector, False
    return origin + way * (length / distance), True


def _leads(config: CommandLimits) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the largest lead, and its largest change per second: of the position, of the orientation."""
    time = config.reaction_time
    return (
        (config.max_speed * time, config.max_acceleration * time),
        (config.max_turn_rate * time, config.max_turn_acceleration * time),
    )
