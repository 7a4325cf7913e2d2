"""Modbus RTU over a serial line: registers of one device.

Source: "Modbus over Serial Line, Specification and Implementation Guide" V1.02 (frames, CRC-16 with the reflected
polynomial 0xA001).
"""

from __future__ import annotations

import time

from robot_rl.arm.serial_line import SerialLine
from robot_rl.errors import RobotLostError

READ_HOLDING, READ_INPUT, WRITE_MULTIPLE = 3, 4, 16
TRIES = 3
_EXCEPTION = 0x80


class ModbusError(RobotLostError):
    """A device does not answer, or refuses a request."""


class ModbusDevice:
    """One device. Not safe for several threads.

    Args:
        line: Its line.
        ident: Its address.
        name: For people.
        timeout: Time for an answer [s].
    """

    def __init__(self, line: SerialLine, ident: int, name: str, timeout: float) -> None:
        self._line, self._ident, self._name, self._timeout = line, ident, name, timeout

    def read(self, address: int, count: int) -> bytes:
        """Return the bytes of registers, two each, high byte first.

        A repeated request is one for input registers instead of holding registers: a device of ours answers both, and
        a late answer to the first is told from that to the second.

        Raises:
            ModbusError: if it does not answer.
            LineLostError: if the port is gone.
        """
        body = address.to_bytes(2, "big") + count.to_bytes(2, "big")
        for attempt in range(TRIES):
            function = READ_INPUT if attempt % 2 else READ_HOLDING
            answer = self._exchange(function, body, 3 + 2 * count)
            if answer is not None and answer[0] == 2 * count:
                return answer[1:]
        raise ModbusError(f"{self._name} on {self._line.port} does not answer; check its power, its cable and its id")

    def write(self, address: int, data: bytes) -> None:
        """Write the bytes of registers.

        Raises:
            ModbusError: if it does not confirm it.
            LineLostError: if the port is gone.
        """
        count = len(data) // 2
        head = address.to_bytes(2, "big") + count.to_bytes(2, "big")
        for _ in range(TRIES):
            if self._exchange(WRITE_MULTIPLE, head + bytes((len(data),)) + data, 6) == head:
                return
        raise ModbusError(f"{self._name} on {self._line.port} does not answer; check its power, its cable and its id")

    def _exchange(self, function: int, body: bytes, size: int) -> bytes | None:
        """Return the body of the answer, whose frame has so many bytes before the CRC; None if none comes in time."""
        frame = bytes((self._ident, function)) + body
        self._line.send(frame + crc16(frame))
        deadline, buffer = time.monotonic() + self._timeout, bytearray()
        while True:
            data = self._line.receive(deadline)
            if not data:
                return None
            buffer += data
            for start in range(len(buffer)):
                if buffer[start] != self._ident:
                    continue
                frame = bytes(buffer[start : start + 5])
                if len(frame) == 5 and frame[1] == function | _EXCEPTION and crc16(frame[:3]) == frame[3:]:
                    raise ModbusError(f"{self._name} refuses a request: Modbus exception {frame[2]}")
                frame = bytes(buffer[start : start + size + 2])
                if len(frame) == size + 2 and frame[1] == function and crc16(frame[:-2]) == frame[-2:]:
                    return frame[2:-2]


def crc16(data: bytes) -> bytes:
    """Return the CRC of a frame, low byte first."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc.to_bytes(2, "little")
