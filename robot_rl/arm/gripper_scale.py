"""What a gripper's controller counts in, and the width between its fingers."""

from __future__ import annotations

from dataclasses import dataclass

from robot_rl.errors import ConfigError


@dataclass(frozen=True)
class GripperScale:
    """A straight line from the controller's values to widths.

    Attributes:
        closed: The controller's value when closed.
        opened: And when open.
        width: Between the open fingers [m].

    Raises:
        ConfigError: if it is no line.
    """

    closed: float
    opened: float
    width: float

    def __post_init__(self) -> None:
        """Refuses a line without a slope."""
        if self.closed == self.opened or self.width <= 0:
            raise ConfigError(
                f"gripper_closed ({self.closed:g}) and gripper_opened ({self.opened:g}) have to differ, and "
                f"gripper_width ({self.width:g} m) has to be positive"
            )

    def value_of(self, width: float) -> float:
        """Return the controller's value for a width [m], clamped to the range of the gripper."""
        share = min(max(width / self.width, 0.0), 1.0)
        return self.closed + share * (self.opened - self.closed)

    def width_of(self, value: float) -> float:
        """Return the width [m] at a value of the controller."""
        return (value - self.closed) / (self.opened - self.closed) * self.width
