"""`RobotIO` over MuJoCo: the simulated arm behind the contract that the real one fulfils.

It knows the model, the impedance controller and the sensors; it does not know tasks, rewards or learning. The
simulation is its own clock: sleeping until a time is what makes the physics advance to it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

import mujoco
import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command, RobotState
from robot_rl.errors import ActionError, DivergedError, StaleStateError
from robot_rl.geometry import Pose, quat_from_matrix, quat_from_rotvec, quat_multiply
from sim.arm import ARM_DOF
from sim.controller import ImpedanceController, ImpedanceGains
from sim.sensing import Sample, SampleHistory, Sensing, seconds_to_ns


class Cameras(Protocol):
    """What the robot needs of a renderer."""

    def render(self, qpos: np.ndarray, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """RGB frames by camera, of the scene with these joint positions."""
        ...


class MujocoRobotIO:
    """The simulated arm; also the clock that drives it.

    Args:
        model: Scene with the arm first, a `tcp` site, and the wrist sensors.
        gains: Impedance controller.
        sensing: Delays and noise.
        finger_open_width: Distance between open fingers [m]; 0 for a tool without fingers.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        gains: ImpedanceGains | None = None,
        sensing: Sensing | None = None,
        finger_open_width: float = 0.0,
    ) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.sensing = sensing or Sensing()
        self._cameras: Cameras | None = None
        self._finger_open_width = finger_open_width
        self._rng = np.random.default_rng(0)
        mujoco.mj_forward(model, self.data)
        self.controller = ImpedanceController(model, self.data, gains or ImpedanceGains())
        self._dt = seconds_to_ns(model.opt.timestep)
        self._steps = 0
        self._expires: int | None = None
        self._stop = threading.Event()
        self._tcp, self._wrist = model.site("tcp").id, model.site("wrist_ft").id
        span = max(self.sensing.delay, self.sensing.camera_delay)
        self.history = SampleHistory(span, self.sensing.period)
        self._sample_every = max(1, round(self.sensing.period / model.opt.timestep))
        self._filter = 1.0 - np.exp(-2.0 * np.pi * self.sensing.wrench_cutoff * model.opt.timestep)
        self._wrench, self._tare = np.zeros(6), np.zeros(6)
        self._twist = np.zeros(6)
        self._peak_force = 0.0

    def attach_cameras(self, cameras: Cameras) -> None:
        """From now on `read` brings frames."""
        self._cameras = cameras

    # ------------------------------------------------------------------ clock

    def now(self) -> int:
        """Simulated time [ns]."""
        return self._steps * self._dt

    def sleep_until(self, stamp: int) -> None:
        """Advances the physics until `stamp` [ns].

        Raises:
            DivergedError: if the state is not finite any more.
        """
        while self.now() < stamp:
            self._advance()
        if not np.isfinite(self.data.qpos).all():
            raise DivergedError("the simulation left the finite numbers; see the last commands of the episode")

    def _advance(self) -> None:
        """One physics step, with control and sensing."""
        if self._stop.is_set() or (self._expires is not None and self.now() >= self._expires):
            self._stop.clear()
            self._expires = None
            self.controller.reset()
        mujoco.mj_step1(self.model, self.data)
        self.controller.step()
        mujoco.mj_step2(self.model, self.data)
        self._steps += 1
        self._wrench += self._filter * (self.data.sensordata[:6] - self._wrench)
        if self._steps % self._sample_every == 0:
            self._take_sample()

    # ---------------------------------------------------------------- RobotIO

    def read(self) -> RobotState:
        """The newest state that the sensors' delay allows."""
        sensing, rng = self.sensing, self._rng
        sample = self.history.at(self.now() - seconds_to_ns(sensing.delay))
        age = (self.now() - sample.stamp) / NS_PER_S
        if age > sensing.max_age:
            raise StaleStateError(age, sensing.max_age)
        quaternion = quat_multiply(
            quat_from_matrix(sample.tcp_matrix), quat_from_rotvec(rng.normal(0.0, sensing.rotation_noise, 3))
        )
        noise = np.concatenate((rng.normal(0.0, sensing.force_noise, 3), rng.normal(0.0, sensing.torque_noise, 3)))
        images: Mapping[str, np.ndarray] = {}
        if self._cameras is not None:
            frame = self.history.at(self.now() - seconds_to_ns(sensing.camera_delay))
            images = self._cameras.render(frame.qpos, rng)
        peak_force, self._peak_force = self._peak_force, 0.0
        return RobotState(
            stamp=sample.stamp,
            T_base_tcp=Pose(sample.tcp_position + rng.normal(0.0, sensing.position_noise, 3), quaternion),
            twist=sample.tcp_twist.copy(),
            wrench=sample.wrench + noise,
            joint_position=sample.qpos[:ARM_DOF].copy(),
            joint_velocity=sample.qvel[:ARM_DOF].copy(),
            gripper_width=float(sample.qpos[ARM_DOF] + sample.qpos[ARM_DOF + 1]) if self._finger_open_width else 0.0,
            peak_force=peak_force,
            images=images,
        )

    def command(self, command: Command) -> None:
        """Follows `command` until it expires or is replaced; a stop that comes later wins."""
        target = command.T_base_target
        if not (np.isfinite(target.position).all() and np.isfinite(target.quaternion).all()):
            raise ActionError(f"set-point has a NaN or an infinity: {target}")
        if command.ttl <= 0:
            raise ActionError(f"ttl must be positive, got {command.ttl} s")
        expires = command.stamp + seconds_to_ns(command.ttl)
        if expires <= self.now():
            raise ActionError(f"command expired {(self.now() - expires) / NS_PER_S:.3f} s before it arrived")
        self._expires = expires
        self.controller.set_target(target)
        if command.gripper_width is not None and self._finger_open_width:
            width = float(np.clip(command.gripper_width, 0.0, self._finger_open_width))
            self.data.ctrl[ARM_DOF:] = 0.5 * width

    def stop(self) -> None:
        """Holds the arm where it is from the next physics step on."""
        self._stop.set()

    # ---------------------------------------------------------- for the task

    def reset(self, qpos: np.ndarray, seed: int) -> None:
        """Puts the scene into a state at rest, settles it, tares the wrist sensor and starts the sensor noise anew.

        Args:
            qpos: All joint positions, shape (nq,).
            seed: Seeds the sensor noise.
        """
        self._rng = np.random.default_rng(seed)
        mocap = self.data.mocap_pos.copy(), self.data.mocap_quat.copy()
        mujoco.mj_resetData(self.model, self.data)
        self.data.mocap_pos[:], self.data.mocap_quat[:] = mocap
        self.data.qpos[:] = qpos
        self.data.ctrl[ARM_DOF:] = 0.5 * self._finger_open_width
        mujoco.mj_forward(self.model, self.data)
        self._expires = None
        self._stop.clear()
        self.controller.reset()
        self._wrench[:] = self.data.sensordata[:6]
        self._tare = np.zeros(6)
        self.history.clear()
        for _ in range(50):
            self._advance()
        self._tare = self.data.sensordata[:6].copy()
        self._wrench[:] = self._tare
        self.history.clear()
        self._take_sample()
        self._peak_force = 0.0

    def _take_sample(self) -> None:
        data = self.data
        mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_SITE, self._tcp, self._twist, 0)
        wrench = self._wrench_at_tcp()
        self._peak_force = max(self._peak_force, float(np.sqrt(wrench[:3] @ wrench[:3])))
        self.history.add(
            Sample(
                stamp=self.now(),
                qpos=data.qpos.copy(),
                qvel=data.qvel.copy(),
                tcp_position=data.site_xpos[self._tcp].copy(),
                tcp_matrix=data.site_xmat[self._tcp].reshape(3, 3).copy(),
                tcp_twist=np.concatenate((self._twist[3:], self._twist[:3])),
                wrench=wrench,
            )
        )

    def _wrench_at_tcp(self) -> np.ndarray:
        """Filtered, tared wrench on the tool, moved from the wrist sensor to the tcp, in the tcp frame. Shape (6,).

        MuJoCo's sensor gives what the parent exerts on the child; in equilibrium that is minus the contact force.
        """
        data = self.data
        R_base_wrist = data.site_xmat[self._wrist].reshape(3, 3)
        R_base_tcp = data.site_xmat[self._tcp].reshape(3, 3)
        wrench = self._tare - self._wrench
        force, torque = R_base_wrist @ wrench[:3], R_base_wrist @ wrench[3:]
        lever = data.site_xpos[self._wrist] - data.site_xpos[self._tcp]
        torque = torque + np.cross(lever, force)
        return np.concatenate((R_base_tcp.T @ force, R_base_tcp.T @ torque))
