"""Simulated robot: implementation of `RobotIO` and its clock over MuJoCo, for one arm or several in one scene.

It combines the model with its arms (`SensedArm`); it is independent of tasks, rewards and learning. The simulation is
its own clock: sleeping until a time advances the physics to it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import mujoco
import numpy as np

from robot_rl.config.components import SimulationConfig
from robot_rl.config.randomization import DynamicsConfig, WorldConfig
from robot_rl.env.robot_io import Command, RobotState, check_command
from robot_rl.errors import DivergedError, UnknownNameError
from sim.arm.place import ArmPlace
from sim.controller import ImpedanceController, ImpedanceGains
from sim.randomize import DynamicsRandomizer
from sim.sensed_arm import SensedArm
from sim.sensing import SampleHistory, SensedState, Sensing, seconds_to_ns
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
    """The simulated arm, or several; also the clock that drives them.

    Args:
        model: Scene with the arms first, each with a `tcp` site and wrist sensors.
        gains: Gains of the impedance controller.
        simulation: Settings that differ from model and gains.
        sensing: Delays and noise.
        finger_open_width: Distance between open fingers [m]; 0 for a tool without fingers.
        arms: Names of several arms, in the order of the scene; the names of their parts begin with it. Empty for one.

    Attributes:
        arms: The arms, by name; a single one has none.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        gains: ImpedanceGains | None = None,
        simulation: SimulationConfig | None = None,
        sensing: Sensing | None = None,
        finger_open_width: float = 0.0,
        arms: Sequence[str] = (),
    ) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.sensing = sensing or Sensing()
        self._cameras: Cameras | None = None
        self._randomizer: DynamicsRandomizer | None = None
        self._pixel_rng = np.random.default_rng(0)
        mujoco.mj_forward(model, self.data)
        self._names = tuple(arms)
        places = [ArmPlace.of(model, name) for name in self._names or ("",)]
        self.gains = apply_settings(simulation or SimulationConfig(), model, gains or ImpedanceGains(), places)
        self.arms = {
            name: SensedArm(model, self.data, self.gains, self.sensing, finger_open_width, name, number)
            for number, name in enumerate(self._names or ("",))
        }
        self._each = tuple(self.arms.values())
        self._dt = seconds_to_ns(model.opt.timestep)
        self._steps = 0
        self._expires = NEVER
        self._stop = threading.Event()
        self._camera_delay = seconds_to_ns(self.sensing.camera_delay)
        self._sample_every = self._each[0].sample_every
        for arm in self._each:
            arm.sample(self.now(), keep=True)

    @property
    def controller(self) -> ImpedanceController:
        """The controller of the first arm."""
        return self._each[0].controller

    @property
    def history(self) -> SampleHistory:
        """What was measured of the first arm."""
        return self._each[0].history

    def attach_cameras(self, cameras: Cameras) -> None:
        """Attach cameras whose frames `read` returns."""
        self._cameras = cameras

    def randomize(self, dynamics: DynamicsConfig) -> None:
        """Draw the dynamics anew at every `reset`; without a width nothing is drawn."""
        randomizer = DynamicsRandomizer(self.model, self.gains, dynamics, [arm.place for arm in self._each])
        self._randomizer = None if randomizer.draws_nothing else randomizer

    def disturb(self, world: WorldConfig) -> None:
        """Change friction, delay and the force sensor; to be called once, before `randomize`."""
        self.model.geom_friction[:, 0] *= world.friction
        self.gains = replace(self.gains, delay=self.gains.delay + world.command_delay)
        for arm in self._each:
            arm.controller.set_gains(self.gains)
            arm.wrench_bias = self.sensing.wrench_bias + world.wrench_bias

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
        stopped, step1, step2 = self._stop.is_set, mujoco.mj_step1, mujoco.mj_step2
        controls = [arm.controller.step for arm in self._each]
        wrists = [(arm.raw_wrenches, arm.wrist) for arm in self._each]
        for _ in range(steps):
            if stopped() or self._steps * dt >= self._expires:
                self._stop.clear()
                self._expires = NEVER
                for arm in self._each:
                    arm.controller.reset()
            for control in controls:
                control()
            step2(model, data)
            step1(model, data)
            slot = self._steps % sample_every
            for raw, wrist in wrists:
                raw[slot] = wrist
            self._steps += 1
            if self._steps % sample_every == 0:
                for arm in self._each:
                    arm.filter_wrench()
                    arm.sample(self._steps * dt, keep=self._steps * dt >= samples_from)

    # ---------------------------------------------------------------- RobotIO

    def read(self, *, images: bool = True) -> RobotState:
        """Return the newest state that the sensors' delay allows.

        Args:
            images: Whether the state holds frames; `frames` returns them at another rate.
        """
        now = self.now()
        states = {name: arm.measure(now) for name, arm in self.arms.items()}
        frames: Mapping[str, np.ndarray] = self.frames()[1] if images else {}
        if self._names:
            return RobotState.of_arms(states, frames)
        return replace(states[""], images=frames)

    def frames(self) -> tuple[int, Mapping[str, np.ndarray]]:
        """Return the newest frames that the cameras' delay allows, by camera, and their stamp [ns]."""
        sample = self.pictured()
        return sample.stamp, self._cameras.render(sample.qpos, self._pixel_rng) if self._cameras is not None else {}

    def pictured(self) -> SensedState:
        """Return the state that the newest frames show, as late as they are."""
        return self.history.at(self.now() - self._camera_delay)

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
        expires = check_command(command, self.now(), self._names)
        self._stop.clear()
        self._expires = expires
        for name, point in command.set_points.items():
            self.arms[name].go_to(point)

    def stop(self) -> None:
        """Hold every arm at its pose from the next physics step on."""
        self._stop.set()

    # ---------------------------------------------------------- for the task

    def reset(self, qpos: np.ndarray, seed: int, gripper_width: float | None = None) -> None:
        """Set the scene to a state at rest, settle it, tare the wrist sensors and restart the sensor noise.

        Args:
            qpos: All joint positions, shape (nq,).
            seed: Seeds the sensor noise.
            gripper_width: Distance between the fingers that is commanded at first [m]; None: open.
        """
        self._pixel_rng = np.random.default_rng([seed, 3])
        for arm in self._each:
            arm.draw_errors(seed)
        if self._cameras is not None:
            self._cameras.reset(seed)
        if self._randomizer is not None:
            gains = self._randomizer.draw(seed)
            for arm in self._each:
                arm.controller.set_gains(gains)
        mocap = self.data.mocap_pos.copy(), self.data.mocap_quat.copy()
        mujoco.mj_resetData(self.model, self.data)
        self.data.mocap_pos[:], self.data.mocap_quat[:] = mocap
        self.data.qpos[:] = qpos
        for arm in self._each:
            arm.set_fingers(gripper_width)
        mujoco.mj_forward(self.model, self.data)
        self._steps += -self._steps % self._sample_every  # so that an episode does not depend on what came before
        self._expires = NEVER
        self._stop.clear()
        for arm in self._each:
            arm.controller.reset()
        self._advance(SETTLE_STEPS, samples_from=NEVER)
        for arm in self._each:
            arm.tare(self.now())
