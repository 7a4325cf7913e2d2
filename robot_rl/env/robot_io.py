"""The low contract that a robot fulfils: read a stamped state, send a command, stop.

A robot has one arm, or several by name. One arm is the simple case: `arms` of its states and commands is empty.

`sim` implements it over MuJoCo and `ros_nodes` over topics; `tests/contracts/robot_io_contract.py` holds each to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.errors import ActionError, CommandLateError
from robot_rl.geometry import Pose

Links = Callable[[np.ndarray], np.ndarray | None]
"""From the positions of an arm's joints [rad], shape (n,), to those of its links in the base frame [m], from the base
to the flange, shape (m, 3); None where they are not known yet."""


@dataclass(frozen=True, eq=False)
class RobotState:
    """The measurements of one time.

    Attributes:
        stamp: Time of measurement [ns], on the clock of the robot.
        T_base_tcp: Pose of the tool centre point in the robot's base frame.
        twist: Linear [m/s] and angular [rad/s] velocity of the tcp, in the base frame. Shape (6,).
        wrench: Force [N] and torque [Nm] that the environment exerts on the tool at the tcp, in the tcp frame; tared
            at reset and low-pass filtered, as the implementation documents. Shape (6,). None for an arm that does not
            measure it.
        joint_position: [rad], shape (n,).
        joint_velocity: [rad/s], shape (n,).
        gripper_width: Distance between the fingers [m]; 0 for a tool without fingers.
        peak_force: Largest norm of the filtered force since the previous `read` [N]; what force limits are held to. 0
            for an arm that does not measure it.
        images: RGB frames by camera, uint8, shape (height, width, 3).
        arms: Of a robot with several arms, the state of each by name, in its own base frame. Everything else here is
            then the first arm's, but for the stamp, the oldest, the force, the largest, and the images, all of them.
    """

    stamp: int
    T_base_tcp: Pose
    twist: np.ndarray
    wrench: np.ndarray | None
    joint_position: np.ndarray
    joint_velocity: np.ndarray
    gripper_width: float = 0.0
    peak_force: float = 0.0
    images: Mapping[str, np.ndarray] = field(default_factory=dict)
    arms: Mapping[str, RobotState] = field(default_factory=dict)

    @classmethod
    def of_arms(cls, arms: Mapping[str, RobotState], images: Mapping[str, np.ndarray]) -> RobotState:
        """Join the states of several arms, and the frames of all cameras, into that of their cell."""
        first, states = next(iter(arms.values())), arms.values()
        return replace(
            first,
            stamp=min(state.stamp for state in states),
            peak_force=max(state.peak_force for state in states),
            images=images,
            arms=arms,
        )

    @property
    def each(self) -> Mapping[str, RobotState]:
        """The state of each arm by name; a single arm has none."""
        return self.arms or {"": self}

    def newer_than(self, other: RobotState) -> bool:
        """Return whether all of it was measured after the other one, which is of the same robot."""
        if not self.arms:
            return self.stamp > other.stamp
        return all(state.stamp > other.arms[name].stamp for name, state in self.arms.items())


@dataclass(frozen=True, eq=False)
class SetPoint:
    """Where a command sends one arm.

    Attributes:
        T_base_target: Set-point of the Cartesian impedance controller, in the arm's own base frame.
        gripper_width: Target distance between the fingers [m]; None leaves the gripper as it is.
        wrench: Feed-forward force [N] and torque [Nm] of the tool on its environment at the tcp, in the tcp frame,
            which the controller adds to its own. Shape (6,). It ends with the command, and with every hold. None: none.
    """

    T_base_target: Pose
    gripper_width: float | None = None
    wrench: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Command:
    """A set-point for the arm, or one for each of several. One-shot: it expires, and then every arm holds.

    Attributes:
        stamp: When it was made [ns], on the clock of the robot.
        ttl: How long it is good for [s].
        T_base_target: Set-point of the Cartesian impedance controller.
        gripper_width: Target distance between the fingers [m]; None leaves the gripper as it is.
        arms: For a robot with several arms, the set-point of each by name, applied together or not at all. The entries
            of the same names here are then the first arm's.
        wrench: As of `SetPoint`.
    """

    stamp: int
    ttl: float
    T_base_target: Pose
    gripper_width: float | None = None
    arms: Mapping[str, SetPoint] = field(default_factory=dict)
    wrench: np.ndarray | None = None

    @classmethod
    def of_arms(cls, stamp: int, ttl: float, arms: Mapping[str, SetPoint]) -> Command:
        """Make the one command of several arms."""
        first = next(iter(arms.values()))
        return cls(stamp, ttl, first.T_base_target, first.gripper_width, arms, first.wrench)

    @property
    def set_point(self) -> SetPoint:
        """The set-point of a single arm."""
        return SetPoint(self.T_base_target, self.gripper_width, self.wrench)

    @property
    def set_points(self) -> Mapping[str, SetPoint]:
        """The set-point of each arm by name; a single arm has none."""
        return self.arms or {"": self.set_point}

    def of_arm(self, name: str) -> Command:
        """Return the command as it is for one of several arms alone."""
        point = self.arms[name]
        return Command(self.stamp, self.ttl, point.T_base_target, point.gripper_width, wrench=point.wrench)


def check_command(command: Command, now: int, arms: Collection[str] = ()) -> int:
    """Check a command, as every robot does before it follows it.

    Args:
        command: The command.
        now: Time on the robot's clock [ns].
        arms: Names of the robot's arms, where it has several.

    Returns:
        When the command expires [ns].

    Raises:
        ActionError: if the set-point of an arm is not a finite pose with a unit quaternion, a gripper's width is not
            finite, a wrench is not six finite numbers, `ttl` is not positive and finite, or it is for other arms than
            the robot has.
        CommandLateError: if the command had expired on arrival.
    """
    check_arms(command, arms)
    _check_set_point(command.set_point, "")
    for name, set_point in command.arms.items():
        _check_set_point(set_point, f"arm {name}: ")
    if not (math.isfinite(command.ttl) and command.ttl > 0):
        raise ActionError(f"ttl must be positive and finite, got {command.ttl} s")
    expires = command.stamp + round(command.ttl * NS_PER_S)
    if expires <= now:
        raise CommandLateError(
            f"command expired {(now - expires) / NS_PER_S:.3f} s before it arrived: this machine stood still; end "
            "other programs on it, and see `robot-rl doctor`"
        )
    return expires


def check_arms(command: Command, arms: Collection[str]) -> None:
    """Check that a command is for these arms; none: for one without a name.

    Raises:
        ActionError: if it is for others.
    """
    if command.arms.keys() != set(arms):
        raise ActionError(_other_arms(tuple(command.arms), tuple(arms)))


def _check_set_point(point: SetPoint, whose: str) -> None:
    position, quaternion = point.T_base_target.position, point.T_base_target.quaternion
    if not (np.isfinite(position).all() and abs(float(quaternion @ quaternion) - 1.0) < 1e-3):
        raise ActionError(
            f"{whose}set-point is no pose: position {position.tolist()}, quaternion {quaternion.tolist()}"
        )
    if point.gripper_width is not None and not math.isfinite(point.gripper_width):
        raise ActionError(f"{whose}gripper width must be finite, got {point.gripper_width} m")
    if (wrench := point.wrench) is not None and not (wrench.shape == (6,) and np.isfinite(wrench).all()):
        raise ActionError(f"{whose}a wrench is six finite numbers [N, Nm], got {wrench.tolist()}")


def _other_arms(given: tuple[str, ...], arms: tuple[str, ...]) -> str:
    """Return what is wrong with a command for the arms `given`, of a robot with these arms."""
    if not given:
        return f"one set-point for the arms {', '.join(arms)}: a command names the set-point of each"
    robot = f"the robot has the arms {', '.join(arms)}" if arms else "the robot has one arm, without a name"
    return f"the command is for the arms {', '.join(given)}, and {robot}; name each of them once, and no other"


def not_before(command: Command, last_stamp: int) -> Command:
    """Return the command with a stamp after the last one.

    Stamps rise on the way to an arm: where one with a later stamp was sent before, a command counts from then, and
    that much shorter.

    Args:
        command: The command.
        last_stamp: Of the newest command or stop that was sent [ns].
    """
    stamp = max(command.stamp, last_stamp + 1)
    if stamp == command.stamp:
        return command
    return replace(command, stamp=stamp, ttl=command.ttl - (stamp - command.stamp) / NS_PER_S)


class RobotIO(Protocol):
    """A robot, real or simulated."""

    def read(self) -> RobotState:
        """Return the newest state.

        Raises:
            StaleStateError: if it is older than the implementation's `max_age`.
        """
        ...

    def command(self, command: Command) -> None:
        """Make `command` the one that is followed until it expires or is replaced.

        An arm that follows no feed-forward wrench, or may not, refuses a command with one, and does not move.

        Raises:
            ActionError: as `check_command`, or for a wrench.
            CommandRefusedError: where limits refuse the command.
        """
        ...

    def stop(self) -> None:
        """Hold the arm where it is and drops the current command; a later command is followed again.

        Safe from any thread; doing it twice is fine.
        """
        ...
