"""The goal of a task that the arm judges itself: a point, usually near the start, that the tcp has to reach and keep.

It knows where the tcp is measured and nothing of how that arrives, so it judges in one process (`GoalTask`) and behind
topics (`task_node`) alike.
"""

from __future__ import annotations

import numpy as np
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import STRICT, Positive, PositiveReal, Real
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.action_mapping import AXES
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate
from robot_rl.spec import ArraySpec

TARGET = "state/target"
"""What is observed of it."""
TARGET_SPEC = ArraySpec((3,), unit="m", scale=0.02)
"""The goal in the tcp frame."""


@dataclass(frozen=True, config=STRICT)
class GoalConfig:
    """The distribution of the goal, and when the tcp is there."""

    spread: tuple[Real, Real, Real] = (0.04, 0.04, 0.04)
    """Largest distance of the goal from its centre along each axis of the base [m]."""
    tolerance: PositiveReal = 0.008
    """Distance of the tcp below which it is at the goal [m]."""
    steps: Positive = 2
    """Steps in a row for which it has to be there."""
    centre: tuple[Real, ...] = ()
    """x, y, z in the base frame around which it is drawn [m]; none: where the arm is at the start of the episode."""


class Goal:
    """Draws a point for each episode, and judges each step by where the tcp is.

    Args:
        config: Its distribution, and when it is reached.
    """

    def __init__(self, config: GoalConfig) -> None:
        self._config = config
        self.point = np.zeros(3)
        """In the base frame [m]."""
        self._held = 0

    def draw(self, seed: int, T_base_tcp: Pose) -> None:
        """Draw it around its centre, or where the arm is; the same seed gives the same offset."""
        offset = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 3) * np.array(self._config.spread)
        centre = np.array(self._config.centre) if self._config.centre else T_base_tcp.position
        self.point, self._held = centre + offset, 0

    def seen_from(self, T_base_tcp: Pose) -> np.ndarray:
        """Return it in the tcp frame [m], shape (3,)."""
        return quat_rotate(quat_conjugate(T_base_tcp.quaternion), self.point - T_base_tcp.position)

    def judge(self, T_base_tcp: Pose) -> Outcome:
        """Judge a step by the pose after it; success once the tcp has been at the goal for some steps."""
        distance = float(np.linalg.norm(T_base_tcp.position - self.point))
        self._held = self._held + 1 if distance <= self._config.tolerance else 0
        success = self._held >= self._config.steps
        return Outcome(success, success_reward(success), metrics={"distance": distance})

    def towards(self, T_base_tcp: Pose, spec: TaskSpec) -> np.ndarray:
        """Return the action straight towards it, at most a full one in each axis that the policy moves."""
        way = self.seen_from(T_base_tcp) / spec.action_translation
        action = np.zeros(spec.action_size, np.float32)
        for number, axis in enumerate(spec.action_axes):
            if axis in AXES[:3]:
                action[number] = np.clip(way[AXES.index(axis)], -1.0, 1.0)
        return action
