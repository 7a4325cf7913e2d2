"""Feetech's STS and SMS servos, such as the STS3215 of an SO-101.

Sources: Feetech's "Communication Protocol Manual" (packets, error bits) and memory table of the STS3215; values of the
settings are those with which LeRobot runs these arms.
"""

from __future__ import annotations

from collections.abc import Mapping

from robot_rl.arm.servo.family import Packet, ServoRegisters, ServoState
from robot_rl.arm.servo.register import Register

_HEAD = b"\xff\xff"
_SMALLEST = 6
_PRESENT = 56
_POSITION = Register("present position", 56, 2, sign_bit=15)
_VELOCITY = Register("present velocity", 58, 2, sign_bit=15)
_LOAD = Register("present load", 60, 2, sign_bit=10)
_VOLTAGE = Register("present voltage", 62, 1)
_TEMPERATURE = Register("present temperature", 63, 1)
_FAULTS = (
    (0x01, "its supply voltage is out of range; check the power supply and the plugs"),
    (0x02, "its angle sensor fails; replace the servo"),
    (0x04, "it is too hot; let it cool down"),
    (0x08, "its current is too large; free the joint"),
    (0x20, "it is overloaded; take the load off the joint"),
)


class Feetech:
    """Packets `FF FF id length instruction parameters checksum`; signs are bits beside the magnitude."""

    name = "feetech"
    baud = 1_000_000
    registers = ServoRegisters(
        model=Register("model", 3, 2),
        firmware=Register("firmware", 0, 2),
        offset=Register("homing offset", 31, 2, sign_bit=11),
        low=Register("least position", 9, 2),
        high=Register("largest position", 11, 2),
        torque=Register("torque", 40, 1),
        goal=Register("goal position", 42, 2, sign_bit=15),
    )
    models: Mapping[int, str] = {777: "STS3215", 2825: "STS3250"}
    state_blocks = tuple((_PRESENT, size) for size in range(10, 16))
    settings: Mapping[Register, int] = {
        Register("return delay", 7, 1): 0,
        Register("P coefficient", 21, 1): 16,  # the factory's 32 shakes an arm
        Register("D coefficient", 22, 1): 32,
        Register("I coefficient", 23, 1): 0,
        Register("operating mode", 33, 1): 0,  # position
        Register("largest acceleration", 85, 1): 254,
    }
    gripper_settings: Mapping[Register, int] = {
        Register("largest torque", 16, 2): 500,  # half of it: jaws that are blocked do not burn the servo
        Register("protection current", 28, 2): 250,
        Register("overload torque", 36, 1): 25,
    }
    lock: Register | None = Register("lock", 55, 1)
    error_register: Register | None = None

    def request(self, ident: int, instruction: int, parameters: bytes = b"") -> bytes:
        """Return the bytes of a request."""
        body = bytes((ident, len(parameters) + 2, instruction)) + parameters
        return _HEAD + body + bytes((checksum(body),))

    def number(self, value: int) -> bytes:
        """Return an address or a size as a parameter."""
        return bytes((value,))

    def take(self, buffer: bytearray) -> Packet | None:
        """Take the next valid answer out of the buffer, with all that comes before; None if there is none yet."""
        while True:
            start = buffer.find(_HEAD)
            if start < 0:
                del buffer[: max(len(buffer) - 1, 0)]  # the last byte may begin a head
                return None
            del buffer[:start]
            if len(buffer) < _SMALLEST:
                return None
            size = buffer[3] + 4
            if buffer[3] >= 2 and len(buffer) < size:
                return None
            if buffer[3] >= 2 and checksum(buffer[2 : size - 1]) == buffer[size - 1]:
                packet = Packet(buffer[2], buffer[4], bytes(buffer[5 : size - 1]))
                del buffer[:size]
                return packet
            del buffer[:1]  # no packet begins here

    def state(self, memory: bytes, start: int, model: int) -> ServoState:
        """Return the state in a piece of memory of a model that begins at address `start`."""
        del model  # all have the same units
        return ServoState(
            position=_POSITION.decode(memory, start),
            velocity=float(_VELOCITY.decode(memory, start)),
            load=_LOAD.decode(memory, start) / 1000.0,
            voltage=_VOLTAGE.decode(memory, start) / 10.0,
            temperature=float(_TEMPERATURE.decode(memory, start)),
        )

    def refusal(self, error: int) -> str | None:
        """Return None: these servos report faults of their own, but refuse nothing."""
        del error
        return None

    def has_fault(self, error: int) -> bool:
        """Return whether the error byte reports a fault of the servo itself."""
        return error != 0

    def faults(self, value: int) -> list[str]:
        """Return the faults in the error byte."""
        return [text for bit, text in _FAULTS if value & bit] or [f"it reports the error {value:#04x}"]


def checksum(body: bytes | bytearray) -> int:
    """Return the checksum of a packet from its id on: the inverted sum."""
    return ~sum(body) & 0xFF
