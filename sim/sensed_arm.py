"""One arm of a scene: its controller, its wrist sensor and what has been measured of it.

The physics and the clock are the scene's, which may have several arms; names of an arm's parts then have its prefix.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import RobotState, SetPoint
from robot_rl.errors import StaleStateError
from robot_rl.geometry import (
    Pose,
    quat_conjugate,
    quat_from_matrix,
    quat_from_rotvec,
    quat_multiply,
    quat_rotate,
)
from sim.arm.place import ArmPlace
from sim.controller import ImpedanceController, ImpedanceGains
from sim.randomize import drawn_direction
from sim.sensing import SampleHistory, SensedState, Sensing, WrenchFilter, seconds_to_ns


class SensedArm:
    """One arm.

    Args:
        model: Scene.
        data: Its state, up to date.
        gains: Gains of the impedance controller.
        sensing: Delays and noise.
        finger_open_width: Distance between open fingers [m]; 0 for a tool without fingers.
        name: Of the arm, where the scene has several.
        number: Of the arm in the scene; each has noise of its own.

    Attributes:
        controller: Turns its set-point into torques.
        history: What was measured.
        peak_force: Largest filtered force since it was last read [N].
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        gains: ImpedanceGains,
        sensing: Sensing,
        finger_open_width: float = 0.0,
        name: str = "",
        number: int = 0,
    ) -> None:
        self.model, self.data, self.sensing, self.name = model, data, sensing, name
        self.place = ArmPlace.of(model, name)
        self.controller = ImpedanceController(model, data, gains, self.place)
        self._number = (number,) if number else ()
        self._what = f"state of the arm {name}" if name else "robot state"
        self._finger_open_width = finger_open_width
        self._rng = np.random.default_rng(0)
        self._delay = seconds_to_ns(sensing.delay)
        self.sample_every = max(1, round(sensing.period / model.opt.timestep))
        """Physics steps between two samples."""
        self._filter = WrenchFilter(sensing.wrench_cutoff, model.opt.timestep, self.sample_every)
        self._tare = np.zeros(6)
        self.wrench_bias, self._force_error = sensing.wrench_bias, np.zeros(3)
        self._drift, self._reset_at = np.zeros(3), 0  # [N/s], [ns]
        self.peak_force = 0.0
        self._tcp = model.site(self.place.prefix + "tcp").id
        # Views are made once: at the physics rate, slicing costs as much as computing.
        first = model.sensor(self.place.prefix + "wrist_force").adr[0]
        self.wrist = data.sensordata[first : first + 6]
        """The raw wrench, as of the last physics step."""
        self.raw_wrenches = self._filter.inputs
        """Those of a sample, which the clock fills in."""
        self._tcp_position, self._tcp_matrix = data.site_xpos[self._tcp], data.site_xmat[self._tcp]
        self._wrist_to_tcp = self._wrench_transform(model.site(self.place.prefix + "wrist_ft").id)
        base = data.body(self.place.prefix + "base")
        self._T_world_base: Pose | None = None  # None: they are the same
        if name:
            self._T_world_base = Pose(base.xpos.copy(), base.xquat.copy())
        self.history = SampleHistory(max(sensing.delay, sensing.camera_delay), sensing.period)

    def go_to(self, point: SetPoint) -> None:
        """Follow a set-point."""
        target = point.T_base_target if self._T_world_base is None else self._T_world_base @ point.T_base_target
        self.controller.set_target(target, point.wrench)
        if point.gripper_width is not None:
            self.set_fingers(point.gripper_width)

    def tcp(self) -> Pose:
        """Return the true pose of the tcp in the base frame."""
        pose = self.controller.pose()
        return pose if self._T_world_base is None else self._T_world_base.inverse() @ pose

    def set_fingers(self, width: float | None) -> None:
        """Command a distance between the fingers [m], at most that of open ones; None: open."""
        opened = self._finger_open_width
        self.data.ctrl[self.place.fingers] = 0.5 * (opened if width is None else min(max(width, 0.0), opened))

    def draw_errors(self, seed: int) -> None:
        """Seed the noise of an episode, and draw the errors that its wrist sensor has all along."""
        self._rng = np.random.default_rng([seed, 12, *self._number] if self._number else seed)
        self._force_error = self.wrench_bias * drawn_direction(np.random.default_rng([seed, 6, *self._number]))
        self._drift = self.sensing.wrench_drift * drawn_direction(np.random.default_rng([seed, 10, *self._number]))

    def tare(self, now: int) -> None:
        """Take the present wrench for that of no contact, and forget what was measured before."""
        self._tare[:] = self.wrist
        self._filter.restart(self._tare)
        self.history.clear()
        self.sample(now, keep=True)
        self.peak_force, self._reset_at = 0.0, now

    def filter_wrench(self) -> None:
        """Take the raw wrenches of a sample into the filter."""
        self._filter.update()

    def sample(self, now: int, *, keep: bool) -> None:
        """Update the peak force and, if `keep`, record the present state."""
        # The sensor gives what the parent exerts on the child; in equilibrium that is minus the contact force.
        wrench = self._tare - self._filter.value
        x, y, z = wrench[:3].tolist()
        self.peak_force = max(self.peak_force, math.sqrt(x * x + y * y + z * z))
        if not keep:
            return
        data, velocity = self.data, np.empty(6)
        mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_SITE, self._tcp, velocity, 0)
        self.history.add(
            SensedState(
                stamp=now,
                qpos=data.qpos.copy(),
                qvel=data.qvel.copy(),
                tcp_position=self._tcp_position.copy(),
                tcp_matrix=self._tcp_matrix.copy(),
                tcp_velocity=velocity,
                wrench=wrench,
            )
        )

    def measure(self, now: int) -> RobotState:
        """Return the newest state that the sensors' delay allows, without frames, in the arm's base frame.

        Raises:
            StaleStateError: if it is too old.
        """
        sensing = self.sensing
        sample = self.history.at(now - self._delay)
        age = (now - sample.stamp) / NS_PER_S
        if age > sensing.max_age:
            raise StaleStateError(age, sensing.max_age, what=self._what)
        noise = self._rng.standard_normal(12)
        turn = quat_from_rotvec(sensing.rotation_noise * noise[:3])
        wrench = self._wrist_to_tcp @ sample.wrench
        wrench[:3] += self._force_error + sensing.force_noise * noise[3:6]
        wrench[:3] += (sample.stamp - self._reset_at) / NS_PER_S * self._drift
        wrench[3:] += sensing.torque_noise * noise[6:9]
        pose = Pose(
            sample.tcp_position + sensing.position_noise * noise[9:],
            quat_multiply(quat_from_matrix(sample.tcp_matrix.reshape(3, 3)), turn),
        )
        linear, angular = sample.tcp_velocity[3:], sample.tcp_velocity[:3]
        if self._T_world_base is not None:
            pose, back = self._T_world_base.inverse() @ pose, quat_conjugate(self._T_world_base.quaternion)
            linear, angular = quat_rotate(back, linear), quat_rotate(back, angular)
        peak_force, self.peak_force = self.peak_force, 0.0
        fingers = sample.qpos[self.place.finger_joints]
        return RobotState(
            stamp=sample.stamp,
            T_base_tcp=pose,
            twist=np.concatenate((linear, angular)),
            wrench=wrench,
            joint_position=sample.qpos[self.place.qpos].copy(),
            joint_velocity=sample.qvel[self.place.dof].copy(),
            gripper_width=float(fingers[0] + fingers[1]) if self._finger_open_width else 0.0,
            peak_force=peak_force,
        )

    def _wrench_transform(self, wrist: int) -> np.ndarray:
        """Return the matrix that moves a wrench from the wrist sensor to the tcp, rigidly connected. Shape (6, 6)."""
        data = self.data
        R_base_tcp = self._tcp_matrix.reshape(3, 3)
        R_tcp_wrist = R_base_tcp.T @ data.site_xmat[wrist].reshape(3, 3)
        x, y, z = R_base_tcp.T @ (data.site_xpos[wrist] - self._tcp_position)
        lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.block([[R_tcp_wrist, np.zeros((3, 3))], [lever @ R_tcp_wrist, R_tcp_wrist]])
