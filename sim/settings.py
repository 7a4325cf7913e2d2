"""Conversion between the settings of a simulated arm and its model and controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mujoco

from robot_rl.config.components import SimulationConfig
from sim.arm import ARM_DOF, ArmPlace
from sim.controller import ImpedanceGains

LARGE, SMALL = slice(0, 4), slice(4, ARM_DOF)
"""Joints by the size of their motors, 87 and 12 Nm."""


def settings_of(model: mujoco.MjModel, gains: ImpedanceGains) -> SimulationConfig:
    """Return the settings of a model and its gains; no entry is None."""
    friction, damping = model.dof_frictionloss, model.dof_damping
    return SimulationConfig(
        large_joint_friction=float(friction[LARGE][0]),
        small_joint_friction=float(friction[SMALL][0]),
        large_joint_damping=float(damping[LARGE][0]),
        small_joint_damping=float(damping[SMALL][0]),
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
    for values, joints, value in (
        (model.dof_frictionloss, LARGE, settings.large_joint_friction),
        (model.dof_frictionloss, SMALL, settings.small_joint_friction),
        (model.dof_damping, LARGE, settings.large_joint_damping),
        (model.dof_damping, SMALL, settings.small_joint_damping),
    ):
        if value is not None:
            for place in places or [ArmPlace.of(model)]:
                values[place.dof][joints] = value
    chosen = {
        "translation": settings.translation_stiffness,
        "rotation": settings.rotation_stiffness,
        "delay": settings.command_delay,
    }
    return replace(gains, **{name: value for name, value in chosen.items() if value is not None})
