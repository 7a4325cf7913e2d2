"""A Robotiq gripper on the wrist of a UR, by the socket that Robotiq's URCap opens at the arm's controller.

Lines such as `GET POS` are answered by `POS 12`, and `SET POS 255 GTO 1` by `ack`, without an end of the line. The
variables are those of Robotiq, "2F-85 & 2F-140 Instruction Manual", 4.5 and 4.6.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.parts.robotiq_gripper import GripperSettings, RobotiqGripper
from robot_rl.config.field_types import STRICT
from robot_rl.errors import ConfigError, RobotLostError

ANSWER = 64
"""Longest answer [bytes]."""


@dataclass(frozen=True, config=STRICT)
class RobotiqUrcapConfig(GripperSettings):
    """A Robotiq gripper behind its URCap on the controller of a UR."""

    host: str = ""
    """Address of the controller, e.g. `192.168.1.10`."""
    socket_port: Annotated[int, Field(ge=1, le=65535)] = 63352
    """TCP port of the URCap."""


class RobotiqUrcap(RobotiqGripper):
    """The gripper.

    Args:
        config: Its settings.
        host: The program that runs it.

    Raises:
        ConfigError: if the address is missing.
        RobotLostError: if it does not answer.
    """

    Config = RobotiqUrcapConfig

    def __init__(self, config: RobotiqUrcapConfig, host: DriverHost) -> None:
        if not config.host:
            raise ConfigError("host is missing; give the address of the UR controller, e.g. `host=192.168.1.10`")
        super().__init__(config, host, _Socket(config))


class _Socket:
    """A `RobotiqLink` of lines of text.

    Answers do not say which request they are for. So after one that does not come, or is another one, the connection is
    closed, and the next request opens a new one.
    """

    def __init__(self, config: RobotiqUrcapConfig) -> None:
        self._address, self._timeout = (config.host, config.socket_port), config.timeout
        self._socket: socket.socket | None = None

    def state(self) -> tuple[int, int, int]:
        return self._get("STA"), self._get("FLT"), self._get("POS")

    def activate(self) -> None:
        self._set("ACT 0 GTO 0")  # else it goes to where it was last to go
        self._set("ACT 1")

    def request(self, position: int, speed: int, force: int) -> None:
        self._set(f"POS {position} SPE {speed} FOR {force} GTO 1")

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _get(self, variable: str) -> int:
        name, _, value = self._ask(f"GET {variable}").partition(" ")
        if name != variable or not value.isdecimal():
            raise self._lost(f"it answers {name!r} to GET {variable}")
        return int(value)

    def _set(self, variables: str) -> None:
        if (answer := self._ask(f"SET {variables}")) != "ack":
            raise self._lost(f"it answers {answer!r} to SET {variables}")

    def _ask(self, line: str) -> str:
        try:
            if self._socket is None:
                self._socket = socket.create_connection(self._address, self._timeout)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(f"{line}\n".encode())
            answer = self._socket.recv(ANSWER).decode("ascii", "replace").strip()
        except OSError as error:
            raise self._lost(str(error) or type(error).__name__) from error
        if not answer:
            raise self._lost("it has closed the connection")
        return answer

    def _lost(self, why: str) -> RobotLostError:
        self.close()
        host, port = self._address
        return RobotLostError(
            f"the Robotiq gripper behind {host}:{port} does not answer ({why}); check its cable, and that its URCap is "
            "installed and the gripper found on the pendant"
        )
