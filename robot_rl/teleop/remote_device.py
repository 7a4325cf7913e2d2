"""The operator at a device, near or far: what it says at each moment, and what that means for a step.

It knows motions, buttons and their age; it does not know the device or how its messages travel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.config.nodes import TeleopNodeConfig
from robot_rl.env.action_mapping import AXES
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError, SpecError
from robot_rl.geometry import Pose


@dataclass(frozen=True, eq=False)
class Intervention:
    """What the operator's device says.

    Attributes:
        stamp: When [ns].
        active: Whether the operator is in control.
        motion: Deflection in [-1, 1] along x, y, z, roll, pitch, yaw of the tcp frame. Shape (6,).
        gripper: -1 closes, +1 opens, 0 leaves it as it is.
    """

    stamp: int
    active: bool
    motion: np.ndarray
    gripper: float = 0.0

    def __post_init__(self) -> None:
        """Refuses what no device says.

        Raises:
            SpecError: if the motion is not six finite numbers.
        """
        if self.motion.shape != (6,) or not np.isfinite(self.motion).all():
            raise SpecError(f"an intervention's motion has to be six finite numbers, got {self.motion.tolist()}")


class TeleopMapping:
    """From the axes and buttons of a device to an intervention.

    Args:
        config: Which axis and which button is what.

    Raises:
        ConfigError: if it does not name six axes and six factors.
    """

    def __init__(self, config: TeleopNodeConfig) -> None:
        if not len(config.axes) == len(config.scale) == 6:
            raise ConfigError("axes and scale need six entries each: x, y, z, roll, pitch, yaw")
        self._config = config

    def of_device(self, stamp: int, axes: np.ndarray, buttons: tuple[int, ...]) -> Intervention:
        """The intervention for axes in [-1, 1] and buttons that are 1 while held down.

        Raises:
            SpecError: if the device has fewer axes or buttons than the mapping names, or an axis is not finite.
        """
        c = self._config
        named = (c.take_over_button, c.close_button, c.open_button)
        if max(c.axes) >= len(axes) or c.take_over_button >= len(buttons):
            raise SpecError(
                f"the device has {len(axes)} axes and {len(buttons)} buttons; the mapping names axes {list(c.axes)} "
                f"and button {c.take_over_button}"
            )
        held = [button < len(buttons) and bool(buttons[button]) for button in named]
        motion = np.asarray(axes, np.float32)[list(c.axes)] * np.asarray(c.scale, np.float32)
        motion = np.where(np.abs(motion) > c.deadband, motion, np.float32(0.0))
        return Intervention(stamp, held[0], np.clip(motion, -1.0, 1.0), float(held[2]) - float(held[1]))

    def of_twist(self, stamp: int, twist: np.ndarray) -> Intervention:
        """The intervention for a wanted twist in the tcp frame [m/s, rad/s]; while it is not zero, it is one.

        Raises:
            SpecError: if it is not finite.
        """
        full = np.repeat((self._config.twist_speed, self._config.twist_turn_rate), 3)
        motion = np.clip(np.asarray(twist, np.float32) / full, -1.0, 1.0)
        return Intervention(stamp, bool(np.abs(motion).max() > self._config.deadband), motion)


class TeleopOperator:
    """An `Operator` whose device is somewhere else.

    While it demonstrates it is in control at every step: no deflection means to stay.

    Args:
        spec: The task: its action axes and whether there is a gripper.
        newest: Tells the newest intervention, or None before the first.
        clock: Whose time the interventions are stamped with.
        timeout: Age at which an intervention ends if no more of it arrives [s].
        on_reset: Told the seed and whether to demonstrate when an episode starts.
    """

    def __init__(
        self,
        spec: TaskSpec,
        newest: Callable[[], Intervention | None],
        clock: Clock,
        timeout: float,
        on_reset: Callable[[int, bool], None],
    ) -> None:
        self._axes = [AXES.index(axis) for axis in spec.action_axes]
        self._gripper, self._newest, self._clock = spec.gripper, newest, clock
        self._timeout, self._on_reset = round(timeout * NS_PER_S), on_reset
        self._demonstrate = False

    def reset(self, seed: int, demonstrate: bool) -> None:
        """A new episode starts."""
        self._demonstrate = demonstrate
        self._on_reset(seed, demonstrate)

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """This step's action, or None while the policy is left in control."""
        del state, T_base_reset  # the operator sees for itself
        newest = self._newest()
        if newest is None or not newest.active or self._clock.now() - newest.stamp > self._timeout:
            return np.zeros(len(self._axes) + self._gripper, np.float32) if self._demonstrate else None
        motion = newest.motion[self._axes]
        return np.append(motion, np.float32(newest.gripper)) if self._gripper else motion


def as_device(spec: TaskSpec, action: np.ndarray | None) -> tuple[np.ndarray, tuple[int, int, int]]:
    """An action as the six axes and three buttons (take over, close, open) of a device; the inverse of acting on it."""
    motion = np.zeros(6, np.float32)
    if action is None:
        return motion, (0, 0, 0)
    axes = [AXES.index(axis) for axis in spec.action_axes]
    motion[axes] = action[: len(axes)]
    gripper = float(action[-1]) if spec.gripper else 0.0
    return motion, (1, int(gripper <= -0.5), int(gripper >= 0.5))
