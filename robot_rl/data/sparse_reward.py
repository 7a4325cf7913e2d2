"""The sparse reward: what a success is worth, where in an episode it is given, and stages on the way to it.

This is the only place that turns success into reward. Tasks, operators, classifiers, labels and imported data all call
it. It lies below `robot_rl.env` and `robot_rl.reward`, because both of them and the stores use it.
"""

from __future__ import annotations

import numpy as np

SUCCESS_REWARD = 1.0
"""Reward of a step that leads to success, unless a task has another one."""


def success_reward(success: bool, value: float = SUCCESS_REWARD) -> float:
    """Return the reward of a step: `value` if the task is done after it, else 0.

    Args:
        success: Whether the task is done after the step.
        value: Reward of a success; the upper end of `TaskSpec.return_range`.
    """
    return value if success else 0.0


def sparse_reward(steps: int, success: bool) -> np.ndarray:
    """Return the rewards of an episode: those of a success at its last step, 0 before; shape (steps,), float32."""
    reward = np.zeros(steps, np.float32)
    reward[-1] = success_reward(success)
    return reward


IS = "is_"
"""Beginning of the metrics of a task that are 1 where one of its stages is so, and else 0."""


def stage_metrics(**stages: bool) -> dict[str, float]:
    """Return the metrics of a task for the stages that it judges, `TaskSpec.stages`, by whether they are so."""
    return {f"{IS}{name}": float(so) for name, so in stages.items()}
