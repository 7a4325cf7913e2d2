"""Where an arm is among the joints and motors of a model, by the names of its parts.

Every arm has joints `joint1`, `joint2`, ... from its base on, for each a torque motor `motor1`, ..., bodies `base`
and `flange`, and a force-torque sensor at `wrist_ft`. The rest angle of its joints' springs, which have no stiffness,
is its ready pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

SMALL_MOTOR = 0.5
"""Largest torque of a small motor, as a share of that of the arm's largest one."""


@dataclass(frozen=True, eq=False)
class ArmPlace:
    """Where an arm is.

    Attributes:
        prefix: How the names of its parts begin.
        joints: Numbers of its n joints.
        qpos: Its joint positions in `qpos`.
        dof: Its joint velocities in `qvel`.
        motors: Its motors in `ctrl`.
        fingers: The motors of its fingers; empty without.
        finger_joints: Their positions in `qpos`; empty without.
        ready: Its ready pose, towards which the nullspace is pulled [rad], shape (n,).
        small: Which joints have small motors, as those of a wrist, shape (n,).
    """

    prefix: str
    joints: slice
    qpos: slice
    dof: slice
    motors: slice
    fingers: slice
    finger_joints: slice
    ready: np.ndarray
    small: np.ndarray

    @classmethod
    def of(cls, model: mujoco.MjModel, name: str = "") -> ArmPlace:
        """Return the place of the arm of that name; empty where the model has one."""
        prefix = f"{name}_" if name else ""
        count = 1
        while mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, f"{prefix}joint{count + 1}") >= 0:
            count += 1
        joint, motor = model.joint(f"{prefix}joint1"), model.actuator(f"{prefix}motor1").id
        qpos, dof = int(joint.qposadr[0]), int(joint.dofadr[0])
        finger = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, f"{prefix}left_finger")
        fingers = 2 if finger >= 0 else 0
        torque = model.actuator_ctrlrange[motor : motor + count, 1]
        return cls(
            prefix,
            slice(joint.id, joint.id + count),
            slice(qpos, qpos + count),
            slice(dof, dof + count),
            slice(motor, motor + count),
            slice(motor + count, motor + count + fingers),
            slice(qpos + count, qpos + count + fingers),
            model.qpos_spring[qpos : qpos + count].copy(),
            torque < SMALL_MOTOR * torque.max(),
        )

    @property
    def count(self) -> int:
        """The number of its joints."""
        return len(self.ready)


def add_motor(spec: mujoco.MjSpec, joint: mujoco.MjsJoint, number: int, torque: float) -> None:
    """Add the torque motor of a joint.

    Args:
        spec: The model.
        joint: The joint.
        number: Of the joint, from 1 on.
        torque: Its largest torque [Nm].
    """
    motor = spec.add_actuator(name=f"motor{number}", target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.ctrlrange, motor.ctrllimited = (-torque, torque), True
