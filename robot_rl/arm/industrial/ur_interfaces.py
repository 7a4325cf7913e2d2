"""The interfaces of `ur_rtde`: imported late, and connected so that a failure is one line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from robot_rl.errors import ArmStoppedError, PluginError


def ur_libraries() -> SimpleNamespace:
    """Import the three modules of `ur_rtde`.

    Raises:
        PluginError: if it is not installed.
    """
    try:
        import dashboard_client
        import rtde_control
        import rtde_receive
    except ImportError as error:
        raise PluginError(f"the driver ur needs ur_rtde ({error}); install it: pip install 'robot_rl[ur]'") from error
    return SimpleNamespace(control=rtde_control, receive=rtde_receive, dashboard=dashboard_client)


def connected(connect: Callable[[], Any], what: str) -> Any:
    """Return the result of `connect`.

    Raises:
        ArmStoppedError: if it fails, naming which connection.
    """
    try:
        return connect()
    except RuntimeError as error:
        raise ArmStoppedError(
            f"the UR controller takes no connection for {what}: {' '.join(str(error).split())}; is remote control on, "
            "and no other program connected?"
        ) from error


def connected_again(interface: Any, what: str) -> None:
    """Connect an interface again: what it does by itself when it is cut off has to end first, or the two collide.

    Raises:
        ArmStoppedError: if it fails, naming which connection.
    """
    with contextlib.suppress(RuntimeError):  # there is nothing left to take leave of
        interface.disconnect()
    connected(interface.reconnect, what)
