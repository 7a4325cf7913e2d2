"""Cartesian impedance control in operational space, at every physics step.

The law is `tau = J^T (K e - D v) + N^T tau_0 + bias` (Khatib 1987; Ott 2008), where `e` is the pose error of the tcp,
`N^T = I - J^T Lambda J M^-1` keeps the posture torque out of the task, and `bias` compensates gravity and Coriolis
forces. Damping is critical per axis: `D = 2 sqrt(K / diag(J M^-1 J^T))`.

The static contact force is bounded by the stiffness times the clipped reference error. The controller runs at the
physics rate because impedance of this stiffness is unstable at 100 Hz. What depends on the pose alone and changes
slowly (joint-space damping `J^T D J`, nullspace projector) is refreshed every few steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from robot_rl.geometry import Pose
from sim.arm import ARM_DOF, HOME


@dataclass(frozen=True)
class ImpedanceGains:
    """Gains of the controller.

    Attributes:
        translation: Stiffness [N/m].
        rotation: Stiffness [Nm/rad].
        posture: Nullspace stiffness towards the ready pose [Nm/rad].
        max_translation_error: Reference clipping: the largest position error acted on, per axis [m].
        max_rotation_error: The largest rotation error acted on, per axis [rad].
        ramp: Time over which a new set-point is blended in [s].
    """

    translation: float = 2000.0
    rotation: float = 100.0
    posture: float = 10.0
    max_translation_error: float = 0.01
    max_rotation_error: float = 0.08
    ramp: float = 0.06


class ImpedanceController:
    """Turns a Cartesian set-point into joint torques.

    Args:
        model: Model whose first joints are the arm's.
        data: Its state; the controller reads positions and velocities, and writes the arm's `ctrl`.
        gains: Stiffness and clipping.
        refresh: Steps between updates of damping and nullspace projector.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, gains: ImpedanceGains, refresh: int = 10) -> None:
        self._model, self._data, self._gains, self._refresh = model, data, gains, refresh
        self._site = model.site("tcp").id
        self._stiffness = np.repeat([gains.translation, gains.rotation], 3)
        self._error_limit = np.repeat([gains.max_translation_error, gains.max_rotation_error], 3)
        ramp_steps = max(1, round(gains.ramp / model.opt.timestep))
        self._ramp = np.arange(1, ramp_steps + 1) / ramp_steps
        # The law is linear in `inputs` = (K e, qd, home - q): torque = inputs @ law, and the first rows of `law` are J.
        self._inputs, self._law = np.zeros(6 + 2 * ARM_DOF), np.zeros((6 + 2 * ARM_DOF, model.nv))
        self._torque = np.zeros(model.nv)
        # Views made once: at this rate, slicing costs as much as computing.
        self._J, self._J_position, self._J_rotation = self._law[:6], self._law[:3], self._law[3:6]
        self._error, self._position_error, self._rotation_error = self._inputs[:6], self._inputs[:3], self._inputs[3:6]
        self._velocity_input, self._posture_error = self._inputs[6 : 6 + ARM_DOF], self._inputs[6 + ARM_DOF :]
        self._arm_torque, self._ctrl = self._torque[:ARM_DOF], data.ctrl[:ARM_DOF]
        self._q, self._velocity, self._bias = data.qpos[:ARM_DOF], data.qvel[:ARM_DOF], data.qfrc_bias[:ARM_DOF]
        self._tcp_position = data.site_xpos[self._site]
        self._tcp_flat, self._tcp_matrix = data.site_xmat[self._site], data.site_xmat[self._site].reshape(3, 3)
        self._quaternion, self._difference = np.zeros(4), np.zeros(3)
        self.reset()

    def reset(self) -> None:
        """Holds the present pose, without a ramp."""
        pose = self.pose()
        self._goal, self._target_quaternion = pose.position, pose.quaternion
        self._goals = np.zeros((0, 3))
        self._age = 0
        self._countdown = 0

    def pose(self) -> Pose:
        """Pose of the tcp in the base frame, as of the last kinematics."""
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, self._tcp_flat)
        return Pose(self._tcp_position.copy(), quaternion)

    def set_target(self, T_base_target: Pose) -> None:
        """Moves the set-point from where it is now to `T_base_target` over the ramp."""
        start = self._tcp_position.copy()
        self._goals = start + self._ramp[:, None] * (T_base_target.position - start)
        self._goal, self._target_quaternion = T_base_target.position, T_base_target.quaternion
        self._age = 0

    def step(self) -> None:
        """Computes the torques for the next physics step from derived quantities that are up to date (`mj_step1`)."""
        mujoco.mj_jacSite(self._model, self._data, self._J_position, self._J_rotation, self._site)
        if self._countdown == 0:
            self._update_dynamics()
            self._countdown = self._refresh
        self._countdown -= 1
        self._update_error()
        np.multiply(self._error, self._stiffness, out=self._error)
        self._velocity_input[:] = self._velocity
        np.subtract(HOME, self._q, out=self._posture_error)
        np.dot(self._inputs, self._law, out=self._torque)
        # MuJoCo clamps to the motors' torque limits.
        np.add(self._arm_torque, self._bias, out=self._ctrl)

    def _update_dynamics(self) -> None:
        """Damping and posture torque at this pose: the rows of the law below J."""
        J, posture = self._J[:, :ARM_DOF], self._gains.posture
        minv_jt = np.zeros((6, self._model.nv))
        mujoco.mj_solveM(self._model, self._data, minv_jt, self._J)
        minv_jt = minv_jt[:, :ARM_DOF]
        inverse_inertia = J @ minv_jt.T  # (6, 6), Lambda^-1
        damping = 2.0 * np.sqrt(self._stiffness / np.diag(inverse_inertia))
        projector = np.eye(ARM_DOF) - J.T @ np.linalg.solve(inverse_inertia, minv_jt)  # N^T
        joint_damping = (J.T * damping) @ J + 2.0 * np.sqrt(posture) * projector
        self._law[6 : 6 + ARM_DOF, :ARM_DOF] = -joint_damping.T
        self._law[6 + ARM_DOF :, :ARM_DOF] = posture * projector.T

    def _update_error(self) -> None:
        """Error of the tcp against the ramped set-point, base frame, clipped, into `inputs`."""
        mujoco.mju_mat2Quat(self._quaternion, self._tcp_flat)
        mujoco.mju_subQuat(self._difference, self._target_quaternion, self._quaternion)  # in the tcp frame
        goal = self._goal
        if self._age < len(self._goals):
            goal = self._goals[self._age]
            np.multiply(self._difference, self._ramp[self._age], out=self._difference)
            self._age += 1
        np.subtract(goal, self._tcp_position, out=self._position_error)
        np.dot(self._tcp_matrix, self._difference, out=self._rotation_error)
        np.minimum(self._error, self._error_limit, out=self._error)
        np.maximum(self._error, -self._error_limit, out=self._error)
