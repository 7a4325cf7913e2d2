"""Keys move the tool as the chosen picture shows it: W up or away in it, D to its right, whichever way it looks."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pages import Rig, page, run

from robot_rl.console.camera_views import along_base, picture_view
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.geometry import Pose, quat_from_matrix, quat_from_rotvec, quat_to_matrix

AHEAD, LEFT, UP = np.eye(3).tolist()
unit = st.floats(-1, 1)


def looking(azimuth, tilt, roll=0.0):
    """R_base_camera of a camera that looks that way: azimuth and tilt (down is positive) of its axis, then a roll."""
    forward = np.array(
        [math.cos(tilt) * math.cos(azimuth), math.cos(tilt) * math.sin(azimuth), -math.sin(tilt)]
    )  # without a roll, right is level
    right = np.array([math.sin(azimuth), -math.cos(azimuth), 0.0])
    level = np.stack((right, np.cross(forward, right), forward), axis=1)
    return level @ quat_to_matrix(quat_from_rotvec(np.array([0.0, 0.0, roll])))


def seen(R_base_camera, direction):
    """How a direction, meant as the picture shows it, moves in the picture: right, up, away."""
    moved = np.array(along_base([*direction, 0, 0, 0], picture_view(R_base_camera).heading)[:3])
    right, down, away = R_base_camera.T @ moved
    return right, -down, away


azimuths, tilts = st.floats(-math.pi, math.pi), st.floats(-0.6, math.pi / 2)


@given(azimuths, tilts)
def test_keys_move_the_tool_as_a_level_picture_shows_it(azimuth, tilt):
    R = looking(azimuth, tilt)
    right, up, away = seen(R, AHEAD)
    assert abs(right) < 1e-6
    assert up + away > 0.2, "ahead is away, or up where the camera looks down"
    assert seen(R, LEFT)[0] == pytest.approx(-1)
    assert seen(R, UP)[1] == pytest.approx(math.cos(tilt), abs=1e-6)


@given(azimuths, st.floats(0.8, math.pi / 2), st.floats(-math.pi, math.pi))
def test_from_above_they_do_so_however_the_picture_is_turned(azimuth, tilt, roll):
    R = looking(azimuth, tilt, roll)
    assert seen(R, AHEAD)[1] > 0.6, "up in the picture"
    assert seen(R, LEFT)[0] < -0.6, "to its left"


@given(st.lists(unit, min_size=6, max_size=6), azimuths)
def test_turned_deflections_keep_height_direction_and_range(axes, heading):
    turned = np.array(along_base(axes, heading))
    assert np.abs(turned).max() <= 1 + 1e-12
    back = np.array(along_base(turned.tolist(), -heading))
    for part in (slice(0, 3), slice(3, 6)):
        meant, found = np.array(axes[part]), back[part]
        assert np.linalg.norm(np.cross(meant, found)) < 1e-9
        assert meant @ found >= 0
        if np.hypot(*meant[:2]) <= 1:
            np.testing.assert_allclose(found, meant, atol=1e-9)


@given(st.tuples(*[st.floats(-3, 3)] * 3))
def test_there_is_a_view_of_every_attitude(rotvec):
    R = quat_to_matrix(quat_from_rotvec(np.array(rotvec)))
    view = picture_view(R)
    assert math.isfinite(view.heading)
    assert np.all(np.linalg.norm(view.axes, axis=1) <= 1 + 1e-9)


@given(azimuths, tilts, st.tuples(*[st.floats(-1, 1)] * 3))
def test_a_camera_on_the_tool_turns_with_it(azimuth, tilt, rotvec):
    assume(tilt > 0)
    mounted = Pose(np.array([0.1, 0.0, 0.0]), quat_from_matrix(looking(azimuth, tilt)))
    T_base_tcp = Pose(np.array([0.4, 0.1, 0.3]), quat_from_rotvec(np.array(rotvec)))
    fixed, moving = (CameraMount.of(parent, mounted).in_base(T_base_tcp) for parent in ("base", "tcp"))
    np.testing.assert_allclose(fixed.matrix, mounted.matrix)
    np.testing.assert_allclose(moving.matrix, (T_base_tcp @ mounted).matrix)


FACING = CameraMount.of("base", Pose(np.array([0.9, 0.0, 0.4]), quat_from_matrix(looking(math.pi, 0.5))))
"""A camera that faces the robot: in its picture, the base's x comes nearer and its y goes to the right."""


def test_the_arm_moves_as_the_chosen_picture_shows_it(tmp_path):
    async def test():
        async with page(rig) as anna:
            state = await anna.hear("state", lambda m: m["arm"] and m["arm"]["cameras"])
            assert list(state["arm"]["views"]) == ["front"], "the pose of the other one is not known"
            view = state["arm"]["views"]["front"]
            assert abs(view["heading"]) == pytest.approx(math.pi, abs=1e-3)
            np.testing.assert_allclose(view["axes"][1], [1, 0], atol=1e-3)
            await anna.say(type="lease", take=True)
            for camera, x in (("front", -0.8), ("", 0.8)):
                await anna.say(type="input", axes=[0.8, 0, 0, 0, 0, 0], buttons=[False] * 4, camera=camera)
                await anna.say(type="ping", at=1)
                await anna.hear("pong")
                np.testing.assert_allclose(rig.console.devices.first.read().axes, [x, 0, 0, 0, 0, 0], atol=1e-6)
            await anna.say(type="input", axes=[0.8, 0, 0, 0, 0, 0], buttons=[False] * 4, camera="wrist")
            assert "the pose of 'wrist' is not known; known: front" in (await anna.hear("error"))["text"]

    with Rig(tmp_path, filmed=True, mounts={"front": FACING}, heartbeat=5.0) as rig:
        run(test)
