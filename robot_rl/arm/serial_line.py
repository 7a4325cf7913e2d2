"""A serial line that may be unplugged at any time, by pyserial."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
import time
from types import ModuleType
from typing import Any

from robot_rl.errors import ConfigError, RobotLostError

INSTALL = "pip install 'robot_rl[servo]'"
WRITE_LIMIT = 0.2
"""Longest time to hand bytes to the operating system [s]."""
_GONE = (OSError, termios.error, TypeError, ValueError)
"""What the use of a line raises that is gone, or, the last two, that another thread closes meanwhile."""


class LineLostError(RobotLostError):
    """The port of a serial line is gone, or cannot be opened."""


class SerialLine:
    """A serial line for this process alone; after it was lost, not after `close`, the next `send` opens it again.

    Args:
        port: Its path, e.g. `/dev/ttyACM0`; below `/dev/serial/by-id` is one that does not change.
        baud: Bits per second.

    Raises:
        ConfigError: if pyserial is not installed.
        LineLostError: if it cannot be opened.
    """

    def __init__(self, port: str, baud: int) -> None:
        self.port, self._baud = port, baud
        self._serial = _pyserial()
        self._line = self._open()
        self._closed = False
        self.openings = 1
        """How often it has been opened."""

    def send(self, data: bytes) -> None:
        """Send bytes; what arrived before them is dropped.

        Raises:
            LineLostError: if the port is gone, or was closed, perhaps by another thread.
        """
        if self._closed:
            raise LineLostError(f"{self.port} was closed")
        if (line := self._line) is None:
            line = self._line = self._open()
            self.openings += 1
        try:
            while _waits(line, 0.0):
                _read(line)
            line.write(data)
        except _GONE as error:
            raise self._lost(error) from error

    def receive(self, deadline: float) -> bytes:
        """Return what has arrived, at least one byte; none if nothing did by the deadline (`time.monotonic`, [s]).

        Raises:
            LineLostError: if the port is gone.
        """
        if (line := self._line) is None:
            raise LineLostError(f"{self.port} is not open")
        try:
            return _read(line) if _waits(line, max(deadline - time.monotonic(), 0.0)) else b""
        except _GONE as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Close it for good; doing it twice is fine."""
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with contextlib.suppress(OSError, termios.error):  # it may be gone already
                line.close()

    def _open(self) -> Any:
        try:
            return self._serial.Serial(self.port, self._baud, timeout=0, write_timeout=WRITE_LIMIT, exclusive=True)
        except (OSError, termios.error) as error:
            raise LineLostError(self._why(error)) from error

    def _why(self, error: Exception) -> str:
        if not os.path.exists(self.port):
            return f"there is no {self.port}; is the arm plugged in? `ls /dev/serial/by-id` lists what is"
        if not os.access(self.port, os.R_OK | os.W_OK):
            return f"{self.port} may not be used; cure: `sudo usermod -aG dialout $USER`, and a new login"
        if "lock" in str(error):
            return f"{self.port} is in use by another program; end it, `fuser {self.port}` names it"
        if getattr(error, "errno", None) == errno.ENOTTY or "Inappropriate ioctl" in str(error):
            return f"{self.port} is no serial port; `ls /dev/serial/by-id` lists what is"
        return f"{self.port} cannot be opened: {error}"

    def _lost(self, error: Exception) -> LineLostError:
        self._let_go()
        return LineLostError(f"{self.port} is gone ({error}); plug it in again")


def _waits(line: Any, timeout: float) -> bool:
    return bool(select.select([line.fd], [], [], timeout)[0])


def _read(line: Any) -> bytes:
    data = os.read(line.fd, 4096)
    if not data:
        raise OSError("end of file")
    return data


def _pyserial() -> ModuleType:
    try:
        import serial
    except ImportError as error:
        raise ConfigError(f"serial ports need pyserial: {INSTALL}") from error
    return serial
