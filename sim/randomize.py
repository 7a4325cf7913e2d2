"""What differs between two looks at the same scene: light, colours, and where the cameras really are.

A policy that shall hold on another day, or on a robot, must not lean on them. Drawn anew for each episode from its
seed; nothing here touches the physics.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np


@dataclass(frozen=True)
class VisualRandomization:
    """Half-widths of uniform draws about the scene's own values.

    Attributes:
        camera_position: Of each camera, in each axis of its parent [m].
        camera_rotation: Of each camera, about each of its axes [rad].
        brightness: Of each light, as a share.
        light_position: Of the lamp, in each axis [m].
        colour: Of each component of each colour in the scene, as a share; what had one colour still has one.
    """

    camera_position: float = 0.002
    camera_rotation: float = float(np.deg2rad(0.5))
    brightness: float = 0.25
    light_position: float = 0.3
    colour: float = 0.08


class VisualRandomizer:
    """Draws looks into a model.

    Args:
        model: Whose lights, colours and cameras are changed.
        amount: How much.
    """

    def __init__(self, model: mujoco.MjModel, amount: VisualRandomization | None = None) -> None:
        self._model, self._amount = model, amount or VisualRandomization()
        headlight = model.vis.headlight
        self._camera_positions, self._camera_turns = model.cam_pos.copy(), model.cam_quat.copy()
        self._lamp_positions, self._lamps = model.light_pos.copy(), model.light_diffuse.copy()
        self._ambient, self._diffuse = headlight.ambient.copy(), headlight.diffuse.copy()
        self._colours, self._paint = np.unique(model.geom_rgba, axis=0, return_inverse=True)

    def draw(self, seed: int) -> None:
        """The look of the episode with this seed."""
        model, amount, rng = self._model, self._amount, np.random.default_rng([seed, 4])

        def about_one(width: float, *shape: int) -> np.ndarray:
            return 1.0 + rng.uniform(-width, width, shape)

        model.light_diffuse[:] = self._lamps * about_one(amount.brightness, len(self._lamps), 1)
        model.light_pos[:] = (
            self._lamp_positions + rng.uniform(-1, 1, self._lamp_positions.shape) * amount.light_position
        )
        model.vis.headlight.ambient[:] = self._ambient * about_one(amount.brightness, 1)
        model.vis.headlight.diffuse[:] = self._diffuse * about_one(amount.brightness, 1)
        colours = self._colours[:, :3] * about_one(amount.colour, len(self._colours), 3)
        model.geom_rgba[:, :3] = np.clip(colours, 0.0, 1.0)[self._paint]
        shift = rng.uniform(-1, 1, self._camera_positions.shape) * amount.camera_position
        model.cam_pos[:] = self._camera_positions + shift
        for camera, turn in enumerate(rng.uniform(-1, 1, (model.ncam, 3)) * amount.camera_rotation):
            mujoco.mju_copy(model.cam_quat[camera], self._camera_turns[camera])
            mujoco.mju_quatIntegrate(model.cam_quat[camera], turn, 1.0)
