"""The low contract that a robot fulfils: read a stamped state, send a command, stop.

`sim` implements it over MuJoCo and `ros_nodes` over topics; `tests/contracts/robot_io_contract.py` holds each to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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


@dataclass(frozen=True, eq=False)
class Command:
    """A set-point for the arm. One-shot: it expires, and then the arm holds where it is.

    Attributes:
        stamp: When it was made [ns], on the clock of the robot.
        ttl: How long it is good for [s].
        T_base_target: Set-point of the Cartesian impedance controller.
        gripper_width: Target distance between the fingers [m]; None leaves the gripper as it is.
    """

    stamp: int
    ttl: float
    T_base_target: Pose
    gripper_width: float | None = None


def check_command(command: Command, now: int) -> int:
    """Check a command, as every robot does before it follows it.

    Args:
        command: The command.
        now: Time on the robot's clock [ns].

    Returns:
        When the command expires [ns].

    Raises:
        ActionError: if the set-point is not a finite pose with a unit quaternion, the gripper's width is not finite,
            or `ttl` is not positive and finite.
        CommandLateError: if the command had expired on arrival.
    """
    position, quaternion = command.T_base_target.position, command.T_base_target.quaternion
    if not (np.isfinite(position).all() and abs(float(quaternion @ quaternion) - 1.0) < 1e-3):
        raise ActionError(f"set-point is no pose: position {position.tolist()}, quaternion {quaternion.tolist()}")
    if command.gripper_width is not None and not math.isfinite(command.gripper_width):
        raise ActionError(f"gripper width must be finite, got {command.gripper_width} m")
    if not (math.isfinite(command.ttl) and command.ttl > 0):
        raise ActionError(f"ttl must be positive and finite, got {command.ttl} s")
    expires = command.stamp + round(command.ttl * NS_PER_S)
    if expires <= now:
        raise CommandLateError(
            f"command expired {(now - expires) / NS_PER_S:.3f} s before it arrived: this machine stood still; end "
            "other programs on it, and see `robot-rl doctor`"
        )
    return expires


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

        Raises:
            ActionError: as `check_command`.
        """
        ...

    def stop(self) -> None:
        """Hold the arm where it is and drops the current command; a later command is followed again.

        Safe from any thread; doing it twice is fine.
        """
        ...
