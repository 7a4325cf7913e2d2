"""Renderer of camera frames at low cost: no shadows, reflections, sky or multisampling."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from robot_rl.config.randomization import LooksConfig, WorldConfig
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.errors import RenderError, UnknownNameError
from robot_rl.geometry import Pose, quat_from_matrix
from sim import GL_FAILURE, GL_PLATFORM
from sim.randomize import VisualRandomizer

_COSTLY = (
    mujoco.mjtRndFlag.mjRND_SHADOW,
    mujoco.mjtRndFlag.mjRND_REFLECTION,
    mujoco.mjtRndFlag.mjRND_SKYBOX,
    mujoco.mjtRndFlag.mjRND_HAZE,
)
_rendering_process: list[int | None] = [None]
"""Id of the process that has opened an OpenGL context, here or before this one was forked from it."""


class MujocoCameras:
    """Renderer of named cameras of a model.

    Args:
        model: Scene.
        data: State whose mocap bodies are copied; joint positions are arguments of `render`.
        names: Names of the cameras to render.
        size: Height and width [px].
        pixel_noise: Standard deviation added to each colour value [0-255].
        looks: How much light, colours and cameras differ from episode to episode.
        world: How light and cameras differ from the scene's own in all episodes.

    Raises:
        UnknownNameError: for a camera that the scene does not have.
        RenderError: if no OpenGL context can be made.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        names: tuple[str, ...],
        size: tuple[int, int],
        pixel_noise: float = 0.0,
        looks: LooksConfig | None = None,
        world: WorldConfig | None = None,
    ) -> None:
        valid = [model.camera(i).name for i in range(model.ncam)]
        for name in names:
            if name not in valid:
                raise UnknownNameError("camera", name, valid, "encoder.cameras")
        self._model, self._source, self._names = model, data, names
        pixels = size[0] * size[1] * 3
        # New noise would cost half as much as rendering: it is drawn once, and every frame starts at another offset.
        self._noise = np.rint(np.random.default_rng(0).normal(0.0, pixel_noise, 4 * pixels)).astype(np.int16)
        self._noisy = np.empty((*size, 3), np.int16)
        self._data = mujoco.MjData(model)
        self._randomizer = VisualRandomizer(model, looks, world)
        self._renderer = open_renderer(model, size)

    def reset(self, seed: int) -> None:
        """Draw the light, colours and camera poses of an episode."""
        self._randomizer.draw(seed)

    def render(self, qpos: np.ndarray, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Render RGB frames by camera, uint8, shape (height, width, 3), with the joints at `qpos`."""
        data = self._data
        data.qpos[:] = qpos
        data.mocap_pos[:], data.mocap_quat[:] = self._source.mocap_pos, self._source.mocap_quat
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_flex(self._model, data)
        mujoco.mj_camlight(self._model, data)
        frames = {}
        for name in self._names:
            self._renderer.update_scene(data, camera=name)
            frame, noisy = self._renderer.render(), self._noisy
            start = int(rng.integers(len(self._noise) - noisy.size))
            np.add(frame, self._noise[start : start + noisy.size].reshape(noisy.shape), out=noisy)
            np.clip(noisy, 0, 255, out=noisy)
            frame[:] = noisy
            frames[name] = frame
        return frames

    def matrix(self, name: str) -> np.ndarray:
        """Return the camera matrix, shape (3, 3) [px]: square pixels, principal point in the centre, no distortion."""
        height, width = self._renderer.height, self._renderer.width
        focal = 0.5 * height / np.tan(0.5 * np.deg2rad(self._model.camera(name).fovy[0]))
        return np.array([[focal, 0.0, 0.5 * width], [0.0, focal, 0.5 * height], [0.0, 0.0, 1.0]])

    def close(self) -> None:
        """Release the OpenGL context."""
        self._renderer.close()


class SceneView:
    """Pictures of a scene as it is now, for people: without noise or delay. Opens a renderer at the first one.

    Args:
        model: Scene.
        data: Its state; kinematics must be up to date.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model, self._data = model, data
        self._renderer: mujoco.Renderer | None = None

    def picture(self, camera: str, size: tuple[int, int]) -> np.ndarray:
        """Return the picture of a camera, shape (*size, 3), uint8.

        Raises:
            UnknownNameError: if the scene has no such camera.
            RenderError: if no OpenGL context can be made.
        """
        valid = [self._model.camera(i).name for i in range(self._model.ncam)]
        if camera not in valid:
            raise UnknownNameError("camera", camera, valid)
        renderer = self._renderer
        if renderer is None or (renderer.height, renderer.width) != size:
            self.close()
            renderer = self._renderer = open_renderer(self._model, size)
        renderer.update_scene(self._data, camera=camera)
        return np.array(renderer.render())

    def close(self) -> None:
        """Release the OpenGL context, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def camera_mounts(model: mujoco.MjModel, names: Sequence[str]) -> dict[str, CameraMount]:
    """Return where cameras of a scene are fixed; those on a link of the arm, or on an object, are left out."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    tcp = model.site("tcp")
    T_base_tcp = Pose(data.site(tcp.id).xpos.copy(), quat_from_matrix(data.site(tcp.id).xmat.reshape(3, 3)))
    mounts = {}
    for name in names:
        camera, welded = data.camera(name), model.body_weldid[model.camera(name).bodyid[0]]
        # MuJoCo's cameras look along -z, with y up.
        attitude = quat_from_matrix(camera.xmat.reshape(3, 3) @ np.diag([1.0, -1.0, -1.0]))
        pose = Pose(camera.xpos.copy(), attitude)
        if welded == 0:
            mounts[name] = CameraMount.of("base", pose)
        elif welded == model.body_weldid[tcp.bodyid[0]]:
            mounts[name] = CameraMount.of("tcp", T_base_tcp.inverse() @ pose)
    return mounts


def open_renderer(model: mujoco.MjModel, size: tuple[int, int]) -> mujoco.Renderer:
    """Make a renderer of frames of this height and width [px] without costly effects.

    Raises:
        RenderError: if no OpenGL context can be made.
    """
    # The offscreen buffer must be as large as the frames; its size hardly affects the cost.
    model.vis.global_.offheight = max(model.vis.global_.offheight, size[0])
    model.vis.global_.offwidth = max(model.vis.global_.offwidth, size[1])
    if GL_FAILURE:
        raise _render_error(GL_FAILURE)
    if _rendering_process[0] not in (None, os.getpid()):
        raise RenderError(
            f"process {os.getpid()} was forked from one that had rendered, so that OpenGL would hang here; start it "
            'anew: gymnasium.make_vec(..., vector_kwargs={"context": "spawn"}), or fork before anything is rendered'
        )
    _rendering_process[0] = os.getpid()
    try:
        renderer = mujoco.Renderer(model, height=size[0], width=size[1])
    except (RuntimeError, ImportError, AttributeError, mujoco.FatalError) as error:
        raise _render_error(error) from error
    for flag in _COSTLY:
        renderer.scene.flags[flag] = False
    return renderer


def _render_error(reason: object) -> RenderError:
    return RenderError(
        f"cannot make an OpenGL context with MUJOCO_GL={GL_PLATFORM}: {reason}. On a machine without a screen set "
        "MUJOCO_GL=egl and install libegl1 and libgl1-mesa-dri (`make setup` does both)"
    )
