"""A Robotiq gripper, by whichever line it is reached: activation, motion, faults.

Source: Robotiq, "2F-85 & 2F-140 Instruction Manual", 4.4 (states and fault codes).
"""

from __future__ import annotations

import time
from typing import Protocol

from pydantic.dataclasses import dataclass

from robot_rl.arm.control_thread import ControlThread
from robot_rl.arm.driver import DriverHost
from robot_rl.arm.fair_lock import FairLock
from robot_rl.arm.gripper_scale import GripperScale
from robot_rl.config.field_types import STRICT, Fraction, PositiveReal
from robot_rl.errors import ArmStoppedError, RobotLostError

_ACTIVE = 3
_FAULTS = {
    0x05: "it has not finished its activation; wait",
    0x07: "it is not activated",
    0x08: "it is too hot; let it cool down",
    0x09: "it has had no communication for a second",
    0x0A: "its supply voltage is too low; check the power supply",
    0x0B: "its automatic release is in progress",
    0x0C: "it has an internal fault; switch its power off and on",
    0x0D: "its activation failed; free its fingers",
    0x0E: "its current is too large; free its fingers",
    0x0F: "its automatic release has ended",
}
_PASSING = (0x05, 0x07)
ACTIVATION_LIMIT = 10.0
"""Longest time that an activation takes [s]."""


@dataclass(frozen=True, config=STRICT)
class GripperSettings:
    """What counts on every line."""

    width: PositiveReal = 0.085
    """Distance between the open fingers [m]: 0.085, 0.14 (2F-140) or 0.05 (Hand-E)."""
    speed: Fraction = 0.5
    """Share of its largest speed."""
    force: Fraction = 0.2
    """Share of its largest force."""
    rate: PositiveReal = 30.0
    """How often it is read [Hz]."""
    timeout: PositiveReal = 0.1
    """Time for an answer [s]."""


class RobotiqLink(Protocol):
    """The line to a gripper, used by one thread at a time; a method raises `RobotLostError` if it does not answer."""

    def state(self) -> tuple[int, int, int]:
        """Return its status (3: active), its fault code and its position, from 0, open, to 255, closed."""
        ...

    def activate(self) -> None:
        """Begin its activation, from the start."""
        ...

    def request(self, position: int, speed: int, force: int) -> None:
        """Send it to a position; each number from 0 to 255."""
        ...

    def close(self) -> None:
        """Release the line."""
        ...


class RobotiqGripper:
    """A gripper; it is activated by `start`, and its fingers then open and close once if it was not active.

    Args:
        config: Its settings.
        host: The program that runs it.
        link: Its line; closed if the gripper does not answer.

    Raises:
        RobotLostError: if it does not answer.
    """

    def __init__(self, config: GripperSettings, host: DriverHost, link: RobotiqLink) -> None:
        self._config, self._link = config, link
        self._scale = GripperScale(255.0, 0.0, config.width)
        self._using = FairLock()
        self._wanted: int | None = None
        self._sent: int | None = None
        self._width: float | None = None
        self._fault: str | None = None
        self._thread = ControlThread("robotiq", config.rate, self._cycle, host.problem)
        try:
            link.state()
        except BaseException:
            link.close()
            raise

    @property
    def width(self) -> float | None:
        """Distance between the fingers as measured last [m]."""
        return self._width

    def start(self) -> None:
        """Activate it if it is not active, and begin to read it.

        Raises:
            ArmStoppedError: if its activation fails.
            RobotLostError: if it does not answer.
        """
        self._activate()
        self._thread.start()

    def move(self, width: float) -> None:
        """Set the distance between the fingers [m]; the gripper stops by itself at an object, with its force."""
        self._wanted = round(self._scale.value_of(width))

    def faults(self) -> list[str]:
        """Return why it would not obey now."""
        return [self._fault] if self._fault is not None else []

    def recover(self) -> None:
        """Activate it again, after a person has consented; it then waits for the next width.

        Raises:
            ArmStoppedError: if a fault stays.
        """
        self._wanted = None  # what was commanded before is not done now, where a person may have their fingers
        try:
            self._activate()
        except RobotLostError as error:
            raise ArmStoppedError(str(error)) from error
        self._fault = None

    def close(self) -> None:
        """Release it; it keeps what it holds."""
        self._thread.close()
        with self._using:
            self._link.close()

    def _activate(self) -> None:
        with self._using:
            status, fault, _ = self._link.state()
            if status == _ACTIVE and not fault:
                return
            self._link.activate()
            self._sent = None
            end = time.monotonic() + ACTIVATION_LIMIT
            while status != _ACTIVE or fault:
                if time.monotonic() > end:
                    raise ArmStoppedError("the Robotiq gripper does not become active; free its fingers")
                time.sleep(0.05)
                status, fault, _ = self._link.state()

    def _cycle(self) -> None:
        with self._using:
            try:
                _, fault, position = self._link.state()
                if self._wanted is not None and self._wanted != self._sent:
                    speed, force = round(255 * self._config.speed), round(255 * self._config.force)
                    self._link.request(self._wanted, speed, force)
                    self._sent = self._wanted
            except RobotLostError as error:
                self._fault = str(error)
                return
        self._width = self._scale.width_of(float(position))
        if fault and fault not in _PASSING:
            self._fault = f"the Robotiq gripper: {_FAULTS.get(fault, f'fault {fault:#04x}')}"
