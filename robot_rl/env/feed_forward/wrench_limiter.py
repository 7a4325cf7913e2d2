"""Limits on the feed-forward wrench of commands: how much of it, and how fast it may grow.

It knows wrenches, times and limits; where the arm is, and what a command holds besides, is not its business.
"""

from __future__ import annotations

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.errors import CommandRefusedError

PARTS = ((slice(0, 3), "force", "N"), (slice(3, 6), "torque", "Nm"))
"""Of a wrench: which of its entries, their name and unit."""


class WrenchLimiter:
    """Holds the wrenches of one arm's commands to limits.

    Force and torque are each made smaller to their largest norm, in the same direction. From one command to the next
    each changes by at most that norm in `feedforward_rise`, and from nothing after a stop, and after a command that has
    expired. None is always allowed, at once.

    Args:
        config: The limits.
    """

    def __init__(self, config: CommandLimits) -> None:
        self._largest = {"force": config.max_feedforward_force, "torque": config.max_feedforward_torque}
        self._rise = config.feedforward_rise
        self._before, self._stamp, self._expires = np.zeros(6), -1, -1

    def rest(self, stamp: int) -> None:
        """Begin from nothing at this time [ns], as after a stop."""
        self._before, self._stamp = np.zeros(6), max(self._stamp, stamp)

    def check(self, wrench: np.ndarray | None) -> None:
        """Check that this arm may be commanded such a wrench.

        Raises:
            CommandRefusedError: if force or torque is commanded, and its limit is 0.
        """
        for part, name, unit in PARTS if wrench is not None else ():
            amount = float(np.linalg.norm(wrench[part]))  # type: ignore[index]
            if amount and not self._largest[name]:
                raise CommandRefusedError(
                    f"it has a feed-forward {name} of {amount:.3g} {unit}, and max_feedforward_{name} is 0: none is "
                    "allowed; set that limit where the arm's limits are, or use a task without wrench_axes"
                )

    def limit(self, wrench: np.ndarray | None, stamp: int, ttl: float) -> np.ndarray | None:
        """Return the wrench of the next command within the limits; the same object if it is.

        Args:
            wrench: It has passed `check`; shape (6,).
            stamp: Of its command [ns].
            ttl: How long that counts [s].
        """
        before = self._before if stamp < self._expires else np.zeros(6)
        share = 2.0 if self._stamp < 0 else min((stamp - self._stamp) / NS_PER_S / self._rise, 2.0)
        self._stamp, self._expires = stamp, stamp + round(ttl * NS_PER_S)
        if wrench is None:
            self._before = np.zeros(6)
            return None
        limited = wrench.copy()
        for part, name, _ in PARTS:
            largest = self._largest[name]
            limited[part] = _shortened(limited[part], largest)
            limited[part] = before[part] + _shortened(limited[part] - before[part], share * largest)
        self._before = limited
        return wrench if np.allclose(limited, wrench, rtol=0.0, atol=1e-9) else limited


def _shortened(vector: np.ndarray, length: float) -> np.ndarray:
    """Return the vector, in the same direction, and no longer than that."""
    norm = float(np.linalg.norm(vector))
    return vector if norm <= length else vector * (length / norm)
