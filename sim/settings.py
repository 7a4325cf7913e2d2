"""Conversion between the settings of a simulated arm and its model and controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from robot_rl.config.components import SimulationConfig
from sim.arm.place import ArmPlace
from sim.controller import ImpedanceGains


def settings_of(model: mujoco.MjModel, gains: ImpedanceGains) -> SimulationConfig:
    """Return the settings of a model and its gains; those of small joints are None where the arm has none."""
    place = ArmPlace.of(model)
    friction, damping = model.dof_frictionloss[place.dof], model.dof_damping[place.dof]
    return SimulationConfig(
        large_joint_friction=float(friction[~place.small][0]),
        small_joint_friction=_first(friction[place.small]),
        large_joint_damping=float(damping[~place.small][0]),
        small_joint_damping=_first(damping[place.small]),
        translation_stiffness=gains.translation,
        rotation_stiffness=gains.rotation,
        command_delay=gains.delay,
    )


def apply_settings(
    settings: SimulationConfig, model: mujoco.MjModel, gains: ImpedanceGains, places: Sequence[ArmPlace] = ()
) -> ImpedanceGains:
    """Apply the settings that are not None to the model's joints, and return gains with those that apply to them.

    Args:
        settings: The settings.
        model: Model with the arms.
        gains: Gains of their controllers.
        places: Where the arms are in the model; none: its only one.
    """
    for place in places or [ArmPlace.of(model)]:
        for values, joints, value in (
            (model.dof_frictionloss, ~place.small, settings.large_joint_friction),
            (model.dof_frictionloss, place.small, settings.small_joint_friction),
            (model.dof_damping, ~place.small, settings.large_joint_damping),
            (model.dof_damping, place.small, settings.small_joint_damping),
        ):
            if value is not None:
                values[place.dof][joints] = value
    chosen = {
        "translation": settings.translation_stiffness,
        "rotation": settings.rotation_stiffness,
        "delay": settings.command_delay,
    }
    return replace(gains, **{name: value for name, value in chosen.items() if value is not None})


def _first(values: np.ndarray) -> float | None:
    return float(values[0]) if len(values) else None
