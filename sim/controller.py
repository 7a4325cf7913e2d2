"""Cartesian impedance controller in operational space, which runs at every physics step.

Its law is `tau = J^T (K e - D v + F) + N^T tau_0 + bias` (Khatib 1987; Ott 2008), where `e` is the pose error of the
tcp, `F` the feed-forward wrench of a command, `N^T = I - J^T Lambda J M^-1` keeps the posture torque out of the task,
and `bias` compensates gravity and Coriolis forces. Damping is critical per axis: `D = 2 sqrt(K / diag(J M^-1 J^T))`.

The static contact force is bounded by the stiffness times the clipped reference error. The controller runs at the
physics rate because impedance of this stiffness is unstable at 100 Hz. Terms that depend on the pose alone and change
slowly (joint-space damping `J^T D J`, nullspace projector, posture torque) are refreshed every few steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.linalg.lapack import dposv

from robot_rl.errors import DivergedError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply
from sim.arm.place import ArmPlace

TASK_DOF = 6
"""Of the pose of a tool."""


@dataclass(frozen=True)
class ImpedanceGains:
    """Gains of the controller.

    Attributes:
        translation: Stiffness [N/m].
        rotation: Stiffness [Nm/rad].
        posture: Nullspace stiffness towards the ready pose [Nm/rad].
        max_translation_error: Limit of the position error, per axis [m].
        max_rotation_error: Limit of the rotation error, per axis [rad].
        ramp: Time over which a new set-point is blended in [s].
        delay: Time from a set-point to its first effect [s], rounded to whole physics steps.
    """

    translation: float = 2000.0
    rotation: float = 100.0
    posture: float = 10.0
    max_translation_error: float = 0.01
    max_rotation_error: float = 0.08
    ramp: float = 0.06
    delay: float = 0.0


class ImpedanceController:
    """Controller that turns a Cartesian set-point into joint torques.

    Args:
        model: Model with the arm.
        data: State of the model; the controller reads positions and velocities, and writes the arm's `ctrl`.
        gains: Stiffness and clipping.
        place: Where the arm is in the model; None: its only one.
        refresh: Number of steps between updates of damping and nullspace projector.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        gains: ImpedanceGains,
        place: ArmPlace | None = None,
        refresh: int = 10,
    ) -> None:
        self._model, self._data, self._refresh = model, data, refresh
        place = place or ArmPlace.of(model)
        self._dof = dof = place.dof
        self._ready, self._eye = place.ready, np.eye(place.count)
        self._redundant = place.count > TASK_DOF
        site = model.site(f"{place.prefix}tcp")
        self._site = site.id
        self.set_gains(gains)
        # Delayed set-points with their wrenches, and the remaining steps.
        self._waiting: list[tuple[int, Pose, np.ndarray | None]] = []
        self._wrench: np.ndarray | None = None  # feed-forward, tcp frame
        # The law is linear in `inputs` = (K e, qd, 1): torque = inputs @ law, and the first rows of `law` are J.
        count = 6 + place.count + 1
        self._inputs, self._law = np.zeros(count), np.zeros((count, model.nv))
        self._inputs[-1] = 1.0
        self._torque, self._minv_jt = np.zeros(model.nv), np.zeros((6, model.nv))
        # Views are made once: at this rate, slicing costs as much as computing.
        self._J, self._J_position, self._J_rotation = self._law[:6], self._law[:3], self._law[3:6]
        self._joint_damping, self._posture = self._law[6:-1, dof], self._law[-1, dof]
        self._spring, self._velocity_input = self._inputs[:6], self._inputs[6:-1]
        self._arm_torque, self._ctrl = self._torque[dof], data.ctrl[place.motors]
        self._q, self._velocity, self._bias = data.qpos[place.qpos], data.qvel[dof], data.qfrc_bias[dof]
        self._tcp_position, self._tcp_matrix = data.site_xpos[self._site], data.site_xmat[self._site]
        # The rotation error is that of the tool's body, whose quaternion MuJoCo keeps, not of the tcp site.
        self._tool_quaternion, self._q_tcp_tool = data.xquat[site.bodyid[0]], quat_conjugate(site.quat)
        self.reset()

    def set_gains(self, gains: ImpedanceGains) -> None:
        """Use other gains; call `reset` afterwards."""
        self._gains, timestep = gains, self._model.opt.timestep
        self._springs = gains.translation, gains.max_translation_error, gains.rotation, gains.max_rotation_error
        self._stiffness = np.repeat([gains.translation, gains.rotation], 3)
        self._posture_stiffness = gains.posture if self._redundant else 0.0  # others have no nullspace, only rounding
        self._posture_damping = 2.0 * math.sqrt(self._posture_stiffness)
        self._ramp_steps = max(1, round(gains.ramp / timestep))
        self._delay = round(gains.delay / timestep)  # [steps]

    def reset(self) -> None:
        """Hold the present pose at once, without a ramp and without a wrench."""
        self._waiting.clear()
        self._blend_to(self.pose(), None)
        self._age = self._ramp_steps
        self._countdown = 0

    def pose(self) -> Pose:
        """Return the pose of the tcp in the base frame, as of the last kinematics."""
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, self._tcp_matrix)
        return Pose(self._tcp_position.copy(), quaternion)

    def set_target(self, T_base_target: Pose, wrench: np.ndarray | None = None) -> None:
        """Move the set-point over the ramp to `T_base_target`, from the pose of the tcp at the end of the delay.

        Args:
            T_base_target: The set-point.
            wrench: Feed-forward force and torque at the tcp, in the tcp frame [N, Nm], shape (6,). It counts at once
                and as the tcp turns, until the next set-point or hold.
        """
        if self._delay:
            self._waiting.append((self._delay, T_base_target, wrench))
        else:
            self._blend_to(T_base_target, wrench)

    def _blend_to(self, T_base_target: Pose, wrench: np.ndarray | None) -> None:
        """Start a ramp from the present pose."""
        self._wrench = wrench
        self._start, self._goal, self._age = self._tcp_position.tolist(), T_base_target.position.tolist(), 0
        w, x, y, z = quat_multiply(T_base_target.quaternion, self._q_tcp_tool).tolist()
        # Times a quaternion q this is `target * q^-1`, the rotation from q to the target in the base frame.
        self._target_times_inverse = np.array(((w, x, y, z), (x, -w, z, -y), (y, -z, -w, x), (z, y, -x, -w)))

    def step(self) -> None:
        """Compute the torques of the next physics step; derived quantities must be up to date (`mj_step1`)."""
        if self._waiting:
            self._advance_delays()
        mujoco.mj_jacSite(self._model, self._data, self._J_position, self._J_rotation, self._site)
        if self._countdown == 0:
            self._update_dynamics()
            self._countdown = self._refresh
        self._countdown -= 1
        self._update_spring()
        if self._wrench is not None:
            self._spring += (self._wrench.reshape(2, 3) @ self._tcp_matrix.reshape(3, 3).T).ravel()
        self._velocity_input[:] = self._velocity
        self._inputs.dot(self._law, self._torque)
        # MuJoCo clamps to the motors' torque limits.
        np.add(self._arm_torque, self._bias, out=self._ctrl)

    def _advance_delays(self) -> None:
        """Count down delayed set-points, and start those whose delay is over."""
        waiting, self._waiting = self._waiting, []
        for steps, target, wrench in waiting:
            if steps:
                self._waiting.append((steps - 1, target, wrench))
            else:
                self._blend_to(target, wrench)

    def _update_spring(self) -> None:
        """Update `K e`, with `e` the error of the tcp against the ramped set-point, base frame, clipped per axis."""
        blend = 1.0
        if self._age < self._ramp_steps:
            self._age += 1
            blend = self._age / self._ramp_steps
        sx, sy, sz = self._start
        gx, gy, gz = self._goal
        px, py, pz = self._tcp_position.tolist()
        w, x, y, z = self._target_times_inverse.dot(self._tool_quaternion).tolist()
        # The logarithm of the shorter rotation.
        sine = math.sqrt(x * x + y * y + z * z)
        turn = math.copysign(blend * (2.0 * math.atan2(sine, abs(w)) / sine if sine > 1e-9 else 2.0), w)
        stiffness, limit, rotation_stiffness, rotation_limit = self._springs
        self._spring[:] = (
            stiffness * _clip(sx + blend * (gx - sx) - px, limit),
            stiffness * _clip(sy + blend * (gy - sy) - py, limit),
            stiffness * _clip(sz + blend * (gz - sz) - pz, limit),
            rotation_stiffness * _clip(turn * x, rotation_limit),
            rotation_stiffness * _clip(turn * y, rotation_limit),
            rotation_stiffness * _clip(turn * z, rotation_limit),
        )

    def _update_dynamics(self) -> None:
        """Update the rows of the law below J at this pose: damping and posture torque."""
        J, minv_jt = self._J, self._minv_jt
        mujoco.mj_solveM(self._model, self._data, minv_jt, J)
        inverse_inertia = J.dot(minv_jt.T)  # (6, 6), Lambda^-1
        damping = 2.0 * np.sqrt(self._stiffness / inverse_inertia.diagonal())
        J = J[:, self._dof]
        _, jbar_t, singular = dposv(inverse_inertia, minv_jt[:, self._dof])  # Lambda J M^-1, so that N = I - jbar J
        if singular:
            raise DivergedError("the arm is in a singular pose, where its inertia at the tcp is not defined")
        d = self._posture_damping
        self._joint_damping[:] = (d * jbar_t - damping[:, None] * J).T.dot(J) - d * self._eye  # -(J^T D J + d N^T)^T
        posture = self._posture_stiffness * (self._ready - self._q)
        np.subtract(posture, jbar_t.dot(posture).dot(J), out=self._posture)


def _clip(value: float, limit: float) -> float:
    return limit if value > limit else -limit if value < -limit else value
