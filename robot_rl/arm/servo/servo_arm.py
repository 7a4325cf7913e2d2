"""Hobby arms of Feetech or Dynamixel servos as `ArmDriver`s: SO-101 at once; SO-100, Koch and others by a URDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.joints.joint_arm import JointArm, JointArmConfig
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.arm.kinematics.urdf import chain_from_urdf
from robot_rl.arm.serial_line import SerialLine
from robot_rl.arm.servo.dynamixel import Dynamixel
from robot_rl.arm.servo.family import ServoFamily
from robot_rl.arm.servo.feetech import Feetech
from robot_rl.arm.servo.servo_bus import ServoBus
from robot_rl.arm.servo.servo_joints import ServoJoints
from robot_rl.clock import Clock
from robot_rl.config.field_types import STRICT, PositiveReal
from robot_rl.errors import ConfigError

FAMILIES: dict[str, type[ServoFamily]] = {"feetech": Feetech, "dynamixel": Dynamixel}
_NAMES = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
_Ident = Annotated[int, Field(ge=0, le=252)]


@dataclass(frozen=True, config=STRICT)
class ServoArmConfig(JointArmConfig):
    """An arm of servos; the defaults are an SO-100's, whose kinematics come from a URDF file."""

    port: str = "/dev/ttyACM0"
    """Serial port; a name below `/dev/serial/by-id` does not change."""
    servos: Literal["feetech", "dynamixel"] = "feetech"
    """Their maker: Feetech STS (SO-100, SO-101), or Dynamixel X with protocol 2.0 (Koch, ViperX)."""
    joint_names: tuple[str, ...] = _NAMES
    """The joints from the base, as in the URDF file and in the calibration."""
    joint_ids: tuple[_Ident, ...] = (1, 2, 3, 4, 5)
    """Ids of their servos."""
    gripper_name: str = "gripper"
    """Name of the gripper's servo in the calibration; empty: there is none."""
    gripper_id: _Ident = 6
    """Its id."""
    calibration: str = ""
    """LeRobot's calibration file, to check that the servos have it; empty: what the servos keep."""
    urdf: str = ""
    """URDF file with the kinematics."""
    tip: str = "gripper_frame_link"
    """Link of the URDF file whose frame is the tcp's."""
    timeout: PositiveReal = 0.05
    """Time for the answers to a request [s]."""


@dataclass(frozen=True, config=STRICT)
class So101Config(ServoArmConfig):
    """An SO-101; without a URDF file, its kinematics are those of the published design."""


class ServoArm(JointArm):
    """An arm of servos.

    Args:
        config: Its settings.
        host: The program that runs it.

    Raises:
        ConfigError: if a setting is not valid, or the calibration is that of another arm.
        RobotLostError: if the port or a servo is not there.
    """

    Config: type[ServoArmConfig] = ServoArmConfig

    def __init__(self, config: ServoArmConfig, host: DriverHost) -> None:
        chain = self.chain_of(config)
        super().__init__(open_joints(config, host.wall), chain, config, host)

    @classmethod
    def chain_of(cls, config: ServoArmConfig) -> Chain:
        """Return the kinematics.

        Raises:
            ConfigError: if there is no valid URDF file.
        """
        if not config.urdf:
            raise ConfigError("a servo_arm needs its kinematics: `urdf`, the path of its URDF file, and `tip`")
        return chain_from_urdf(Path(config.urdf), config.tip, config.joint_names)


class So101(ServoArm):
    """An SO-101."""

    Config = So101Config

    @classmethod
    def chain_of(cls, config: ServoArmConfig) -> Chain:
        """Return the kinematics: of the URDF file if one is named, else of the published design."""
        return super().chain_of(config) if config.urdf else so101_chain()


def open_joints(config: ServoArmConfig, clock: Clock, *, moved_by_hand: bool = False) -> ServoJoints:
    """Open the servos of an arm.

    Args:
        config: Which.
        clock: Time since 1970 [ns].
        moved_by_hand: Whether a person moves it, as a leader arm.

    Raises:
        ConfigError: if a setting is not valid, or the calibration is that of another arm.
        RobotLostError: if the port or a servo is not there.
    """
    idents = dict(zip(config.joint_names, config.joint_ids, strict=False))
    if config.gripper_name:
        idents[config.gripper_name] = config.gripper_id
    given = len(config.joint_ids) + bool(config.gripper_name)
    if not len(config.joint_names) == len(config.joint_ids) or len(set(idents.values())) < given:
        raise ConfigError(
            f"every joint needs a name and an id of its own: joint_names {list(config.joint_names)}, joint_ids "
            f"{list(config.joint_ids)}, gripper {config.gripper_name or 'none'} with id {config.gripper_id}"
        )
    calibration = Path(config.calibration) if config.calibration else None
    family = FAMILIES[config.servos]()
    line = SerialLine(config.port, family.baud)
    try:
        bus = ServoBus(line, family, idents, config.timeout)
        return ServoJoints(bus, idents, bool(config.gripper_name), clock, calibration, moved_by_hand)
    except BaseException:
        line.close()
        raise
