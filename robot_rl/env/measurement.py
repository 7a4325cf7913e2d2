"""What every measurement has to be, wherever it arrives: newer than the last, not from the future, and finite."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robot_rl.clock import NS_PER_S

MAX_AHEAD = 0.02
"""How far a stamp may lie in the future [s], since two machines' clocks are never quite the same."""


def measurement_fault(
    stamp: int, newest: int, values: Iterable[np.ndarray], now: int | None = None, max_ahead: float = MAX_AHEAD
) -> str | None:
    """What is wrong with a measurement, to be read behind "its"; None if nothing is.

    Args:
        stamp: When it was measured [ns].
        newest: Stamp of the one before [ns]; -1 if there was none.
        values: What was measured.
        now: Time [ns]; None where time is only known from what is measured.
        max_ahead: How far the stamp may lie in the future [s].
    """
    if stamp <= newest:
        return "stamp does not rise: a clock was set back, or two nodes publish it"
    if now is not None and stamp - now > max_ahead * NS_PER_S:
        return "stamp lies in the future: the clocks of the machines differ"
    if not all(np.isfinite(array).all() for array in values):
        return "value has a NaN or an infinity"
    return None
