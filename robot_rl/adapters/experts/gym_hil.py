"""A scripted expert of gym-hil's PandaPickCube: above the cube, down, close, up.

It is loaded in the interpreter of the environment, so it needs numpy alone and imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 0.025
"""Displacement of the mocap body for an action of 1 [m]."""
CLOSE, KEEP, OPEN = 2.0, 1.0, 0.0
"""Last entry of an action."""
ABOVE = 0.06
"""Height above the cube at which the hand is brought over it [m]."""


def make_pick(env: Any) -> Callable[[Any], np.ndarray]:
    """Return the expert; it reads the simulation and not the observation, so it can lead with pixels, too."""
    data = env.unwrapped.data
    finger = data.joint("right_driver_joint")

    def act(observation: Any) -> np.ndarray:
        del observation
        way = data.sensor("block_pos").data - data.sensor("2f85/pinch_pos").data
        aside, closed = float(np.linalg.norm(way[:2])), float(finger.qpos[0])
        if closed > 0.2 and np.linalg.norm(way) < 0.03:
            still = abs(float(finger.qvel[0])) < 0.1
            return np.array([0.0, 0.0, 1.0 if still else 0.0, CLOSE], np.float32)
        if np.linalg.norm(way) < 0.012:
            return np.array([0.0, 0.0, 0.0, CLOSE], np.float32)
        height = way[2] if aside < 0.01 else way[2] + ABOVE
        motion = np.clip(np.array([way[0], way[1], height]) / STEP, -1.0, 1.0)
        return np.array([*motion, OPEN], np.float32)

    return act
