"""The interfaces of `ur_rtde`: imported late, and connected so that a failure is one line."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import SimpleNamespace
from typing import Any

from robot_rl.errors import ArmStoppedError, PluginError

CALL_TIME = 10.0
"""Longest time of a call; to connect, the slowest, takes up to 6 s [s]."""


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


class Calls:
    """Calls of the interfaces, one at a time, each given up after a while.

    `ur_rtde` waits up to 300 s for an answer that was lost with the connection; nobody else may wait with it. A call
    that was given up goes on in its thread, and until it returns no other one is made: two would collide.

    Args:
        seconds: Longest time of a call [s].
    """

    def __init__(self, seconds: float = CALL_TIME) -> None:
        self._seconds = seconds
        self._what, self._answer = "", Future[Any]()
        self._answer.set_result(None)

    def __call__(self, call: Callable[[], Any], what: str) -> Any:
        """Return what a call returns.

        Raises:
            ArmStoppedError: if it takes too long, or an earlier one still does, naming what is waited for.
        """
        if self._answer.done():
            answer: Future[Any] = Future()
            self._what, self._answer = what, answer

            def make() -> None:
                try:
                    answer.set_result(call())
                except Exception as error:  # noqa: BLE001  (who waits raises it)
                    answer.set_exception(error)

            threading.Thread(target=make, name=f"ur: {what}", daemon=True).start()
            if wait([answer], self._seconds).done:
                return answer.result()
        raise ArmStoppedError(
            f"the UR controller has not answered within {self._seconds:g} s: {self._what}; check its cable, then "
            "consent again"
        )

    @property
    def is_stuck(self) -> bool:
        """Whether a call was given up that still goes on: then none is made any more."""
        return not self._answer.done()


def connected(calls: Calls, connect: Callable[[], Any], what: str) -> Any:
    """Return the result of `connect`.

    Raises:
        ArmStoppedError: if it fails, naming which connection.
    """
    try:
        return calls(connect, f"the connection for {what}")
    except RuntimeError as error:
        raise ArmStoppedError(
            f"the UR controller takes no connection for {what}: {' '.join(str(error).split())}; check its cable; is "
            "remote control on, and no other program connected?"
        ) from error


def connected_again(calls: Calls, interface: Any, what: str) -> None:
    """Connect an interface again: what it does by itself when it is cut off has to end first, or the two collide.

    Raises:
        ArmStoppedError: if it fails, naming which connection.
    """
    with contextlib.suppress(RuntimeError):  # there is nothing left to take leave of
        calls(interface.disconnect, f"the end of the connection for {what}")
    connected(calls, interface.reconnect, what)
