"""The address of an arm's controller, checked before a vendor's library waits for it."""

from __future__ import annotations

import socket

from robot_rl.errors import ArmStoppedError


def check_address(host: str, port: int, timeout: float, *, what: str) -> None:
    """Check that a controller takes connections there.

    Args:
        host: Name or address.
        port: TCP port that it listens on.
        timeout: Longest wait [s].
        what: Its kind, for the message.

    Raises:
        ArmStoppedError: if it does not, with the cure.
    """
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError as error:
        raise ArmStoppedError(
            f"no {what} answers at {host}:{port} ({error}); check the address, the cable, and that it is switched on"
        ) from error
