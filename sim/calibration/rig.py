"""Simulated rig: the arm with a camera and a calibration board, one on the tool and one beside the arm.

The rig renders the picture of the camera for a given pose of the tcp, with the faults of real pictures. The board is a
white plate with black rectangles on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.ndimage import gaussian_filter

from calibration.result import CameraIntrinsics
from robot_rl.geometry import Pose
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.place import ArmPlace
from sim.arm.shapes import visual
from sim.calibration.lens_camera import LensCamera, set_camera_pose
from sim.scene import add_peg_tool, new_scene

_THICKNESS = 0.002
_LIFT = 5e-5
"""Height of the black above the white, because two faces in one plane flicker [m]."""


def add_plate(
    spec: mujoco.MjSpec, body: mujoco.MjsBody, black: np.ndarray, extent: tuple[float, float], margin: float
) -> None:
    """Add a plate to a body; the body's frame is the pattern's: x right, y down, z away from the viewer.

    Args:
        spec: Scene.
        body: The body.
        black: Rectangles (left, top, width, height) in the pattern's frame [m], shape (n, 4).
        extent: Width and height of the pattern [m].
        margin: Width of the white rim [m].
    """
    width, height = extent
    visual(
        body,
        mujoco.mjtGeom.mjGEOM_BOX,
        (0.95, 0.95, 0.95, 1),
        size=(width / 2 + margin, height / 2 + margin, _THICKNESS / 2),
        pos=(width / 2, height / 2, _LIFT + _THICKNESS / 2),
    )
    left, top, wide, high = black.T
    corners = np.stack(
        (
            np.stack((left, left, left + wide, left + wide), axis=1),
            np.stack((top, top + high, top + high, top), axis=1),
            np.zeros((len(black), 4)),
        ),
        axis=2,
    ).reshape(-1, 3)
    triangles = np.array([(0, 1, 2), (0, 2, 3)])  # seen from -z
    faces = (4 * np.arange(len(black))[:, None, None] + triangles).reshape(-1, 3)
    # MuJoCo moves a mesh to its centre of mass and its axes of inertia, and the geom back by the same pose.
    name = f"{body.name}_black"
    mesh = spec.add_mesh(name=name, uservert=corners.ravel().tolist(), userface=faces.ravel().tolist())
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    visual(body, mujoco.mjtGeom.mjGEOM_MESH, (0.03, 0.03, 0.03, 1), meshname=name)


@dataclass(frozen=True, eq=False)
class Plate:
    """Appearance of a board: black rectangles (left, top, width, height), extent of the pattern and margin, all [m]."""

    black: np.ndarray
    extent: tuple[float, float]
    margin: float


@dataclass(frozen=True)
class PictureFaults:
    """Faults of pictures.

    Attributes:
        blur: Largest standard deviation of the blur; that of each picture is drawn from half of it up to it [px].
        noise: Standard deviation of the noise of each colour value [0-255].
        hidden: Share of the pictures in which an object covers a part of the board.
    """

    blur: float = 0.8
    noise: float = 3.0
    hidden: float = 0.3


def rig_model(
    plate: Plate,
    mounting: str,
    T_parent_camera: Pose,
    T_parent_board: Pose,
    add_tool: Callable[[mujoco.MjSpec], None] = add_peg_tool,
) -> tuple[mujoco.MjModel, str]:
    """Make the model of the arm with a board and a camera, and return it with the name of the camera.

    Args:
        plate: Appearance of the board.
        mounting: `eye_in_hand` (camera on the tool, board on the table) or `eye_to_hand` (the other way round).
        T_parent_camera: Optical frame of the camera in the tcp's frame, or in the base frame.
        T_parent_board: Board in the base frame, or in the tcp's.
        add_tool: Function that adds the arm with a tool.
    """
    on_tool = mounting == "eye_in_hand"
    spec = new_scene()
    add_tool(spec)
    tool = spec.body("tool")
    tcp = spec.site("tcp")
    T_tool_tcp = Pose(np.array(tcp.pos), np.array(tcp.quat))
    T_body_board = T_parent_board if on_tool else T_tool_tcp @ T_parent_board
    board = (spec.worldbody if on_tool else tool).add_body(name="board")
    board.pos, board.quat = T_body_board.position, T_body_board.quaternion
    add_plate(spec, board, plate.black, plate.extent, plate.margin)
    model, camera = spec.compile(), "wrist" if on_tool else "front"
    set_camera_pose(model, camera, T_tool_tcp @ T_parent_camera if on_tool else T_parent_camera)
    return model, camera


class CalibrationRig:
    """Arm, board and camera.

    Args:
        plate: Appearance of the board.
        intrinsics: Lens of the camera.
        mounting: See `rig_model`.
        T_parent_camera: Pose of the camera; see `rig_model`.
        T_parent_board: Pose of the board; see `rig_model`.
    """

    def __init__(
        self, plate: Plate, intrinsics: CameraIntrinsics, mounting: str, T_parent_camera: Pose, T_parent_board: Pose
    ) -> None:
        self.model, camera = rig_model(plate, mounting, T_parent_camera, T_parent_board)
        self.data = mujoco.MjData(self.model)
        self._camera = LensCamera(self.model, camera, intrinsics)

    def reachable(self, T_base_tcp: Pose) -> bool:
        """Return whether the arm can reach a pose from its ready pose without a change of the elbow posture."""
        try:
            self._angles(T_base_tcp)
        except ValueError:
            return False
        return True

    def render(self, T_base_tcp: Pose, faults: PictureFaults, rng: np.random.Generator) -> np.ndarray:
        """Render the picture of the camera with the tcp at a pose; RGB, uint8, shape (height, width, 3).

        Raises:
            ValueError: if the arm cannot reach the pose.
        """
        self.data.qpos[ArmPlace.of(self.model).qpos] = self._angles(T_base_tcp)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
        return with_faults(self._camera.render(self.data), faults, rng)

    def close(self) -> None:
        """Releases the OpenGL context."""
        self._camera.close()

    def _angles(self, T_base_tcp: Pose) -> np.ndarray:
        return solve_ik(self.model, "tcp", T_base_tcp.position, T_base_tcp.quaternion, starts=1)


def with_faults(picture: np.ndarray, faults: PictureFaults, rng: np.random.Generator) -> np.ndarray:
    """Return a picture with added faults; uint8, shape (height, width, 3)."""
    image = picture.astype(np.float64)
    if rng.random() < faults.hidden:
        _cover(image, rng)
    sigma = faults.blur * rng.uniform(0.5, 1.0)
    image = gaussian_filter(image, (sigma, sigma, 0))
    image += rng.normal(0.0, faults.noise, image.shape) if faults.noise else 0.0
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def _cover(image: np.ndarray, rng: np.random.Generator) -> None:
    """Cover a part of the picture with a disc of a tenth to a quarter of its height."""
    height, width = image.shape[:2]
    x, y = rng.uniform(0.3, 0.7) * width, rng.uniform(0.3, 0.7) * height
    radius = rng.uniform(0.05, 0.13) * height
    rows, columns = np.ogrid[:height, :width]
    image[(columns - x) ** 2 + (rows - y) ** 2 < radius**2] = rng.uniform(40, 200, 3)
