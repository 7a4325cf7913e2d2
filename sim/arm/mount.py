"""An arm in a scene, ready for a tool: base, joints with motors, flange, and a force-torque sensor in the wrist."""

from __future__ import annotations

from pathlib import Path

import mujoco

from sim.arm.fr3 import add_fr3
from sim.arm.model_file import add_arm_of_file


def add_arm(spec: mujoco.MjSpec, file: str | None = None) -> mujoco.MjsBody:
    """Add an arm at the origin of the world, base frame = world frame; what it consists of: `sim/arm/place.py`.

    Args:
        spec: The scene.
        file: Another arm than the Franka Research 3, see `add_arm_of_file`.

    Returns:
        The flange: a body with z out of it, to which tools are added.

    Raises:
        ConfigError: if the file describes no arm that can stand here.
    """
    base = spec.worldbody.add_body(name="base")
    flange = add_fr3(spec, base) if file is None else add_arm_of_file(spec, base, Path(file))
    flange.add_site(name="wrist_ft", size=(0.005, 0.005, 0.005), group=4)
    for name, kind in (("force", mujoco.mjtSensor.mjSENS_FORCE), ("torque", mujoco.mjtSensor.mjSENS_TORQUE)):
        spec.add_sensor(name=f"wrist_{name}", type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="wrist_ft")
    return flange
