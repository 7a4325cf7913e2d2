"""Simulated workcell for the calibration of a camera: the poses of camera and board are unknown to the user.

`robot-rl up calibrate` runs it behind the robot's topics. A green ball marks the tcp, so that the result can be checked
in the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from calibration.result import CameraIntrinsics
from robot_rl.data.schema import Source
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_from_matrix
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.place import ArmPlace
from sim.calibration.lens_camera import LensCamera
from sim.calibration.rig import PictureFaults, Plate, rig_model, with_faults
from sim.mujoco_robot_io import MujocoRobotIO
from sim.real_time import RealTimeRobotIO
from sim.scene import add_pointer_tool

FAULTS = PictureFaults(hidden=0.0)


@dataclass(frozen=True, eq=False)
class RigTruth:
    """True parameters of the simulated workcell.

    Attributes:
        mounting: `eye_in_hand` or `eye_to_hand`.
        lens: Lens of the camera.
        T_parent_camera: Optical frame of the camera in the tcp's frame (eye in hand) or in the base frame.
        T_parent_board: The board in the base frame (eye in hand) or in the tcp's frame.
    """

    mounting: str
    lens: CameraIntrinsics
    T_parent_camera: Pose
    T_parent_board: Pose

    def facing(self, extent: tuple[float, float], distance: float) -> Pose:
        """Return T_base_tcp with the centre of a board of this extent [m] at this distance [m] from the camera."""
        width, height = extent
        T_camera_board = Pose(np.array([-width / 2, -height / 2, distance]), np.array([1.0, 0.0, 0.0, 0.0]))
        if self.mounting == "eye_in_hand":
            return self.T_parent_board @ T_camera_board.inverse() @ self.T_parent_camera.inverse()
        return self.T_parent_camera @ T_camera_board @ self.T_parent_board.inverse()


NOMINAL = {
    "eye_in_hand": (
        Pose.from_rotvec(np.array([0.0, 0.06, -0.12]), np.array([0.0, 0.0, np.pi / 2]))
        @ Pose.from_rotvec(np.zeros(3), np.array([0.0, -0.3, 0.0])),
        Pose.from_rotvec(np.array([0.45, 0.08, 0.04]), np.array([np.pi, 0.0, 0.0])),
    ),
    "eye_to_hand": (
        Pose(np.array([0.92, 0.0, 0.25]), quat_from_matrix(np.array([[0.0, 0, -1], [1, 0, 0], [0, -1, 0]]))),
        Pose(np.array([0.03, 0.11, 0.045]), quat_from_matrix(np.array([[0.0, 0, -1], [-1, 0, 0], [0, 1, 0]]))),
    ),
}
"""Nominal poses of camera and board, by mounting; the gripper holds the board at its edge, below the tcp."""
_DISTANCE = {"eye_in_hand": 1.5, "eye_to_hand": 1.6}
"""Start distance of the board from the camera, in distances at which it fills the picture."""
_OFF_POSITION, _OFF_TURN = 0.015, 0.06
"""Largest deviation of the true poses from the nominal ones, per axis [m, rad]."""


def draw_truth(mounting: str, camera: str, seed: int) -> RigTruth:
    """Draw a cell whose lens differs from the data sheet, and whose camera and board are off their nominal poses.

    Args:
        mounting: `eye_in_hand` or `eye_to_hand`.
        camera: Name of the camera.
        seed: Seed of the draw.
    """
    rng = np.random.default_rng([seed, len(mounting)])
    camera_off, board_off = (
        Pose.from_rotvec(rng.uniform(-_OFF_POSITION, _OFF_POSITION, 3), rng.uniform(-_OFF_TURN, _OFF_TURN, 3))
        for _ in range(2)
    )
    X, Y = NOMINAL[mounting]
    fx, fy = (455.0 + rng.uniform(-5.0, 5.0, 2)).tolist()
    cx, cy = (np.array([239.5, 179.5]) + rng.uniform(-5.0, 5.0, 2)).tolist()
    distortion = (-0.2, 0.05, 5e-4, -4e-4, -0.01, 0.02, 0.01, 0.0)
    lens = CameraIntrinsics(camera, 480, 360, "rational_polynomial", fx, fy, cx, cy, distortion)
    return RigTruth(mounting, lens, X @ camera_off, Y @ board_off)


class LensCameras:
    """One camera with the lens and the faults of a real one, for `MujocoRobotIO`."""

    def __init__(self, model: mujoco.MjModel, body_camera: str, truth: RigTruth) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        self._name = truth.lens.camera
        self._camera = LensCamera(model, body_camera, truth.lens)

    def reset(self, seed: int) -> None:
        """Do nothing: all episodes are alike."""

    def render(self, qpos: np.ndarray, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Render the picture of the camera with the joints at `qpos`."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return {self._name: with_faults(self._camera.render(self._data), FAULTS, rng)}

    def matrix(self, name: str) -> np.ndarray:
        """Return zeros: the camera is not calibrated."""
        del name  # there is one
        return np.zeros((3, 3))

    def close(self) -> None:
        """Release the OpenGL context."""
        self._camera.close()


class CalibrationScene:
    """A task without a goal; at reset, the camera sees the board."""

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, spec: TaskSpec) -> None:
        self._io, self._q_start, self.spec = io, q_start, spec

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return no observations besides those of the arm."""
        return {}

    def reset(self, seed: int) -> None:
        """Move the arm to its start pose."""
        self._io.reset(self._q_start, seed)

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return no observations."""
        del state, T_base_reset  # nothing to estimate
        return {}

    def evaluate(self, state: RobotState) -> Outcome:
        """Return an outcome that is never a success."""
        del state  # there is nothing to reach
        return Outcome(False, 0.0)


def calibration_workcell(plate: Plate, truth: RigTruth, options: WorkcellOptions) -> Workcell:
    """Make the workcell; the name of its camera is that of the true lens, not one of `options`.

    Raises:
        RenderError: if this machine cannot render.
    """
    model, body_camera = rig_model(plate, truth.mounting, truth.T_parent_camera, truth.T_parent_board, add_pointer_tool)
    io = MujocoRobotIO(model, simulation=options.simulation)
    cameras = LensCameras(model, body_camera, truth)
    io.attach_cameras(cameras)
    distance = _DISTANCE[truth.mounting] * max(plate.extent) * truth.lens.fx / truth.lens.width
    start = truth.facing(plate.extent, distance)
    spec = TaskSpec(
        name="calibration",
        instruction="calibrate the camera",
        max_steps=1_000_000,
        control_period=0.1,
        workspace=Workspace(low=(-1.0, -1.0, -1.0), high=(1.0, 1.0, 1.0), yaw=np.pi, tilt=np.pi),
        cameras=(truth.lens.camera,),
    )
    q_start = np.zeros(model.nq)
    q_start[ArmPlace.of(model).qpos] = solve_ik(model, "tcp", start.position, start.quaternion)
    task = CalibrationScene(io, q_start, spec)
    arm: MujocoRobotIO | RealTimeRobotIO = io
    if options.realtime:
        task.reset(seed=0)
        arm = RealTimeRobotIO(io)
    return Workcell(arm, arm, task, None, Source.SCRIPT, cameras.close)
