"""A scripted expert of gymnasium-robotics' FetchPickAndPlace: over the block, down, close, to the goal.

It is loaded in the interpreter of the environment, so it needs numpy alone and imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 0.05
"""Displacement of the hand that an action of 1 asks for [m]."""
LAG = 0.5
"""Share of that displacement which the hand has made a step later."""
OPEN, CLOSE = 1.0, -1.0
"""Last entry of an action."""
ABOVE = 0.05
"""Height over the block at which the hand is brought above it [m]."""
HELD = 0.06
"""Distance of the fingers below which they hold the block, which is 5 cm wide [m]."""


def make_pick_and_place(env: Any) -> Callable[[Any], np.ndarray]:
    """Return the expert; it reads the observation, a dictionary with a goal."""
    del env

    def act(observation: Any) -> np.ndarray:
        seen = np.asarray(observation["observation"])
        block, way, width = seen[3:6], seen[6:9], float(seen[9:11].sum())
        aside = float(np.linalg.norm(way[:2]))
        if np.linalg.norm(way) < 0.02:
            goal = np.asarray(observation["desired_goal"]) - block
            motion = goal if width < HELD else np.zeros(3)
            return _action(motion, CLOSE)
        height = way[2] if aside < 0.01 else way[2] + ABOVE
        return _action(np.array([way[0], way[1], height]), OPEN)

    return act


def _action(way: np.ndarray, gripper: float) -> np.ndarray:
    return np.append(np.clip(way / (LAG * STEP), -1.0, 1.0), gripper).astype(np.float32)
