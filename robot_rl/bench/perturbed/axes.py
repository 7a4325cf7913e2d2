"""The axes along which a world is changed, and how far; apart from the rest, so that `--help` waits for nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robot_rl.errors import UnknownNameError


@dataclass(frozen=True)
class Axis:
    """One way in which a world can differ.

    Attributes:
        name: Of a setting of `WorldConfig`.
        title: For people, with the unit.
        strengths: What is tried, in that unit.
        nominal: The value of the task's own world, in that unit.
        unit: Of one strength, in units of the setting.
        seen: Whether only a policy with cameras meets it.
    """

    name: str
    title: str
    strengths: tuple[float, ...]
    nominal: float = 0.0
    unit: float = 1.0
    seen: bool = False

    def setting(self, strength: float) -> str:
        """Return the setting, `key=value`."""
        return f"world.{self.name}={strength * self.unit!r}"


_DEGREE, _MILLI = math.radians(1.0), 1e-3
AXES = (
    Axis("clearance", "clearance [x]", (0.4, 0.6, 0.8), 1.0),
    Axis("friction", "friction [x]", (1.5, 2.0, 3.0), 1.0),
    Axis("tilt", "tilt [deg]", (1.0, 2.0, 3.0, 3.5), unit=_DEGREE),
    Axis("estimate_error", "error of the estimate [x]", (1.5, 2.0, 3.0), 1.0),
    Axis("wrench_bias", "bias of the force [N]", (2.0, 5.0, 10.0)),
    Axis("command_delay", "command delay [ms]", (25.0, 50.0, 100.0), unit=_MILLI),
    Axis("brightness", "light [x]", (0.4, 0.7, 1.5), 1.0, seen=True),
    Axis("camera_position", "camera displaced [mm]", (5.0, 10.0, 20.0), unit=_MILLI, seen=True),
    Axis("camera_rotation", "camera turned [deg]", (1.0, 2.0, 4.0), unit=_DEGREE, seen=True),
)


def chosen_axes(names: list[str]) -> tuple[Axis, ...]:
    """Return the axes of these names, in the order of `AXES`; without names all.

    Raises:
        UnknownNameError: if there is no such axis.
    """
    known = [axis.name for axis in AXES]
    for name in names:
        if name not in known:
            raise UnknownNameError("axis", name, known)
    return tuple(axis for axis in AXES if not names or axis.name in names)
