"""Simulated arm: implementation of `RobotIO` and its clock over MuJoCo.

It combines the model, the impedance controller and the sensors; it is independent of tasks, rewards and learning. The
simulation is its own clock: sleeping until a time advances the physics to it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import mujoco
import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.config.components import SimulationConfig
from robot_rl.config.randomization import DynamicsConfig, WorldConfig
from robot_rl.env.robot_io import Command, RobotState, check_command
from robot_rl.errors import DivergedError, StaleStateError, UnknownNameError
from robot_rl.geometry import Pose, quat_from_matrix, quat_from_rotvec, quat_multiply
from sim.arm import ARM_DOF
from sim.controller import ImpedanceController, ImpedanceGains
from sim.randomize import DynamicsRandomizer, drawn_direction
from sim.sensing import SampleHistory, SensedState, Sensing, WrenchFilter, seconds_to_ns
from sim.settings import apply_settings

NEVER = 2**63 - 1  # [ns]
SETTLE_STEPS = 50
"""Physics steps between putting the scene into its start state and the first observation."""


class Cameras(Protocol):
    """Renderer of camera frames."""

    def render(self, qpos: np.ndarray, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Render RGB frames by camera, of the scene with these joint positions."""
        ...

    def matrix(self, name: str) -> np.ndarray:
        """Return the camera matrix, shape (3, 3) [px]."""
        ...

    def reset(self, seed: int) -> None:
        """Start an episode with this seed."""
        ...


class MujocoRobotIO:
    """The simulated arm; also the clock that drives it.

    Args:
        model: Scene with the arm first, a `tcp` site, and the wrist sensors.
        gains: Gains of the impedance controller.
        simulation: Settings that differ from model and gains.
        sensing: Delays and noise.
        finger_open_width: Distance between open fingers [m]; 0 for a tool without fingers.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        gains: ImpedanceGains | None = None,
        simulation: SimulationConfig | None = None,
        sensing: Sensing | None = None,
        finger_open_width: float = 0.0,
    ) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.sensing = sensing or Sensing()
        self._cameras: Cameras | None = None
        self._randomizer: DynamicsRandomizer | None = None
        self._finger_open_width = finger_open_width
        self._rng, self._pixel_rng = np.random.default_rng(0), np.random.default_rng(0)
        mujoco.mj_forward(model, self.data)
        self.gains = apply_settings(simulation or SimulationConfig(), model, gains or ImpedanceGains())
        self.controller = ImpedanceController(model, self.data, self.gains)
        self._dt = seconds_to_ns(model.opt.timestep)
        self._steps = 0
        self._expires = NEVER
        self._stop = threading.Event()
        self._delay, self._camera_delay = seconds_to_ns(self.sensing.delay), seconds_to_ns(self.sensing.camera_delay)
        self._sample_every = max(1, round(self.sensing.period / model.opt.timestep))
        self._filter = WrenchFilter(self.sensing.wrench_cutoff, model.opt.timestep, self._sample_every)
        self._tare = np.zeros(6)
        self._bias, self._force_error = self.sensing.wrench_bias, np.zeros(3)
        self._drift, self._reset_at = np.zeros(3), 0  # [N/s], [ns]
        self._peak_force = 0.0
        self._tcp = model.site("tcp").id
        # Views are made once: at the physics rate, slicing costs as much as computing.
        self._wrist_sensor = self.data.sensordata[:6]
        self._tcp_position, self._tcp_matrix = self.data.site_xpos[self._tcp], self.data.site_xmat[self._tcp]
        self._wrist_to_tcp = self._wrench_transform(model.site("wrist_ft").id)
        self.history = SampleHistory(max(self.sensing.delay, self.sensing.camera_delay), self.sensing.period)
        self._record_state(keep=True)

    def attach_cameras(self, cameras: Cameras) -> None:
        """Attach cameras whose frames `read` returns."""
        self._cameras = cameras

    def randomize(self, dynamics: DynamicsConfig) -> None:
        """Draw the dynamics anew at every `reset`; without a width nothing is drawn."""
        randomizer = DynamicsRandomizer(self.model, self.gains, dynamics)
        self._randomizer = None if randomizer.draws_nothing else randomizer

    def disturb(self, world: WorldConfig) -> None:
        """Change friction, delay and the force sensor; to be called once, before `randomize`."""
        self.model.geom_friction[:, 0] *= world.friction
        self.gains = replace(self.gains, delay=self.gains.delay + world.command_delay)
        self.controller.set_gains(self.gains)
        self._bias = self.sensing.wrench_bias + world.wrench_bias

    # ------------------------------------------------------------------ clock

    def now(self) -> int:
        """Return the simulated time [ns]."""
        return self._steps * self._dt

    def sleep_until(self, stamp: int) -> None:
        """Advance the physics until `stamp` [ns].

        Raises:
            DivergedError: if the state is not finite any more.
        """
        steps = -(-(stamp - self.now()) // self._dt)
        # Earlier samples cannot be read after the sleep; they only contribute to the peak force.
        self._advance(steps, samples_from=stamp - self.history.span)
        if not np.isfinite(self.data.qpos).all():
            raise DivergedError("the simulation left the finite numbers; see the last commands of the episode")

    def _advance(self, steps: int, samples_from: int) -> None:
        """Run physics steps, each with control and sensing; samples are kept from time `samples_from` [ns] on.

        Before and after each step, what MuJoCo derives from positions and velocities is up to date.
        """
        model, data, dt, sample_every = self.model, self.data, self._dt, self._sample_every
        control, stopped, step1, step2 = self.controller.step, self._stop.is_set, mujoco.mj_step1, mujoco.mj_step2
        wrist, raw_wrenches = self._wrist_sensor, self._filter.inputs
        for _ in range(steps):
            if stopped() or self._steps * dt >= self._expires:
                self._stop.clear()
                self._expires = NEVER
                self.controller.reset()
            control()
            step2(model, data)
            step1(model, data)
            raw_wrenches[self._steps % sample_every] = wrist
            self._steps += 1
            if self._steps % sample_every == 0:
                self._filter.update()
                self._record_state(keep=self._steps * dt >= samples_from)

    # ---------------------------------------------------------------- RobotIO

    def read(self, *, images: bool = True) -> RobotState:
        """Return the newest state that the sensors' delay allows.

        Args:
            images: Whether the state holds frames; `frames` returns them at another rate.
        """
        sensing = self.sensing
        sample = self.history.at(self.now() - self._delay)
        age = (self.now() - sample.stamp) / NS_PER_S
        if age > sensing.max_age:
            raise StaleStateError(age, sensing.max_age)
        noise = self._rng.standard_normal(12)
        turn = quat_from_rotvec(sensing.rotation_noise * noise[:3])
        wrench = self._wrist_to_tcp @ sample.wrench
        wrench[:3] += self._force_error + sensing.force_noise * noise[3:6]
        wrench[:3] += (sample.stamp - self._reset_at) / NS_PER_S * self._drift
        wrench[3:] += sensing.torque_noise * noise[6:9]
        frames: Mapping[str, np.ndarray] = self.frames()[1] if images else {}
        peak_force, self._peak_force = self._peak_force, 0.0
        return RobotState(
            stamp=sample.stamp,
            T_base_tcp=Pose(
                sample.tcp_position + sensing.position_noise * noise[9:],
                quat_multiply(quat_from_matrix(sample.tcp_matrix.reshape(3, 3)), turn),
            ),
            twist=np.concatenate((sample.tcp_velocity[3:], sample.tcp_velocity[:3])),
            wrench=wrench,
            joint_position=sample.qpos[:ARM_DOF].copy(),
            joint_velocity=sample.qvel[:ARM_DOF].copy(),
            gripper_width=float(sample.qpos[ARM_DOF] + sample.qpos[ARM_DOF + 1]) if self._finger_open_width else 0.0,
            peak_force=peak_force,
            images=frames,
        )

    def frames(self) -> tuple[int, Mapping[str, np.ndarray]]:
        """Return the newest frames that the cameras' delay allows, by camera, and their stamp [ns]."""
        sample = self.history.at(self.now() - self._camera_delay)
        return sample.stamp, self._cameras.render(sample.qpos, self._pixel_rng) if self._cameras is not None else {}

    def camera_matrix(self, name: str) -> np.ndarray:
        """Return the camera matrix, shape (3, 3) [px].

        Raises:
            UnknownNameError: if there are no cameras.
        """
        if self._cameras is None:
            raise UnknownNameError("camera", name, ())
        return self._cameras.matrix(name)

    def command(self, command: Command) -> None:
        """Follow `command` until it expires or is replaced; a later stop takes precedence."""
        expires = check_command(command, self.now())
        self._stop.clear()
        self._expires = expires
        self.controller.set_target(command.T_base_target)
        if command.gripper_width is not None and self._finger_open_width:
            self.data.ctrl[ARM_DOF:] = 0.5 * min(max(command.gripper_width, 0.0), self._finger_open_width)

    def stop(self) -> None:
        """Hold the arm at its pose from the next physics step on."""
        self._stop.set()

    # ---------------------------------------------------------- for the task

    def reset(self, qpos: np.ndarray, seed: int) -> None:
        """Set the scene to a state at rest, settle it, tare the wrist sensor and restart the sensor noise.

        Args:
            qpos: All joint positions, shape (nq,).
            seed: Seeds the sensor noise.
        """
        self._rng, self._pixel_rng = np.random.default_rng(seed), np.random.default_rng([seed, 3])
        self._force_error = self._bias * drawn_direction(np.random.default_rng([seed, 6]))
        self._drift = self.sensing.wrench_drift * drawn_direction(np.random.default_rng([seed, 10]))
        if self._cameras is not None:
            self._cameras.reset(seed)
        if self._randomizer is not None:
            self.controller.set_gains(self._randomizer.draw(seed))
        mocap = self.data.mocap_pos.copy(), self.data.mocap_quat.copy()
        mujoco.mj_resetData(self.model, self.data)
        self.data.mocap_pos[:], self.data.mocap_quat[:] = mocap
        self.data.qpos[:] = qpos
        self.data.ctrl[ARM_DOF:] = 0.5 * self._finger_open_width
        mujoco.mj_forward(self.model, self.data)
        self._steps += -self._steps % self._sample_every  # so that an episode does not depend on what came before
        self._expires = NEVER
        self._stop.clear()
        self.controller.reset()
        self._advance(SETTLE_STEPS, samples_from=NEVER)
        self._tare[:] = self._wrist_sensor
        self._filter.restart(self._tare)
        self.history.clear()
        self._record_state(keep=True)
        self._peak_force, self._reset_at = 0.0, self.now()

    def _record_state(self, *, keep: bool) -> None:
        """Update the peak force and, if `keep`, record the present state."""
        # The sensor gives what the parent exerts on the child; in equilibrium that is minus the contact force.
        wrench = self._tare - self._filter.value
        x, y, z = wrench[:3].tolist()
        self._peak_force = max(self._peak_force, math.sqrt(x * x + y * y + z * z))
        if not keep:
            return
        data, velocity = self.data, np.empty(6)
        mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_SITE, self._tcp, velocity, 0)
        self.history.add(
            SensedState(
                stamp=self.now(),
                qpos=data.qpos.copy(),
                qvel=data.qvel.copy(),
                tcp_position=self._tcp_position.copy(),
                tcp_matrix=self._tcp_matrix.copy(),
                tcp_velocity=velocity,
                wrench=wrench,
            )
        )

    def _wrench_transform(self, wrist: int) -> np.ndarray:
        """Return the matrix that moves a wrench from the wrist sensor to the tcp, rigidly connected. Shape (6, 6)."""
        data = self.data
        R_base_tcp = self._tcp_matrix.reshape(3, 3)
        R_tcp_wrist = R_base_tcp.T @ data.site_xmat[wrist].reshape(3, 3)
        x, y, z = R_base_tcp.T @ (data.site_xpos[wrist] - self._tcp_position)
        lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return np.block([[R_tcp_wrist, np.zeros((3, 3))], [lever @ R_tcp_wrist, R_tcp_wrist]])
