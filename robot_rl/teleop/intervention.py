"""An intervention: what the operator at a device wants in one control step, as it travels between processes.

The device map is applied once, beside the device (`DeviceOperator`). The control loop executes an intervention as it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.env.action_mapping import AXES, GRIPPER_THRESHOLD
from robot_rl.env.robot_io import RobotState
from robot_rl.env.state_assembler import MAX_AHEAD
from robot_rl.env.task import Taken, TaskSpec
from robot_rl.errors import SpecError
from robot_rl.geometry import Pose

_MOST_AHEAD = round(MAX_AHEAD * NS_PER_S)


@dataclass(frozen=True, eq=False)
class Intervention:
    """An action of the operator.

    Attributes:
        stamp: When the device was read [ns].
        active: Whether the operator is in control.
        motion: Share in [-1, 1] of the task's largest motion, along x, y, z, roll, pitch, yaw of the tcp frame.
            float32, shape (6,).
        gripper: -1 closes, +1 opens, 0 leaves it as it is; a share of that where it is moved to any width.
        wrench: Share in [-1, 1] of the task's largest feed-forward wrench, along and about the same axes. Shape (6,).
    """

    stamp: int
    active: bool
    motion: np.ndarray
    gripper: float = 0.0
    wrench: np.ndarray = field(default_factory=lambda: np.zeros(6, np.float32))

    def __post_init__(self) -> None:
        """Check the motion and the gripper.

        Raises:
            SpecError: if motion or wrench is not six finite numbers, or the gripper not one in [-1, 1].
        """
        for name, values in (("motion", self.motion), ("wrench", self.wrench)):
            if values.shape != (6,) or not np.isfinite(values).all():
                raise SpecError(f"an intervention's {name} has to be six finite numbers, got {values.tolist()}")
        if not abs(self.gripper) <= 1.0:  # a NaN, too, is not
            raise SpecError(f"an intervention's gripper has to be in [-1, 1], got {self.gripper:g}")

    @classmethod
    def of_action(cls, stamp: int, action: np.ndarray | None, spec: TaskSpec) -> Intervention:
        """Return the intervention that carries an action; None makes one that leaves the policy in control.

        Args:
            stamp: When the device was read [ns].
            action: In the task's action space, shape (n,).
            spec: The task.
        """
        motion, wrench = np.zeros(6, np.float32), np.zeros(6, np.float32)
        if action is None:
            return cls(stamp, False, motion)
        axes, pushed = _entries(spec.action_axes), _entries(spec.wrench_axes)
        motion[axes] = action[: len(axes)]
        wrench[pushed] = action[len(axes) : len(axes) + len(pushed)]
        wanted = float(action[-1]) if spec.gripper else 0.0
        if not spec.gripper_step:
            wanted = float(wanted >= GRIPPER_THRESHOLD) - float(wanted <= -GRIPPER_THRESHOLD)
        return cls(stamp, True, motion, wanted, wrench)

    def action(self, spec: TaskSpec) -> np.ndarray:
        """Return it as an action of the task, float32, shape (n,)."""
        action = np.append(self.motion[_entries(spec.action_axes)], self.wrench[_entries(spec.wrench_axes)])
        return np.append(action, np.float32(self.gripper)) if spec.gripper else action


def _entries(axes: tuple[str, ...]) -> list[int]:
    return [AXES.index(axis) for axis in axes]


class InterventionOperator:
    """An `Operator` whose device is read in another process.

    While it demonstrates it is in control at every step: no intervention means to stay. One of the future does not
    count: it would lead for longer than the device lives.

    Args:
        spec: The task.
        newest: Returns the newest intervention, or None before the first.
        clock: Clock of the interventions' stamps.
        timeout: Age at which an intervention ends if no newer one arrives [s].
        on_reset: Called with the seed, and whether to demonstrate, when an episode starts.
    """

    def __init__(
        self,
        spec: TaskSpec,
        newest: Callable[[], Intervention | None],
        clock: Clock,
        timeout: float,
        on_reset: Callable[[int, bool], None] = lambda seed, demonstrate: None,
    ) -> None:
        self._spec, self._newest, self._clock = spec, newest, clock
        self._timeout, self._on_reset = round(timeout * NS_PER_S), on_reset
        self._demonstrate = False

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start a new episode."""
        self._demonstrate = demonstrate
        self._on_reset(seed, demonstrate)

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """Return this step's action, or None while the policy is left in control."""
        del state, T_base_reset  # the device map was applied beside the device
        newest, now = self._newest(), self._clock.now()
        if newest is None or not newest.active or not -_MOST_AHEAD <= now - newest.stamp <= self._timeout:
            return np.zeros(self._spec.action_size, np.float32) if self._demonstrate else None
        return newest.action(self._spec)


class SeveralInterventions:
    """The operator of several arms, each of whose devices is read in another process.

    Args:
        arms: Who leads each arm, by its name.
        on_reset: Called with the seed, and whether to demonstrate, when an episode starts.
    """

    def __init__(self, arms: Mapping[str, InterventionOperator], on_reset: Callable[[int, bool], None]) -> None:
        self._arms, self._on_reset = dict(arms), on_reset

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start a new episode."""
        for operator in self._arms.values():
            operator.reset(seed, demonstrate)
        self._on_reset(seed, demonstrate)

    def act(self, state: RobotState, T_base_reset: Pose) -> Taken | None:
        """Return the actions of the arms that are led in this step, or None while the policy is left in control."""
        acted = {name: operator.act(state, T_base_reset) for name, operator in self._arms.items()}
        return {name: action for name, action in acted.items() if action is not None} or None
