"""Faults that happen at stated times, so that a lab has seen each of them before its arm does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robot_rl.errors import ConfigError

KINDS = {
    "reflex": "a reflex stopped the arm",
    "freeze": "",
    "lost": "the connection to the arm is lost",
    "estop": "the emergency stop of the arm is pressed",
    "wrench": "",
    "clock": "",
    "pushed": "",
}
"""What each kind is called as a fault. The others are none, and nobody says why: for a while nothing is measured
(`freeze`), no forces are (`wrench`), the clock is set back (`clock`), or somebody pushes the arm away (`pushed`)."""
DURATION = 1.0
"""How long these last [s]."""
SET_BACK = 30.0
"""By how much the clock is set back [s]."""
PUSH = 0.4
"""How far the arm is pushed along x of the base [m]."""
PRESSED = 5.0
"""How long the emergency stop stays pressed; no consent ends it before [s]."""


@dataclass(frozen=True)
class PlannedFault:
    """A fault, and when it happens [s after the start]."""

    kind: str
    at: float


def read_schedule(texts: Sequence[str]) -> tuple[PlannedFault, ...]:
    """Read faults like `reflex@20`: of a kind, so many seconds after the start; returns them in the order of time.

    Raises:
        ConfigError: naming what is wrong and what is valid.
    """
    faults = []
    for text in texts:
        kind, mark, seconds = text.partition("@")
        try:
            at = float(seconds)
        except ValueError:
            at = -1.0
        if kind not in KINDS or not mark or not 0.0 <= at < float("inf"):
            raise ConfigError(
                f"fault {text!r}: must be KIND@SECONDS, e.g. reflex@20; kinds: {', '.join(sorted(KINDS))}"
            )
        faults.append(PlannedFault(kind, at))
    return tuple(sorted(faults, key=lambda fault: fault.at))
