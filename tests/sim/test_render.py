import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robot_rl.config.randomization import LooksConfig, RandomizationConfig
from robot_rl.env.registry import make_workcell, task_names
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import RenderError, UnknownNameError
from robot_rl.geometry import Pose, quat_from_matrix
from sim.render import MujocoCameras

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = WorkcellOptions(cameras=("front", "wrist"), image_size=(128, 128))


def workcell(task, options=OPTIONS):
    try:
        cell = make_workcell(task, options)
    except RenderError as error:
        pytest.skip(f"cameras cannot be rendered here: {error}")
    cell.task.reset(0)
    return cell


@pytest.fixture(scope="module")
def peg():
    cell = workcell("peg_insert")
    yield cell
    cell.close()


def share(frame, *, more, less):
    """Share of pixels whose colour `more` exceeds colour `less` (0, 1, 2 = red, green, blue) clearly."""
    pixels = frame.astype(int)
    return np.mean(pixels[..., more] - pixels[..., less] > 60)


@pytest.mark.parametrize("task", sorted({*task_names()} - {"belt", "handover"}))  # two wrists: their own tests
def test_both_cameras_show_the_tool_and_what_the_task_is_about(task):
    cell = workcell(task)
    frames = cell.io.read().images
    cell.close()
    assert set(frames) == {"front", "wrist"}
    for name, frame in frames.items():
        assert frame.shape == (128, 128, 3)
        assert frame.dtype == np.uint8
        assert share(frame, more=0, less=2) > 0.005, f"{task}: nothing orange before the {name} camera"
        assert frame.std() > 10, f"{task}: the {name} camera sees one colour"
        if task == "peg_insert":
            assert share(frame, more=2, less=0) > 0.05, f"no block before the {name} camera"
        if task == "reach":
            assert share(frame, more=1, less=0) > 0.0005, f"no ball before the {name} camera"
    assert np.abs(frames["front"].astype(int) - frames["wrist"]).mean() > 20, "two cameras, one picture"


def pixel_of(cell, camera, point):
    """Row and column at which a point of the base frame appears, by the pinhole model."""
    model, data = cell.io.model, mujoco.MjData(cell.io.model)
    data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = (
        cell.io.data.qpos,
        *map(np.array, (cell.io.data.mocap_pos, cell.io.data.mocap_quat)),
    )
    mujoco.mj_forward(model, data)
    view = data.camera(camera)
    x, y, z = view.xmat.reshape(3, 3).T @ (point - view.xpos)
    focal = 64 / np.tan(np.deg2rad(model.camera(camera).fovy[0]) / 2)
    return 64 - focal * y / -z, 64 + focal * x / -z


STILL = RandomizationConfig(looks=LooksConfig(camera_position=0, camera_rotation=0))


def test_the_mount_of_a_camera_is_where_its_picture_is_taken():
    """By the mount, a point appears where MuJoCo shows it, wherever the arm is."""
    cell = workcell("peg_insert", replace(OPTIONS, randomization=STILL))
    assert {name: mount.parent for name, mount in cell.mounts.items()} == {"front": "base", "wrist": "tcp"}
    for seed in range(3):
        cell.task.reset(seed)
        tcp = cell.io.data.site("tcp")
        T_base_tcp = Pose(tcp.xpos.copy(), quat_from_matrix(tcp.xmat.reshape(3, 3)))
        for camera, mount in cell.mounts.items():
            for point in (T_base_tcp.position, np.add(T_base_tcp.position, (0.03, -0.02, -0.05))):
                place = Pose(point, np.array([1.0, 0.0, 0.0, 0.0]))
                seen = (mount.in_base(T_base_tcp).inverse() @ place).position
                column, row, _ = cell.io.camera_matrix(camera) @ (seen / seen[2])
                np.testing.assert_allclose((row, column), pixel_of(cell, camera, point), atol=0.01)
    cell.close()


def test_the_hole_is_seen_where_geometry_says(peg):
    """A few pixels at the hole are dark, the block's top beside it is not: in both cameras, on most resets."""
    seen = {"front": 0, "wrist": 0}
    for seed in range(10):
        peg.task.reset(seed)
        frames = peg.io.read().images
        for camera in seen:
            row, column = (round(float(value)) for value in pixel_of(peg, camera, peg.task.T_base_hole.position))
            around = frames[camera][row - 3 : row + 4, column - 3 : column + 4].mean(axis=2)
            top = np.add(peg.task.T_base_hole.position, (0.0, 0.05, 0.0))
            row, column = (round(float(value)) for value in pixel_of(peg, camera, top))
            if not (0 <= row < 128 and 0 <= column < 128):
                continue
            seen[camera] += around.size > 0 and around.min() < 0.7 * frames[camera][row, column].mean()
    assert seen["front"] >= 7
    assert seen["wrist"] >= 7


def test_the_picture_follows_the_arm(peg):
    cameras = MujocoCameras(peg.io.model, peg.io.data, ("front",), (128, 128))
    rng = np.random.default_rng(0)
    qpos = peg.io.data.qpos.copy()
    before = cameras.render(qpos, rng)["front"].astype(int)
    qpos[0] += 0.1
    after = cameras.render(qpos, rng)["front"].astype(int)
    cameras.close()
    assert (np.abs(after - before).max(axis=2) > 60).mean() > 0.05


def test_pixel_noise_has_the_stated_size_and_is_new_in_every_frame(peg):
    model, data, qpos = peg.io.model, peg.io.data, peg.io.data.qpos.copy()
    clean = MujocoCameras(model, data, ("front",), (128, 128), pixel_noise=0.0)
    rng = np.random.default_rng(0)
    still = clean.render(qpos, rng)["front"]
    assert np.array_equal(still, clean.render(qpos, rng)["front"])
    clean.close()
    noisy = MujocoCameras(model, data, ("front",), (128, 128), pixel_noise=2.0)
    frames = [noisy.render(qpos, rng)["front"] for _ in range(3)]
    noisy.close()
    middle = (still > 10) & (still < 245)  # where it is not cut off
    for frame in frames:
        error = (frame.astype(int) - still)[middle]
        assert error.std() == pytest.approx(2.0, rel=0.1)
        assert abs(error.mean()) < 0.1
    assert not np.array_equal(frames[0], frames[1])
    kept = frames[0].copy()
    assert np.array_equal(frames[0], kept), "a later frame changed an earlier one"


def test_an_unknown_camera_is_answered_with_the_valid_ones():
    with pytest.raises(UnknownNameError, match=r"unknown camera 'frnt'; valid: front, wrist"):
        make_workcell("peg_insert", WorkcellOptions(cameras=("front", "frnt")))


def test_the_environment_observes_the_frames(peg):
    env = RobotEnv(peg, options=OPTIONS)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    later, _, _, _, info = env.step(np.zeros(4, np.float32))
    assert np.array_equal(info["step"].recorded.observation["images/wrist"], observation["images/wrist"])
    assert not np.shares_memory(later["images/wrist"], observation["images/wrist"])


PROGRAM = """
from robot_rl.env.task import WorkcellOptions
from robot_rl.config.randomization import LooksConfig, RandomizationConfig
from robot_rl.env.registry import make_workcell
make_workcell("reach").task.reset(0)
print("works without cameras")
try:
    make_workcell("reach", WorkcellOptions(cameras=("front",)))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("lacking", ["driver", "library", "platform"])
def test_without_opengl_everything_but_cameras_works_and_the_packages_are_named(lacking, tmp_path):
    for name in ("libEGL.so.1", "libEGL.so"):
        (tmp_path / name).touch()
    broken = {
        "driver": {"MUJOCO_GL": "egl", "__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent"},
        "library": {"MUJOCO_GL": "egl", "LD_LIBRARY_PATH": str(tmp_path)},
        "platform": {"MUJOCO_GL": "vga"},
    }[lacking]
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, **broken},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = process.stdout.splitlines()
    assert first == "works without cameras"
    assert second.startswith("RenderError")
    for word in (broken["MUJOCO_GL"], "libegl1", "libgl1-mesa-dri", "make setup"):
        assert word in second
