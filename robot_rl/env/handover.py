"""Control changes hands without a jump: the commanded velocity moves from one's to the other's at a bounded rate.

It depends on actions and their scale only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_rl.env.action_mapping import AXES
from robot_rl.env.task import TaskSpec


@dataclass(frozen=True)
class HandoverLimits:
    """Limits of the change of the commanded velocity when control changes hands.

    Attributes:
        linear: Largest acceleration [m/s^2]. At 0.5, from full speed one way (0.1 m/s) to the other takes 0.4 s.
        angular: Largest angular acceleration [rad/s^2].
        force: Largest change of a feed-forward force [N/s].
        torque: Largest change of a feed-forward torque [Nm/s].
    """

    linear: float = 0.5
    angular: float = 3.0
    force: float = 100.0
    torque: float = 10.0


class Handover:
    """Limits what is executed from the step at which control changes hands until it has caught up with what is wanted.

    The commanded velocity is the action's displacement per control period. Linear and angular part are each moved
    straight towards what is wanted, by at most `limit * period` a step; so are force and torque of a feed-forward
    wrench. The gripper is not blended.

    Args:
        spec: The task: its action axes, their scale, and the control period.
        limits: How fast.
    """

    def __init__(self, spec: TaskSpec, limits: HandoverLimits) -> None:
        index = np.array([AXES.index(axis) for axis in spec.action_axes])
        pushed, period = np.array([AXES.index(axis) for axis in spec.wrench_axes]), spec.control_period
        squared = period**2
        self._parts = [
            (np.flatnonzero(index < 3), limits.linear * squared / spec.action_translation),
            (np.flatnonzero(index >= 3), limits.angular * squared / spec.action_rotation),
        ]
        if spec.action_force:
            self._parts.append((len(index) + np.flatnonzero(pushed < 3), limits.force * period / spec.action_force))
        if spec.action_torque:
            self._parts.append((len(index) + np.flatnonzero(pushed >= 3), limits.torque * period / spec.action_torque))
        self._size = spec.action_size
        self.reset()

    def reset(self) -> None:
        """Start an episode, with the arm at rest and the policy in control."""
        self._executed = np.zeros(self._size, np.float32)
        self._led_by_operator = False
        self.blending = False
        """Whether what is executed still differs from what is wanted."""

    def blend(self, wanted: np.ndarray, *, led_by_operator: bool) -> np.ndarray:
        """Return the action that is executed in this step.

        Args:
            wanted: Action of who is in control, shape (n,).
            led_by_operator: Whether that is the operator.
        """
        if led_by_operator != self._led_by_operator:
            self._led_by_operator, self.blending = led_by_operator, True
        executed = wanted
        if self.blending:
            executed, self.blending = self._towards(wanted)
        self._executed = executed
        return executed

    def _towards(self, wanted: np.ndarray) -> tuple[np.ndarray, bool]:
        executed, limited = wanted.copy(), False
        for part, largest in self._parts:
            change = wanted[part] - self._executed[part]
            length = float(np.linalg.norm(change))
            if length > largest:
                executed[part] = self._executed[part] + change * np.float32(largest / length)
                limited = True
        return executed, limited
