"""Settings that change while a run trains: a number, or a mapping from env steps to numbers.

`{0: 3e-4, 20000: 1e-4}` is 3e-4 at the start and 1e-4 from step 20,000 on, linear in between. Two neighbouring steps
make a jump, `{0: 3e-4, 19999: 3e-4, 20000: 1e-4}`. Whole numbers are not interpolated: each holds up to the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import core_schema

Rate = float | dict[int, float]
"""A real number, or its schedule."""
Count = int | dict[int, int]
"""A whole number, or its schedule."""


@dataclass(frozen=True)
class Scheduled:
    """Constraint of a setting that may be a schedule, for its annotation.

    Attributes:
        whole: Whether its numbers are whole.
        gt: They are greater than this; None sets no bound.
        ge: They are at least this; None sets no bound.
        le: They are at most this; None sets no bound.
        optional: Whether it may be null.
    """

    whole: bool = False
    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    optional: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Have pydantic check values by `check`."""
        return core_schema.no_info_plain_validator_function(self.check)

    def check(self, value: Any) -> Any:
        """Return a valid value, the steps of a schedule as ascending whole numbers.

        Raises:
            ValueError: with what it should be.
        """
        if value is None and self.optional:
            return None
        if not isinstance(value, Mapping):
            return self._number(value, "")
        points = {_step(step): self._number(number, f" at step {step}") for step, number in value.items()}
        if 0 not in points or len(points) < len(value):
            raise ValueError("should have a value at step 0, and one at each other step")
        return dict(sorted(points.items()))

    def _number(self, value: Any, where: str) -> float | int:
        kinds, name = (int, "a whole number") if self.whole else (int | float, "a number")
        if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
            raise ValueError(f"should be {name}{where}, or a schedule of them, e.g. {{0: 2, 5000: 1}}")
        if self.gt is not None and not value > self.gt:
            raise ValueError(f"should be greater than {self.gt:g}{where}")
        if self.ge is not None and not value >= self.ge:
            raise ValueError(f"should be greater than or equal to {self.ge:g}{where}")
        if self.le is not None and not value <= self.le:
            raise ValueError(f"should be less than or equal to {self.le:g}{where}")
        return int(value) if self.whole else float(value)


def _step(step: Any) -> int:
    number = int(step) if isinstance(step, str) and step.isdecimal() else step  # JSON knows no other keys than text
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"should have env steps as keys, whole numbers of at least 0, not {step!r}")
    return number


def value_at(setting: Rate, env_steps: int) -> float:
    """Return a real setting after so many env steps: linear between the points of a schedule, then constant."""
    if not isinstance(setting, dict):
        return setting
    return float(np.interp(env_steps, list(setting), list(setting.values())))


def held_at(setting: Count, env_steps: int) -> int:
    """Return a whole setting after so many env steps: that of the newest point of a schedule."""
    if not isinstance(setting, dict):
        return setting
    return setting[max(step for step in setting if step <= env_steps)]
