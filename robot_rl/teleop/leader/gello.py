"""A GELLO leader arm as a `Device`: a small copy of the arm, of Dynamixel servos, moved by hand.

Each of its joints is one of the arm's, so its pose is that of the arm's own kinematics at its joint angles. Settings
have the names and conventions of GELLO's `DynamixelRobotConfig`, so that those of a calibrated GELLO can be copied
(Wu et al., "GELLO", 2023; its `gello_get_offset.py` finds the offsets).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.joints.joint_port import JointReading
from robot_rl.arm.kinematics.urdf import chain_from_urdf
from robot_rl.arm.serial_line import SerialLine
from robot_rl.arm.servo.dynamixel import Dynamixel
from robot_rl.arm.servo.family import COUNTS_PER_TURN
from robot_rl.arm.servo.servo_bus import ServoBus
from robot_rl.clock import Clock, WallClock
from robot_rl.config.field_types import STRICT, Positive, PositiveReal, Real
from robot_rl.errors import ConfigError
from robot_rl.teleop.leader.leader_arm import LeaderArm, open_leader

_RADIANS = 2.0 * math.pi / COUNTS_PER_TURN
_Ident = Annotated[int, Field(ge=0, le=252)]


@dataclass(frozen=True, config=STRICT)
class GelloConfig:
    """A GELLO and the arm that it is a copy of."""

    port: str = "/dev/ttyUSB0"
    """Serial port; a name below `/dev/serial/by-id` does not change."""
    baud: Positive = 57600
    """Of its servos [bit/s]; GELLO leaves them at the maker's 57,600. At 1,000,000 it is read more often."""
    joint_ids: tuple[_Ident, ...] = (1, 2, 3, 4, 5, 6)
    """Ids of the servos of the joints from the base."""
    joint_offsets: tuple[Real, ...] = ()
    """Angle of each servo where the arm's joint is at zero [rad]."""
    joint_signs: tuple[int, ...] = ()
    """1 where a servo turns as the arm's joint does, -1 where it turns the other way."""
    gripper_config: tuple[Real, ...] = ()
    """Id of the trigger's servo, and its angles open and closed [deg]; empty: there is none."""
    urdf: str = ""
    """URDF file of the arm that is led."""
    tip: str = "tool0"
    """Link of the URDF file whose frame is the tcp's."""
    timeout: PositiveReal = 0.15
    """Time for the answers to a request [s]."""


class GelloJoints:
    """The servos of a GELLO, limp: angles of the arm's joints, and the opening of the trigger.

    Args:
        config: Its settings.
        clock: Time since 1970 [ns].

    Raises:
        ConfigError: if a setting is not valid.
        RobotLostError: if the port or a servo is not there.
    """

    def __init__(self, config: GelloConfig, clock: Clock) -> None:
        _check(config)
        self._clock = clock
        self._offsets, self._signs = np.array(config.joint_offsets), np.array(config.joint_signs)
        idents = {f"joint {number}": ident for number, ident in enumerate(config.joint_ids, start=1)}
        self._trigger = np.deg2rad(config.gripper_config[1:])
        """Its angles open and closed [rad]; none without one."""
        if config.gripper_config:
            idents["trigger"] = int(config.gripper_config[0])
        line = SerialLine(config.port, config.baud)
        try:
            self._bus = ServoBus(line, Dynamixel(), idents, config.timeout)
            self._bus.find()
            self._bus.set(self._bus.family.registers.torque, [0] * len(idents))
        except BaseException:
            line.close()
            raise

    def read(self) -> JointReading:
        """Measure.

        Raises:
            RobotLostError: if a servo does not answer.
        """
        stamp = self._clock.now()
        servos = self._bus.state().servos
        angles = np.array([servo.position for servo in servos]) * _RADIANS
        speeds = np.array([servo.velocity for servo in servos]) * _RADIANS
        n = self._signs.size
        opening = None
        if self._trigger.size:
            opened, closed = self._trigger
            opening = float(np.clip((angles[n] - closed) / (opened - closed), 0.0, 1.0))
        return JointReading(stamp, self._signs * (angles[:n] - self._offsets), self._signs * speeds[:n], opening)

    def close(self) -> None:
        """Close the line; doing it twice is fine."""
        self._bus.close()


def open_gello() -> LeaderArm:
    """Open a GELLO.

    Raises:
        DeviceError: if its settings are missing or wrong, or it is not there.
    """

    def make(config: GelloConfig) -> LeaderArm:
        if not config.urdf:
            raise ConfigError("a GELLO needs the kinematics of its arm: `urdf`, the path of the URDF file, and `tip`")
        chain = chain_from_urdf(Path(config.urdf).expanduser(), config.tip)
        if chain.size != len(config.joint_ids):
            names = ", ".join(chain.names)
            raise ConfigError(f"joint_ids are {len(config.joint_ids)}, the arm has {chain.size} joints: {names}")
        return LeaderArm(GelloJoints(config, WallClock()), chain, "GELLO")

    return open_leader(GelloConfig, "GELLO", make)


def _check(config: GelloConfig) -> None:
    """Refuse settings that do not belong together.

    Raises:
        ConfigError: naming them.
    """
    count = len(config.joint_ids)
    if len(config.joint_offsets) != count or len(config.joint_signs) != count:
        raise ConfigError(
            f"joint_ids are {count}, joint_offsets {len(config.joint_offsets)}, joint_signs {len(config.joint_signs)}; "
            "each joint needs one of each, as in GELLO's DynamixelRobotConfig (gello_get_offset.py finds them)"
        )
    if any(abs(sign) != 1 for sign in config.joint_signs):
        raise ConfigError(f"joint_signs are 1 or -1, not {list(config.joint_signs)}")
    trigger = config.gripper_config
    if trigger and (len(trigger) != 3 or trigger[1] == trigger[2] or not float(trigger[0]).is_integer()):
        raise ConfigError(f"gripper_config is an id and two different angles [deg], not {list(trigger)}")
    idents = [*config.joint_ids, *(int(ident) for ident in trigger[:1])]
    if len(set(idents)) < len(idents):
        raise ConfigError(f"every servo needs an id of its own: {idents}")
