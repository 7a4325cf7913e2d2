"""Playback of recorded motions in the model of a task, for comparison with the motion of the arm."""

from __future__ import annotations

import copy
from dataclasses import replace

import mujoco
import numpy as np

from robot_rl.config.components import SimulationConfig
from robot_rl.env.playback import Motion
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.place import ArmPlace
from sim.controller import ImpedanceController, ImpedanceGains
from sim.sensing import seconds_to_ns
from sim.settings import apply_settings, settings_of


class MujocoPlayback:
    """`Playback` over MuJoCo.

    Args:
        model: Scene with the arm first and a `tcp` site; it is copied.
        gains: Gains of the impedance controller.
    """

    def __init__(self, model: mujoco.MjModel, gains: ImpedanceGains) -> None:
        self._model, self._gains = copy.copy(model), gains
        self.own = settings_of(model, gains)

    def __call__(self, motion: Motion, simulation: SimulationConfig) -> list[Pose]:
        """Play back a motion; see `Playback`."""
        model = self._model
        apply_settings(self.own, model, self._gains)  # not those of the motion before
        gains = apply_settings(simulation, model, self._gains)
        # A delay of all commands delays the motion: it is applied to the sample times, not in whole steps.
        delay, gains = seconds_to_ns(gains.delay), replace(gains, delay=0.0)
        data = mujoco.MjData(model)
        start = motion.poses[0]
        try:
            data.qpos[ArmPlace.of(model).qpos] = solve_ik(model, "tcp", start.position, start.quaternion)
        except ValueError as error:
            raise ConfigError(f"{motion.name}: starts at a pose that this arm cannot reach: {error}") from error
        mujoco.mj_forward(model, data)
        controller, poses = ImpedanceController(model, data, gains), list[Pose]()
        dt, first = seconds_to_ns(model.opt.timestep), int(motion.stamps[0])
        commands = iter(zip((motion.command_stamps - first).tolist(), motion.targets, strict=True))
        sent, target = next(commands, (np.inf, start))
        now, before = 0, start
        for stamp in (motion.stamps - first - delay).tolist():
            while now < stamp:
                while sent <= now:
                    controller.set_target(target)
                    sent, target = next(commands, (np.inf, start))
                if now + dt >= stamp:
                    before = controller.pose()
                controller.step()
                mujoco.mj_step2(model, data)
                mujoco.mj_step1(model, data)
                now += dt
            poses.append(_between(controller.pose(), before, (now - max(stamp, 0)) / dt))
        return poses


def _between(a: Pose, b: Pose, share: float) -> Pose:
    """Interpolate from `a` (0) to `b` (1), which are a physics step apart."""
    turn = rotvec_from_quat(quat_multiply(quat_conjugate(a.quaternion), b.quaternion))
    change = Pose.from_rotvec(np.zeros(3), share * turn)
    return Pose(a.position + share * (b.position - a.position), quat_multiply(a.quaternion, change.quaternion))
