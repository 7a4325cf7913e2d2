"""What a check found: a verdict, the number behind it, its limit, and the cure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from robot_rl.system.printable import one_line

Severity = Literal["ok", "note", "fault"]
"""`fault`: to be cured before an arm moves. `note`: works, but worse than it could, or not known."""
SEVERITIES: tuple[Severity, ...] = ("fault", "note", "ok")
"""In the order in which people read them."""

_CREDENTIALS = (
    (re.compile(r"(?<=://)[^/@\s]+(?=@)"), "***"),  # rtsp://user:password@camera
    (re.compile(r"(?i)\b(\w*(?:token|password|passwd|secret|api_?key)\w*\s*[=:]\s*)[^\s,;&'\"]+"), r"\1***"),
)


@dataclass(frozen=True)
class CheckResult:
    """What one check found about one thing.

    Attributes:
        name: Of the check and, where there are several, of the thing: `serial port /dev/ttyUSB0`.
        severity: See `Severity`.
        text: What was found, and what follows from it, for people.
        value: The number behind it; None if there is none.
        unit: Of `value`.
        limit: Which value is good, e.g. `at most 2 ms`.
        cure: A command, or what a person has to do; empty where there is nothing to do.
        histogram: Counts by bin, for quantities with a distribution: (label of the bin, count).
    """

    name: str
    severity: Severity
    text: str
    value: float | None = None
    unit: str = ""
    limit: str = ""
    cure: str = ""
    histogram: tuple[tuple[str, int], ...] = ()

    def row(self) -> dict[str, Any]:
        """Return it as plain values, without credentials."""
        row = asdict(self) | {"histogram": [list(entry) for entry in self.histogram]}
        return {key: without_credentials(value) if isinstance(value, str) else value for key, value in row.items()}


def without_credentials(text: str) -> str:
    """Return a text on one line with `***` for passwords, tokens and keys, as a report is sent to others."""
    for pattern, instead in _CREDENTIALS:
        text = pattern.sub(instead, text)
    return one_line(text)


def worst(results: Iterable[CheckResult]) -> Severity:
    """Return the worst severity; `ok` for none."""
    found = {result.severity for result in results}
    return next((severity for severity in SEVERITIES if severity in found), "ok")


def judged(value: float, note_above: float, fault_above: float) -> Severity:
    """Return the severity of a value of which less is better."""
    return "fault" if value > fault_above else "note" if value > note_above else "ok"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
