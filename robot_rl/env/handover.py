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
        rise: Shortest time in which feed-forward force and torque grow from none to the task's largest [s].
    """

    linear: float = 0.5
    angular: float = 3.0
    rise: float = 0.2


class Handover:
    """Limits what is executed from the step at which control changes hands until it has caught up with what is wanted.

    The commanded velocity is the action's displacement per control period. Linear and angular part are each moved
    straight towards what is wanted, by at most `limit * period` a step. Force and torque of a feed-forward wrench only
    grow that way: a push that is not wanted any more ends at once, as it may be why somebody took over. The gripper is
    not blended.

    Args:
        spec: The task: its action axes, their scale, and the control period.
        limits: How fast.
    """

    def __init__(self, spec: TaskSpec, limits: HandoverLimits) -> None:
        index = np.array([AXES.index(axis) for axis in spec.action_axes])
        pushed, squared = np.array([AXES.index(axis) for axis in spec.wrench_axes]), spec.control_period**2
        self._moved = [
            (np.flatnonzero(index < 3), limits.linear * squared / spec.action_translation),
            (np.flatnonzero(index >= 3), limits.angular * squared / spec.action_rotation),
        ]
        self._pushed = [len(index) + np.flatnonzero(part) for part in (pushed < 3, pushed >= 3) if part.any()]
        self._rise = spec.control_period / limits.rise
        self._size = spec.action_size
        self.reset()

    def reset(self) -> None:
        """Start an episode, with the arm at rest and the policy in control."""
        self._executed = np.zeros(self._size, np.float32)
        self._led_by_operator = False
        self._steps = 0
        self.blending = False
        """Whether what is executed still differs from what is wanted."""

    def blend(self, wanted: np.ndarray, *, led_by_operator: bool) -> np.ndarray:
        """Return the action that is executed in this step.

        Args:
            wanted: Action of who is in control, shape (n,).
            led_by_operator: Whether that is the operator.
        """
        if led_by_operator != self._led_by_operator:
            self._led_by_operator, self.blending, self._steps = led_by_operator, True, 0
        executed = wanted
        if self.blending:
            executed, self.blending = self._towards(wanted)
        self._executed = executed
        return executed

    def _towards(self, wanted: np.ndarray) -> tuple[np.ndarray, bool]:
        self._steps += 1
        executed = wanted.copy()
        limited = [self._change(executed, part, self._executed[part], largest) for part, largest in self._moved]
        # A push changes from what is still wanted of it, and may change ever faster, as the signs of one may alternate.
        for part in self._pushed:
            before, aim = self._executed[part], wanted[part]
            kept = np.clip(before @ aim / max(float(before @ before), 1e-12), 0.0, 1.0)
            limited.append(self._change(executed, part, before * np.float32(kept), self._steps * self._rise))
        return executed, any(limited)

    @staticmethod
    def _change(executed: np.ndarray, part: np.ndarray, before: np.ndarray, largest: float) -> bool:
        """Bring a part of an action nearer to what it was; return whether that was needed."""
        change = executed[part] - before
        length = float(np.linalg.norm(change))
        if length > largest:
            executed[part] = before + change * np.float32(largest / length)
        return length > largest
