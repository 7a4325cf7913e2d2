"""What differs between the servos of different makers: packets, registers, units and the meaning of errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from robot_rl.arm.servo.register import Register

PING, READ, WRITE, REBOOT, SYNC_READ, SYNC_WRITE = 1, 2, 3, 8, 0x82, 0x83
"""Instructions; both families have the same numbers."""
BROADCAST = 0xFE
"""Address of all servos."""
COUNTS_PER_TURN = 4096


class Packet(NamedTuple):
    """An answer of a servo.

    Attributes:
        ident: Of the servo.
        error: Its error byte.
        data: Its parameters.
    """

    ident: int
    error: int
    data: bytes


class ServoState(NamedTuple):
    """What a servo measures.

    Attributes:
        position: [counts].
        velocity: [counts/s].
        load: Share of the largest torque, or of the largest current, in [-1, 1].
        voltage: Of the supply [V].
        temperature: [deg C].
    """

    position: int
    velocity: float
    load: float
    voltage: float
    temperature: float


@dataclass(frozen=True)
class ServoRegisters:
    """The registers that every family has."""

    model: Register
    firmware: Register
    offset: Register
    low: Register
    high: Register
    torque: Register
    goal: Register


class ServoFamily(Protocol):
    """A maker's protocol. Frames, registers and units; no state, no line."""

    @property
    def name(self) -> str:
        """Of the family."""
        ...

    @property
    def baud(self) -> int:
        """Bits per second, as LeRobot sets them up."""
        ...

    @property
    def registers(self) -> ServoRegisters:
        """Its registers."""
        ...

    @property
    def models(self) -> Mapping[int, str]:
        """Names of the models by their numbers."""
        ...

    @property
    def state_blocks(self) -> tuple[tuple[int, int], ...]:
        """Pieces of memory (address, size) with the state, of different sizes.

        There are no sequence numbers in these protocols. A repeated request is of another size than the one before, so
        that a late answer to that one is not taken for the answer to this one.
        """
        ...

    @property
    def settings(self) -> Mapping[Register, int]:
        """Settings of a servo of the arm."""
        ...

    @property
    def gripper_settings(self) -> Mapping[Register, int]:
        """Settings of the gripper's, which replace those of the arm."""
        ...

    @property
    def lock(self) -> Register | None:
        """Register that has to be 0 while settings are written; None if there is none."""
        ...

    @property
    def error_register(self) -> Register | None:
        """Register that names the faults; None if the error byte does."""
        ...

    def request(self, ident: int, instruction: int, parameters: bytes = b"") -> bytes:
        """Return the bytes of a request."""
        ...

    def number(self, value: int) -> bytes:
        """Return an address or a size as a parameter."""
        ...

    def take(self, buffer: bytearray) -> Packet | None:
        """Take the next valid answer out of the buffer, with all that comes before; None if there is none yet."""
        ...

    def state(self, memory: bytes, start: int, model: int) -> ServoState:
        """Return the state in a piece of memory of a model that begins at address `start`."""
        ...

    def refusal(self, error: int) -> str | None:
        """Return why the servo did not follow an instruction, from its error byte; None if it did."""
        ...

    def has_fault(self, error: int) -> bool:
        """Return whether the error byte reports a fault of the servo itself."""
        ...

    def faults(self, value: int) -> list[str]:
        """Return the faults in the error register, or in the error byte where there is no such register."""
        ...
