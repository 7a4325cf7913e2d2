"""Randomization of each episode: looks (light, colours, camera poses) and dynamics (friction, mass, stiffness, delay).

A policy that works on another day, or on a robot, must not depend on them. All draws follow from the seed of the
episode. `VisualRandomizer` does not change the physics, and `DynamicsRandomizer` does not change the looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import mujoco
import numpy as np

from robot_rl.config.randomization import DynamicsConfig, LooksConfig, WorldConfig
from sim.arm.place import ArmPlace
from sim.controller import ImpedanceGains


class VisualRandomizer:
    """Randomizer of the looks of a model.

    Args:
        model: Model whose lights, colours and cameras are changed.
        amount: Half-widths of the draws.
        world: How light and cameras differ in all episodes.
    """

    def __init__(
        self, model: mujoco.MjModel, amount: LooksConfig | None = None, world: WorldConfig | None = None
    ) -> None:
        self._model, self._amount, self._world = model, amount or LooksConfig(), world or WorldConfig()
        headlight = model.vis.headlight
        self._camera_positions, self._camera_turns = model.cam_pos.copy(), model.cam_quat.copy()
        self._lamp_positions, self._lamps = model.light_pos.copy(), model.light_diffuse.copy()
        self._ambient, self._diffuse = headlight.ambient.copy(), headlight.diffuse.copy()
        for light in (self._lamps, self._ambient, self._diffuse):
            light *= self._world.brightness
        self._colours, self._paint = np.unique(model.geom_rgba, axis=0, return_inverse=True)

    def draw(self, seed: int) -> None:
        """Draw the looks of the episode with this seed into the model."""
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
        rng = np.random.default_rng([seed, 7])
        for camera in range(model.ncam):
            shift, turn = drawn_direction(rng), drawn_direction(rng)
            model.cam_pos[camera] += self._world.camera_position * shift
            mujoco.mju_quatIntegrate(model.cam_quat[camera], turn, self._world.camera_rotation)


def drawn_direction(rng: np.random.Generator) -> np.ndarray:
    """Draw a unit vector, uniform over the sphere. Shape (3,)."""
    vector = rng.standard_normal(3)
    return vector / np.linalg.norm(vector)


class DynamicsRandomizer:
    """Randomizer of the dynamics of a model and of its gains.

    Args:
        model: Model whose friction, damping and masses are changed; it has the arms.
        gains: Gains without randomization.
        amount: Half-widths of the draws.
        places: Where the arms are in the model; none: its only one.
    """

    def __init__(
        self, model: mujoco.MjModel, gains: ImpedanceGains, amount: DynamicsConfig, places: Sequence[ArmPlace] = ()
    ) -> None:
        self._model, self._gains, self._amount = model, gains, amount
        self._places = places or [ArmPlace.of(model)]
        self._scratch = mujoco.MjData(model)
        self._joint_friction, self._joint_damping = model.dof_frictionloss.copy(), model.dof_damping.copy()
        self._contact_friction = model.geom_friction.copy()
        self._mass, self._inertia = model.body_mass.copy(), model.body_inertia.copy()
        self._movable = np.ones(model.nbody, bool)  # bodies that are no links of the arm
        for place in self._places:
            self._movable[model.jnt_bodyid[place.joints]] = False

    @property
    def draws_nothing(self) -> bool:
        """Whether all widths are 0."""
        return not any(asdict(self._amount).values())

    def draw(self, seed: int) -> ImpedanceGains:
        """Draw the dynamics of the episode with this seed into the model, and return the gains."""
        model, amount, rng = self._model, self._amount, np.random.default_rng([seed, 5])

        def about_one(width: float, count: int) -> np.ndarray:
            return 1.0 + rng.uniform(-width, width, count)

        for arm, count in ((place.dof, place.count) for place in self._places):
            model.dof_frictionloss[arm] = self._joint_friction[arm] + rng.uniform(0.0, amount.joint_friction, count)
            model.dof_damping[arm] = self._joint_damping[arm] * about_one(amount.joint_damping, count)
        model.geom_friction[:, 0] = self._contact_friction[:, 0] * about_one(amount.contact_friction, 1)
        scale = np.where(self._movable, about_one(amount.mass, model.nbody), 1.0)
        translation, rotation = about_one(amount.stiffness, 2).tolist()
        delay = rng.uniform(0.0, amount.delay)
        if amount.mass:
            model.body_mass[:] = self._mass * scale
            model.body_inertia[:] = self._inertia * scale[:, None]
            mujoco.mj_setConst(model, self._scratch)
        gains = self._gains
        return replace(
            gains,
            translation=gains.translation * translation,
            rotation=gains.rotation * rotation,
            delay=gains.delay + delay,
        )
