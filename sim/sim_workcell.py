"""Assembly of a simulated workcell: robot, task, operator and cameras."""

from __future__ import annotations

import contextlib

from robot_rl.arm.kinematics.fr3 import fr3_chain
from robot_rl.data.schema import Source
from robot_rl.env.task import Task, Workcell, WorkcellOptions
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import ScriptedOperator
from sim.playback import MujocoPlayback
from sim.real_time import RealTimeRobotIO
from sim.render import MujocoCameras, SceneView, camera_mounts
from sim.scene_state import MujocoScene

ARM_WORLD = ("wrench_bias", "command_delay", "brightness", "camera_position", "camera_rotation")
"""Settings of `WorldConfig` that every scene of the simulated arm has."""


def simulated_workcell(io: MujocoRobotIO, task: Task, operator: ScriptedOperator, options: WorkcellOptions) -> Workcell:
    """Make the workcell, with cameras if the options name any.

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
    io.randomize(options.randomization.dynamics)
    arm: MujocoRobotIO | RealTimeRobotIO = io
    if options.realtime:
        task.reset(seed=0)  # its time starts now, and a new simulation is not at the start pose
        arm = RealTimeRobotIO(io)
    playback = MujocoPlayback(io.model, io.gains)
    mounts = camera_mounts(io.model, options.cameras)
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
        scene=MujocoScene(io),
        links=fr3_chain().points,
    )
