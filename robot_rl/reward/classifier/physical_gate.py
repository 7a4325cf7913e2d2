"""Physical gates: conditions on the robot's state without which no success counts, e.g. that the tcp is low enough.

They refer to the recorded observation, so that they mean the same in a recording and while the robot moves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_rl.data.schema import STATE_PREFIX
from robot_rl.errors import ConfigError

_FORM = re.compile(r"\s*(state/\w+)\s*\[(\d+)\]\s*(<=|>=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*")


@dataclass(frozen=True)
class PhysicalGate:
    """One element of the observation on one side of a bound.

    Attributes:
        key: Of the observation, e.g. `state/tcp_pose` (relative to the pose at reset).
        index: Of the element.
        below: Whether it has to be at most the bound, or at least.
        bound: In the unit of the element.
    """

    key: str
    index: int
    below: bool
    bound: float

    def __str__(self) -> str:
        """Return the text that `parse_gate` reads."""
        return f"{self.key}[{self.index}] {'<=' if self.below else '>='} {self.bound:g}"

    def open(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return whether the gate is open, of R observations, arrays of shape (R, n); shape (R,).

        Raises:
            ConfigError: if there is no such element.
        """
        return self.passes(self.value(observations))

    def passes(self, values: np.ndarray) -> np.ndarray:
        """Return whether each of these values of the element is on the right side of the bound, shape as given."""
        found: np.ndarray = values <= self.bound if self.below else values >= self.bound
        return found

    def value(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the element, of R observations, shape (R,).

        Raises:
            ConfigError: if there is no such element.
        """
        values = observations.get(self.key)
        if values is None or self.index >= values.shape[-1]:
            states = sorted(f"{key}[0-{v.shape[-1] - 1}]" for key, v in observations.items() if key.startswith("state"))
            raise ConfigError(f"gate {self}: no such element of the observation; there are {', '.join(states)}")
        element: np.ndarray = values[..., self.index]
        return element


def parse_gate(text: str) -> PhysicalGate:
    """Parse a gate, e.g. `state/tcp_pose[2] >= 0.058`.

    Raises:
        ConfigError: if the text is no gate.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"gate {text!r}: expected {STATE_PREFIX}<name>[<index>] <= <number>, or >=, "
            "e.g. 'state/tcp_pose[2] >= 0.058'"
        )
    key, index, sign, bound = match.groups()
    return PhysicalGate(key, int(index), sign == "<=", float(bound))


def all_open(gates: tuple[PhysicalGate, ...], observations: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
    """Return whether all gates are open, shape (rows,)."""
    found = np.ones(rows, bool)
    for gate in gates:
        found &= gate.open(observations)
    return found
