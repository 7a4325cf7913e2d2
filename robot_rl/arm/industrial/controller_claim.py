"""One program of ours for each controller on this machine, for controllers that let a second one in."""

from __future__ import annotations

import os
import socket
import struct

from robot_rl.errors import ArmStoppedError

_CREDENTIALS = struct.Struct("3i")  # of a Unix socket's other end: process, user, group


class ControllerClaim:
    """A claim on a controller, which the kernel drops however its process ends.

    It is a Unix socket with an abstract name (unix(7)), so it needs no file, holds between users, and tells whose it
    is. Without abstract names, i.e. beyond Linux, nothing is claimed.

    Args:
        host: Name or address of the controller.
        what: Its kind, for the message.

    Raises:
        ArmStoppedError: if another program has it, naming its process.
    """

    def __init__(self, host: str, *, what: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if not hasattr(socket, "SO_PEERCRED"):
            return
        name = f"\0robot_rl {what} {socket.gethostbyname(host)}"
        try:
            self._socket.bind(name)
            self._socket.listen()
        except OSError as error:
            owner = self._owner(name)
            self.close()
            raise ArmStoppedError(
                f"the {what} at {host} is in use by another program{owner}; end that, then start again"
            ) from error

    def close(self) -> None:
        """Let the controller go; doing it twice is fine."""
        self._socket.close()

    def _owner(self, name: str) -> str:
        try:
            self._socket.connect(name)
            data = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:  # it has just ended
            return ""
        process = _CREDENTIALS.unpack(data)[0]
        return " (this one)" if process == os.getpid() else f" (process {process})"
