"""The state of a simulated scene, handed from one simulation to another of the same scene."""

from __future__ import annotations

import numpy as np

from robot_rl.errors import ConfigError
from sim.mujoco_robot_io import MujocoRobotIO


class MujocoScene:
    """Positions of all joints of a scene at rest; a `Scene`.

    Args:
        io: The simulated arm in it.
    """

    def __init__(self, io: MujocoRobotIO) -> None:
        self._io = io

    def save(self) -> np.ndarray:
        """Return the positions, shape (nq,)."""
        return self._io.data.qpos.copy()

    def restore(self, saved: np.ndarray) -> None:
        """Set the positions, all at rest and the fingers open.

        Raises:
            ConfigError: if the scene has another number of them.
        """
        if saved.shape != self._io.data.qpos.shape:
            raise ConfigError(
                f"a scene of {self._io.data.qpos.size} joint positions cannot go on from one of {saved.size}; the "
                "tasks are not of one scene"
            )
        self._io.reset(saved, seed=0)
