"""Robotis' Dynamixel X servos with protocol 2.0, such as those of a Koch arm.

Source: Robotis e-Manual, "DYNAMIXEL Protocol 2.0" (packets, stuffing, CRC-16 with the polynomial 0x8005) and the
control tables of XL430-W250 and XL330-M288.
"""

from __future__ import annotations

from collections.abc import Mapping

from robot_rl.arm.servo.family import COUNTS_PER_TURN, Packet, ServoRegisters, ServoState
from robot_rl.arm.servo.register import Register

_HEAD = b"\xff\xff\xfd\x00"
_STUFFED = b"\xff\xff\xfd"
_SMALLEST = 11
_LARGEST = 1024
_STATUS = 0x55
_ALERT = 0x80
_LOAD = Register("present load or current", 126, 2, signed=True)
_VELOCITY = Register("present velocity", 128, 4, signed=True)
_POSITION = Register("present position", 132, 4, signed=True)
_VOLTAGE = Register("input voltage", 144, 2)
_TEMPERATURE = Register("present temperature", 146, 1)
_VELOCITY_UNIT = 0.229 / 60.0 * COUNTS_PER_TURN
"""Of 0.229 turns a minute [counts/s]."""
_FULL_LOAD = {1060: 1000.0}
"""Of models that measure load, in 0.1 %; the others measure current, in mA, of at most `_FULL_CURRENT`."""
_FULL_CURRENT = 1750.0
_REFUSALS = ("", "it failed", "no such instruction", "checksum", "value out of range", "size", "limit", "access")
_FAULTS = (
    (0x01, "its supply voltage is out of range; check the power supply and the plugs"),
    (0x04, "it is too hot; let it cool down"),
    (0x08, "its encoder fails; replace the servo"),
    (0x10, "its circuit has an electrical fault, or too little power reaches it; check the power supply"),
    (0x20, "it is overloaded; take the load off the joint"),
)


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x8005 if crc & 0x8000 else crc << 1
        table.append(crc & 0xFFFF)
    return table


_TABLE = _crc_table()


class Dynamixel:
    """Packets `FF FF FD 00 id length instruction parameters crc`; negative numbers are in two's complement."""

    name = "dynamixel"
    baud = 1_000_000
    registers = ServoRegisters(
        model=Register("model", 0, 2),
        firmware=Register("firmware", 6, 1),
        offset=Register("homing offset", 20, 4, signed=True),
        low=Register("least position", 52, 4, signed=True),
        high=Register("largest position", 48, 4, signed=True),
        torque=Register("torque", 64, 1),
        goal=Register("goal position", 116, 4, signed=True),
    )
    models: Mapping[int, str] = {1060: "XL430-W250", 1190: "XL330-M077", 1200: "XL330-M288", 1020: "XM430-W350"}
    state_blocks = tuple((start, 147 - start) for start in (126, 124, 122, 120, 116, 112))
    settings: Mapping[Register, int] = {
        Register("return delay", 9, 1): 0,
        Register("operating mode", 11, 1): 4,  # position, over more than one turn
    }
    gripper_settings: Mapping[Register, int] = {Register("operating mode", 11, 1): 5}  # limited by current
    lock: Register | None = None
    error_register: Register | None = Register("hardware error", 70, 1)

    def request(self, ident: int, instruction: int, parameters: bytes = b"") -> bytes:
        """Return the bytes of a request."""
        stuffed = parameters.replace(_STUFFED, _STUFFED + b"\xfd")
        packet = _HEAD + bytes((ident,)) + (len(stuffed) + 3).to_bytes(2, "little") + bytes((instruction,)) + stuffed
        return packet + crc16(packet).to_bytes(2, "little")

    def number(self, value: int) -> bytes:
        """Return an address or a size as a parameter."""
        return value.to_bytes(2, "little")

    def take(self, buffer: bytearray) -> Packet | None:
        """Take the next valid answer out of the buffer, with all that comes before; None if there is none yet."""
        while True:
            start = buffer.find(_HEAD)
            if start < 0:
                del buffer[: max(len(buffer) - 3, 0)]  # the last bytes may begin a head
                return None
            del buffer[:start]
            if len(buffer) < _SMALLEST:
                return None
            length = int.from_bytes(buffer[5:7], "little")
            size = length + 7
            is_possible = 4 <= length <= _LARGEST
            if is_possible and len(buffer) < size:
                return None
            if is_possible and crc16(buffer[: size - 2]) == int.from_bytes(buffer[size - 2 : size], "little"):
                ident, instruction, error = buffer[4], buffer[7], buffer[8]
                data = bytes(buffer[9 : size - 2]).replace(_STUFFED + b"\xfd", _STUFFED)
                del buffer[:size]
                if instruction == _STATUS:
                    return Packet(ident, error, data)
            else:
                del buffer[:1]  # no packet begins here

    def state(self, memory: bytes, start: int, model: int) -> ServoState:
        """Return the state in a piece of memory of a model that begins at address `start`."""
        return ServoState(
            position=_POSITION.decode(memory, start),
            velocity=_VELOCITY.decode(memory, start) * _VELOCITY_UNIT,
            load=_LOAD.decode(memory, start) / _FULL_LOAD.get(model, _FULL_CURRENT),
            voltage=_VOLTAGE.decode(memory, start) / 10.0,
            temperature=float(_TEMPERATURE.decode(memory, start)),
        )

    def refusal(self, error: int) -> str | None:
        """Return why the servo did not follow an instruction, from its error byte; None if it did."""
        code = error & ~_ALERT
        return (_REFUSALS[code] if code < len(_REFUSALS) else f"error {code}") if code else None

    def has_fault(self, error: int) -> bool:
        """Return whether the error byte reports a fault of the servo itself."""
        return bool(error & _ALERT)

    def faults(self, value: int) -> list[str]:
        """Return the faults in the error register."""
        return [text for bit, text in _FAULTS if value & bit]


def crc16(data: bytes | bytearray) -> int:
    """Return the CRC-16 of a packet without its last two bytes."""
    crc = 0
    for byte in data:
        crc = (crc << 8 & 0xFFFF) ^ _TABLE[(crc >> 8) ^ byte]
    return crc
