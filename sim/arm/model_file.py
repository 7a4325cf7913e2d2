"""An arm of the user's own: a chain of hinges from an MJCF or URDF file, brought into a scene.

Models of MuJoCo Menagerie fit as they are: tools go to their site `attachment_site`, and their keyframe `home` is the
ready pose. Otherwise a YAML file beside the model says so:

    model: my_arm.urdf          # beside this file
    flange: tool0               # site or body that tools go to, z out of it
    ready: [0, -1.2, 1.6, 0, 1.2, 0]
    position: [0.1, 0.0, 0.0]   # of the model's origin in the base frame [m]
    turn: 3.14159               # of the model about z [rad]

What the file says of masses, inertias, limits, damping, friction and armature counts; a joint without armature gets
some. Its motors, sensors, cameras and lights do not: joints get torque motors as strong as the file's. As with our own
arm, links do not collide.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import mujoco
import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import STRICT, Real
from robot_rl.config.load import component_from_dict
from robot_rl.config.yaml_file import YAML_SUFFIXES, read_yaml
from robot_rl.errors import ConfigError, UnknownNameError
from sim.arm.place import add_motor

FLANGE, HOME_KEY = "attachment_site", "home"
"""Site and keyframe that count where the file says nothing else."""
LEAST_JOINTS = 6
"""With which a tool can be brought to a pose."""
SUFFIXES = (".xml", ".urdf", *YAML_SUFFIXES)
"""Endings of files that may describe an arm, for messages."""
PREFIX = "arm_"
ARMATURE = 0.1
"""Inertia of the rotor of a joint whose file says nothing of it, as in our own arm [kg m^2]."""
ENDLESS = (-2.0 * np.pi, 2.0 * np.pi)
"""Range of a joint without limits [rad]."""


@dataclass(frozen=True, config=STRICT)
class ArmFile:
    """What an arm file says."""

    model: str = ""
    """MJCF or URDF file, beside this one or absolute."""
    flange: str = FLANGE
    """Site or body that tools go to, z out of it."""
    ready: Annotated[tuple[Real, ...] | None, Field(min_length=LEAST_JOINTS)] = None
    """Ready pose [rad]; None: the keyframe `home`, or the middle of each joint's range."""
    position: tuple[Real, Real, Real] = (0.0, 0.0, 0.0)
    """Of the model's origin in the base frame [m]."""
    turn: Real = 0.0
    """Of the model about z [rad]."""


def read_arm_file(file: Path) -> ArmFile:
    """Return what a file says of an arm: a YAML file, or a model.

    Raises:
        ConfigError: if it is not there, or says something else.
    """
    if file.is_dir():
        there = sorted(entry.name for entry in file.iterdir() if entry.suffix.lower() in SUFFIXES)
        raise ConfigError(f"arm {file}: is a folder; name a model in it; there: {', '.join(there) or 'none'}")
    if not file.is_file():
        raise ConfigError(
            f"arm {file}: there is no such file; give an MJCF or URDF model, or a YAML file that names one"
        )
    if file.suffix.lower() not in YAML_SUFFIXES:
        return ArmFile(model=str(file.absolute()))
    told = component_from_dict(ArmFile, read_yaml(file, "arm file"), f"arm {file}")
    if not told.model:
        raise ConfigError(f"arm {file}: model is missing, an MJCF or URDF file")
    model = (file.parent / Path(told.model).expanduser()).absolute()
    if not model.is_file():
        raise ConfigError(f"arm {file}: its model {model} is not there")
    return replace(told, model=str(model))


def add_arm_of_file(spec: mujoco.MjSpec, base: mujoco.MjsBody, file: Path) -> mujoco.MjsBody:
    """Add the arm of a file to its base, with one torque motor per joint.

    Args:
        spec: The scene.
        base: Body in which the arm stands.
        file: An MJCF or URDF model, or a YAML file with the fields of `ArmFile`.

    Returns:
        The flange: a body whose frame is that of the site that tools go to.

    Raises:
        ConfigError: if it is no chain of at least six hinges with limits on angle and torque.
        UnknownNameError: if it has no such flange.
    """
    told = read_arm_file(file)
    child, model = _read_model(told.model)
    where = f"arm {told.model}"
    holder, local = _flange(model, told.flange, where)
    joints = _chain(model, holder, where)
    ranges = np.where(model.jnt_limited[joints, None], model.jnt_range[joints], ENDLESS)
    ready = _ready(model, joints, ranges, told, where)
    torques = [_torque(model, joint, where) for joint in joints]
    names = [model.joint(joint).name for joint in joints]
    holder_name = model.body(holder).name
    _strip(child)
    _use_options_of(spec, child)
    half, unit = told.turn / 2.0, math.degrees(1.0) if child.compiler.degree else 1.0
    frame = base.add_frame(pos=told.position, quat=(math.cos(half), 0.0, 0.0, math.sin(half)))
    spec.attach(child, prefix=PREFIX, frame=frame)
    for number, (name, torque, angle, limits) in enumerate(zip(names, torques, ready, ranges, strict=True), start=1):
        joint = spec.joint(PREFIX + name)
        joint.name = f"joint{number}"
        joint.range, joint.limited = unit * limits, mujoco.mjtLimited.mjLIMITED_TRUE
        joint.springref, joint.stiffness = unit * angle, (0.0, 0.0, 0.0)
        joint.armature = joint.armature or ARMATURE
        add_motor(spec, joint, number, torque)
    return spec.body(PREFIX + holder_name).add_body(name="flange", pos=local[:3], quat=local[3:])


def _read_model(file: str) -> tuple[mujoco.MjSpec, mujoco.MjModel]:
    """Return what a file describes, to be brought into a scene, and as a model of its own."""
    try:
        spec = mujoco.MjSpec.from_file(file)
    except ValueError as error:
        raise ConfigError(f"arm {file}: MuJoCo cannot read it as MJCF or URDF: {_in_one_line(error)}") from error
    try:
        return spec, spec.compile()
    except ValueError as error:
        raise ConfigError(
            f"arm {file}: MuJoCo makes no model of it: {_in_one_line(error)}; meshes have to lie where it names them, "
            "and what moves needs mass and inertia"
        ) from error


def _in_one_line(error: ValueError) -> str:
    return " ".join(str(error).removeprefix("Error: ").split())


def _flange(model: mujoco.MjModel, name: str, where: str) -> tuple[int, np.ndarray]:
    """Return the body that holds the flange, and the flange's pose in it, shape (7,)."""
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
    site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, name)
    if site >= 0:
        return int(model.site_bodyid[site]), np.concatenate((model.site_pos[site], model.site_quat[site]))
    if body >= 0:
        return body, np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    sites = [model.site(i).name for i in range(model.nsite)]
    bodies = [model.body(i).name for i in range(1, model.nbody)]
    raise UnknownNameError(f"flange of {where}", name, [name for name in sites + bodies if name])


def _chain(model: mujoco.MjModel, holder: int, where: str) -> list[int]:
    """Return the joints from the base to the flange."""
    joints: list[int] = []
    body = holder
    while body:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        joints = [*range(first, first + count), *joints] if count else joints
        body = int(model.body_parentid[body])
    others = [model.joint(j).name for j in range(model.njnt) if j not in joints]
    if others:
        raise ConfigError(f"{where}: {', '.join(others)} move beside the flange; take the model without a gripper")
    sliding = [model.joint(j).name for j in joints if model.jnt_type[j] != mujoco.mjtJoint.mjJNT_HINGE]
    if sliding:
        raise ConfigError(f"{where}: {', '.join(sliding)} are no hinges; only arms of hinges can stand here")
    if len(joints) < LEAST_JOINTS:
        raise ConfigError(
            f"{where} has {len(joints)} joints up to its flange, a tool is brought to a pose by at least {LEAST_JOINTS}"
        )
    if not all(model.joint(j).name for j in joints):
        raise ConfigError(f"{where}: a joint has no name")
    return joints


def _ready(model: mujoco.MjModel, joints: list[int], ranges: np.ndarray, told: ArmFile, where: str) -> np.ndarray:
    """Return the ready pose, shape (n,)."""
    low, high = ranges.T
    key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, HOME_KEY)
    if told.ready is not None:
        ready = np.array(told.ready)
    elif key >= 0:
        ready = model.key_qpos[key][model.jnt_qposadr[joints]].copy()
    else:
        ready = (low + high) / 2.0
    if len(ready) != len(joints):
        raise ConfigError(f"{where}: ready has {len(ready)} angles, there are {len(joints)} joints")
    if (ready < low).any() or (ready > high).any():
        raise ConfigError(f"{where}: the ready pose {ready.tolist()} is outside {low.tolist()} to {high.tolist()}")
    return ready


def _torque(model: mujoco.MjModel, joint: int, where: str) -> float:
    """Return the largest torque of a joint [Nm]: of its motor, or the limit of the joint itself."""
    largest = float(model.jnt_actfrcrange[joint].max()) if model.jnt_actfrclimited[joint] else math.inf
    for motor in range(model.nu):
        on_joint = model.actuator_trntype[motor] == mujoco.mjtTrn.mjTRN_JOINT
        if not on_joint or model.actuator_trnid[motor, 0] != joint:
            continue
        gear = abs(float(model.actuator_gear[motor, 0]))
        if model.actuator_forcelimited[motor]:
            largest = min(largest, gear * float(np.abs(model.actuator_forcerange[motor]).max()))
        elif _is_torque_motor(model, motor) and model.actuator_ctrllimited[motor]:
            strength = abs(float(model.actuator_gainprm[motor, 0]))
            largest = min(largest, gear * strength * float(np.abs(model.actuator_ctrlrange[motor]).max()))
    if not 0.0 < largest < math.inf:
        raise ConfigError(
            f"{where}: nothing says how strong {model.joint(joint).name} is; give it actuatorfrcrange (MJCF) or effort "
            "(URDF) [Nm]"
        )
    return largest


def _is_torque_motor(model: mujoco.MjModel, motor: int) -> bool:
    return bool(
        model.actuator_biastype[motor] == mujoco.mjtBias.mjBIAS_NONE
        and model.actuator_dyntype[motor] == mujoco.mjtDyn.mjDYN_NONE
    )


def _strip(child: mujoco.MjSpec) -> None:
    """Take away what is not the arm itself, and all contact."""
    others = (child.actuators, child.sensors, child.keys, child.cameras, child.lights, child.tendons, child.pairs)
    for elements in others:
        for element in list(elements):
            child.delete(element)
    for equality in list(child.equalities):
        child.delete(equality)
    for geom in child.geoms:
        geom.contype = geom.conaffinity = 0
    for body in child.bodies:
        body.gravcomp = 0.0  # the controller compensates gravity
        body.mocap = False  # a target beside the arm, which here would have to stand in the world


def _use_options_of(spec: mujoco.MjSpec, child: mujoco.MjSpec) -> None:
    """Give a model the physics options of the scene: of two that differ, MuJoCo warns."""
    for name in (name for name in dir(spec.option) if not name.startswith("_")):
        setattr(child.option, name, getattr(spec.option, name))
