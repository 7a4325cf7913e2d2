"""A terminal's keyboard.

A terminal tells only that a key was pressed, not that it was let go, so a press counts for a moment and the terminal's
own repetition prolongs it. The operator console's keyboard is better: it knows both.
"""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Mapping

import numpy as np

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.teleop.device import DeviceError, DeviceLostError, Reading

FIRST, REPEAT = 0.35, 0.15
"""How long the first press counts [s], as terminals wait before they repeat; and each repetition."""

_MOTION: Mapping[str, tuple[str, float]] = {
    "w": ("x", 1.0),
    "s": ("x", -1.0),
    "a": ("y", 1.0),
    "d": ("y", -1.0),
    "e": ("z", 1.0),
    "q": ("z", -1.0),
    "j": ("yaw", 1.0),
    "l": ("yaw", -1.0),
}
_BUTTONS = ("o", "p", "v", "enter", "y", "n", "x", "tab")
_NAMES = {"\n": "enter", "\t": "tab"}


class TerminalKeyboard:
    """The keyboard of the terminal that this process runs in. `close` leaves the terminal as it was.

    Args:
        descriptor: Of the terminal; None takes standard input.
        clock: Where time comes from.

    Raises:
        DeviceError: if that is no terminal.
    """

    kind = name = "keyboard"
    axes = ("x", "y", "z", "yaw")
    buttons = _BUTTONS

    def __init__(self, descriptor: int | None = None, clock: Clock | None = None) -> None:
        self._fd = sys.stdin.fileno() if descriptor is None else descriptor
        self._clock = clock or SystemClock()
        if not os.isatty(self._fd):
            raise DeviceError("the keyboard needs a terminal, and standard input is none; use another device")
        self._until: dict[str, int] = {}
        self._stamp = self._clock.now()
        self._before: list[object] | None = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)

    def read(self) -> Reading:
        """Which keys count as pressed now.

        Raises:
            DeviceLostError: if the terminal is gone.
        """
        now = self._clock.now()
        try:
            for key in self._typed():
                held = self._until.get(key, 0) > now
                self._until[key] = now + round((REPEAT if held else FIRST) * NS_PER_S)
                self._stamp = now
        except OSError as error:
            raise DeviceLostError("the terminal is gone") from error
        down = {key for key, until in self._until.items() if until > now}
        axes = np.zeros(len(self.axes))
        for key in down & _MOTION.keys():
            axis, value = _MOTION[key]
            axes[self.axes.index(axis)] += value
        return Reading(self._stamp, axes, tuple(button in down for button in self.buttons))

    def close(self) -> None:
        """Leaves the terminal as it was."""
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
            self._before = None

    def _typed(self) -> list[str]:
        """Keys that were typed since the last look."""
        before = os.get_blocking(self._fd)
        os.set_blocking(self._fd, False)
        try:
            text = os.read(self._fd, 256).decode(errors="ignore")
        except BlockingIOError:
            text = ""
        finally:
            os.set_blocking(self._fd, before)
        return [_NAMES.get(key, key.lower()) for key in text]
