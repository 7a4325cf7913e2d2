"""Where the joints of an arm are, to draw it."""

from __future__ import annotations

import mujoco
import numpy as np

from sim.arm.place import ArmPlace


class LinkPoints:
    """Function from joint angles to points along the arm; it has a state of its own.

    Args:
        model: Model with one arm.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        self._place, self._flange = ArmPlace.of(model), model.body("flange").id

    def __call__(self, position: np.ndarray) -> np.ndarray:
        """Return the points in the base frame [m].

        Args:
            position: Of the n joints [rad], shape (n,).

        Returns:
            Base, joints in their order, flange; shape (n + 2, 3).
        """
        data = self._data
        data.qpos[self._place.qpos] = position
        mujoco.mj_kinematics(self._model, data)
        return np.stack([np.zeros(3), *data.xanchor[self._place.joints], data.xpos[self._flange]])
