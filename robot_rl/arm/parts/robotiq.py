"""Robotiq's 2F-85, 2F-140 and Hand-E on a serial port.

Source: Robotiq, "2F-85 & 2F-140 Instruction Manual", 4.7 (registers).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.parts.modbus import ModbusDevice
from robot_rl.arm.parts.robotiq_gripper import GripperSettings, RobotiqGripper
from robot_rl.arm.serial_line import SerialLine
from robot_rl.config.field_types import STRICT

BAUD = 115_200
OUTPUTS, INPUTS = 0x03E8, 0x07D0
"""First registers of the requests, and of the state."""
_ACTIVATE, _GO = 0x01, 0x08


@dataclass(frozen=True, config=STRICT)
class RobotiqConfig(GripperSettings):
    """A Robotiq gripper on a serial port."""

    port: str = "/dev/ttyUSB0"
    """Serial port; a name below `/dev/serial/by-id` does not change."""
    ident: Annotated[int, Field(ge=1, le=247)] = 9
    """Its Modbus address."""


class Robotiq(RobotiqGripper):
    """The gripper.

    Args:
        config: Its settings.
        host: The program that runs it.

    Raises:
        ConfigError: if pyserial is not installed.
        RobotLostError: if it does not answer.
    """

    Config = RobotiqConfig

    def __init__(self, config: RobotiqConfig, host: DriverHost) -> None:
        super().__init__(config, host, _Registers(config))


class _Registers:
    """A `RobotiqLink` of Modbus registers."""

    def __init__(self, config: RobotiqConfig) -> None:
        self._line = SerialLine(config.port, BAUD)
        self._device = ModbusDevice(self._line, config.ident, "the Robotiq gripper", config.timeout)

    def state(self) -> tuple[int, int, int]:
        data = self._device.read(INPUTS, 3)
        return data[0] >> 4 & 3, data[2] & 0x0F, data[4]

    def activate(self) -> None:
        self._device.write(OUTPUTS, bytes(6))
        self._device.write(OUTPUTS, bytes((_ACTIVATE, 0, 0, 0, 0, 0)))

    def request(self, position: int, speed: int, force: int) -> None:
        self._device.write(OUTPUTS, bytes((_ACTIVATE | _GO, 0, 0, position, speed, force)))

    def close(self) -> None:
        self._line.close()
