"""The hand of a Franka: it goes to the newest width and is measured, in threads of its own.

A motion of the hand takes half a second and more, and franky's `move_async` waits until the one before has ended, for
ever if the hand never says so. Whoever controls the arm must not wait for that.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from robot_rl.arm.control_thread import ControlThread
from robot_rl.errors import ArmStoppedError

RATE = 10.0
"""Of the measured width [Hz]."""
STROKE = 0.08
"""Of the fingers [m]."""
SPARE = 3.0
"""How much longer than its stroke a motion may take [s]."""
SAME_WIDTH = 1e-3
"""Difference of two widths below which the hand is not moved again [m]: each motion takes half a second."""


class FrankaHand:
    """A connected hand.

    Args:
        gripper: franky's.
        speed: Of the fingers [m/s].
        errors: What the gripper raises.
        problem: Told what it refuses.
    """

    def __init__(
        self, gripper: Any, speed: float, errors: tuple[type[Exception], ...], problem: Callable[[str], None]
    ) -> None:
        self._gripper, self._speed, self._errors, self._problem = gripper, speed, errors, problem
        self._limit = STROKE / speed + SPARE
        self._changed = threading.Condition()
        self._wanted: float | None = None
        self._sent: float | None = None
        self._began: float | None = None  # the motion under way [s]
        self._is_closed = self._is_silent = False
        self.width = 0.0
        """Between the fingers, as measured last [m]."""
        self._reading = ControlThread("franka hand", RATE, self._read)
        self._moving = threading.Thread(target=self._move, name="franka hand's motions", daemon=True)

    @property
    def version(self) -> int:
        """Of the hand's own system."""
        return int(self._gripper.server_version)

    def start(self) -> None:
        """Begin to measure and to move it."""
        self._reading.start()
        self._moving.start()

    def move(self, width: float) -> None:
        """Set the width [m]; return at once. A motion under way ends first; the newest of the widths is next."""
        with self._changed:
            self._wanted = width
            self._changed.notify()

    def fault(self) -> str | None:
        """Return why it would not obey now; it stays until `recover`."""
        began = self._began
        if began is not None and time.monotonic() - began > self._limit:
            self._is_silent = True
        if not self._is_silent:
            return None
        return (
            f"the Franka Hand has not ended a motion for {self._limit:.0f} s; free its fingers and look at it in Desk, "
            "then consent"
        )

    def recover(self) -> None:
        """End the motion of a hand that has not; it then waits for the next width.

        Raises:
            ArmStoppedError: if it does not answer.
        """
        threading.Thread(target=self._stop, name="franka hand's end", daemon=True).start()  # may never return
        end = time.monotonic() + SPARE
        while self._began is not None:
            if time.monotonic() > end:
                raise ArmStoppedError(
                    "the Franka Hand does not answer; look at it in Desk, then consent again, or start the program anew"
                )
            time.sleep(0.02)
        with self._changed:  # what was commanded before is not done now, where a person may have their fingers
            self._wanted, self._is_silent = None, False

    def close(self) -> None:
        """Let it go; it keeps what it holds. A motion that never ends keeps the connection."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._reading.close()
        if self._moving.is_alive():
            self._moving.join(self._limit - SPARE)

    def _read(self) -> None:
        with contextlib.suppress(*self._errors):  # a connection that is lost is named by the arm's own state
            self.width = float(self._gripper.width)

    def _move(self) -> None:
        while (width := self._next()) is not None:
            try:
                self._gripper.move(width, self._speed)
            except self._errors as error:
                self._problem(f"the Franka Hand refuses a width of {width:.3f} m: {error}")
            self._began = None

    def _stop(self) -> None:
        with contextlib.suppress(*self._errors):
            self._gripper.stop()

    def _next(self) -> float | None:
        """Wait for another width, and return it; None once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_other())
            if self._is_closed:
                return None
            self._sent, self._began = self._wanted, time.monotonic()
            return self._sent

    def _is_other(self) -> bool:
        if self._wanted is None or self._is_silent:
            return False
        return self._sent is None or abs(self._wanted - self._sent) >= SAME_WIDTH
