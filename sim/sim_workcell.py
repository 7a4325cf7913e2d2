"""Assembly of a simulated workcell: robot, task, operator and cameras."""

from __future__ import annotations

import contextlib
from typing import Protocol

from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.config.randomization import DynamicsConfig
from robot_rl.data.schema import Source
from robot_rl.env.task import Operator, Task, Workcell, WorkcellOptions
from sim.arm.link_points import LinkPoints
from sim.mujoco_robot_io import MujocoRobotIO
from sim.playback import MujocoPlayback
from sim.real_time import RealTimeRobotIO
from sim.render import MujocoCameras, SceneView, camera_mounts
from sim.scene_state import MujocoScene

ARM_WORLD = ("wrench_bias", "command_delay", "brightness", "camera_position", "camera_rotation")
"""Settings of `WorldConfig` that every scene of the simulated arm has."""


class Intervening(Operator, Protocol):
    """A scripted operator of one arm or several."""

    def use(self, intervention: InterventionConfig) -> None:
        """Intervene as these profiles say, from the next reset on; demonstrations stay the same."""
        ...


def simulated_workcell(
    io: MujocoRobotIO,
    task: Task,
    operator: Intervening,
    options: WorkcellOptions,
    dynamics: DynamicsConfig | None = None,
) -> Workcell:
    """Make the workcell, with cameras if the options name any.

    Args:
        io: The simulated arm, or several.
        task: The task.
        operator: Its scripted operator.
        options: The options.
        dynamics: The task's own draws of the dynamics; those of the options are at least as wide.

    Raises:
        UnknownNameError: for a camera that the scene does not have.
        RenderError: if this machine cannot render.
    """
    io.disturb(options.world)
    operator.use(options.intervention)
    resources, view = contextlib.ExitStack(), SceneView(io.model, io.data)
    resources.callback(view.close)
    if options.cameras:
        looks, noise = options.randomization.looks, io.sensing.pixel_noise
        cameras = MujocoCameras(io.model, io.data, options.cameras, options.image_size, noise, looks, options.world)
        io.attach_cameras(cameras)
        resources.callback(cameras.close)
    io.randomize(options.randomization.dynamics.widened(dynamics or DynamicsConfig()))
    arm: MujocoRobotIO | RealTimeRobotIO = io
    if options.realtime:
        task.reset(seed=0)  # its time starts now, and a new simulation is not at the start pose
        arm = RealTimeRobotIO(io)
    one = len(io.arms) == 1  # playback and mounts are in the base frame of one
    playback = MujocoPlayback(io.model, io.gains) if one else None
    mounts = camera_mounts(io.model, options.cameras) if one else {}
    return Workcell(
        arm,
        arm,
        task,
        operator,
        Source.SCRIPT,
        resources.close,
        playback,
        mounts=mounts,
        view=view.picture,
        takes_wrench=True,
        scene=MujocoScene(io),
        links=LinkPoints(io.model) if one else None,
    )
