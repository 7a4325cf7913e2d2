"""Corners from their edges, on a board drawn in perspective, where the truth is known."""

import cv2
import numpy as np
import pytest
from synthetic import BOARD, PINHOLE

from calibration.camera.corner_refinement import refine_corners
from calibration.camera.view import BoardDetector
from robot_rl.geometry import Pose

K = np.array([[600.0, 0, 320], [0, 600.0, 240], [0, 0, 1]])
SCALE, FINER = 5000, 4  # pixels per metre of the drawing; rays per pixel along each axis
MARGIN = 0.5 * (BOARD.size - BOARD.inner)


def drawn(T_camera_board, rng):
    """A picture with blur and noise, and where the corners are in it."""
    printed = cv2.copyMakeBorder(BOARD.image(SCALE), 20, 20, 20, 20, cv2.BORDER_CONSTANT, value=120)
    rim, shift = BOARD.margin + 20 / SCALE, (FINER - 1) / 2
    to_board = np.array([[1 / SCALE, 0, 0.5 / SCALE - rim], [0, 1 / SCALE, 0.5 / SCALE - rim], [0, 0, 1]])
    to_fine = np.array([[FINER, 0, shift], [0, FINER, shift], [0, 0, 1]])
    R, t = T_camera_board.matrix, T_camera_board.position
    H = to_fine @ K @ np.column_stack((R[:, 0], R[:, 1], t)) @ to_board
    fine = cv2.warpPerspective(printed, H, (640 * FINER, 480 * FINER), borderValue=120)
    image = cv2.GaussianBlur(cv2.resize(fine, (640, 480), interpolation=cv2.INTER_AREA), (0, 0), 0.6)
    image = np.clip(np.rint(image + rng.normal(0, 2, image.shape)), 0, 255).astype(np.uint8)
    points = BOARD.corners @ R.T + t
    return image, points[:, :2] / points[:, 2:] * 600.0 + [320, 240]


def tilted(x, y, turn):
    """The board 0.42 m away, tilted and turned [deg]."""
    R = Pose.from_rotvec(np.zeros(3), np.radians([x, y, 0.0])) @ Pose.from_rotvec(np.zeros(3), np.radians([0, 0, turn]))
    return Pose(np.array([0.0, 0.0, 0.42]) - R.matrix @ BOARD.corners.mean(axis=0), R.quaternion)


def rms(errors):
    return float(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize("pose", [(5, 0, 3), (50, 10, 20), (-10, 55, 40), (40, -35, 80)])
def test_corners_are_found_to_a_few_hundredths_of_a_pixel_on_tilted_boards_too(pose):
    rng = np.random.default_rng(0)
    image, truth = drawn(tilted(*pose), rng)
    view = BoardDetector(BOARD).detect(image, "view")
    assert len(view.ids) > 50
    assert rms(view.pixels - truth[view.ids]) < 0.05
    # From a start half a pixel away; a square window is pulled off by the markers.
    start = truth + rng.uniform(-0.5, 0.5, truth.shape)
    ours = refine_corners(image, BOARD.corners[:, :2], start, BOARD.size, MARGIN)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 40, 1e-3)
    square = cv2.cornerSubPix(image, start.astype(np.float32)[:, None].copy(), (5, 5), (-1, -1), criteria)[:, 0]
    assert rms(ours - truth) < 0.05
    assert rms(ours - truth) < 0.5 * rms(square - truth)


def photographed(T_camera_board, lens):
    """A picture through a lens, and where the corners are in it; for near boards, where two rays a pixel will do."""
    finer = 2
    printed = cv2.copyMakeBorder(BOARD.image(SCALE), 20, 20, 20, 20, cv2.BORDER_CONSTANT, value=120)
    columns, rows = (np.linspace(-0.5, n - 0.5, n * finer, endpoint=False) + 0.5 / finer for n in (640, 480))
    rays = lens.rays(np.stack(np.meshgrid(columns, rows), axis=2).reshape(-1, 2))
    R, t = T_camera_board.matrix, T_camera_board.position
    on_board = (rays * (R[:, 2] @ t / (rays @ R[:, 2]))[:, None] - t) @ R
    place = ((on_board[:, :2] + BOARD.margin) * SCALE + 20 - 0.5).astype(np.float32).reshape(480 * finer, -1, 2)
    fine = cv2.remap(printed, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderValue=120)
    image = cv2.GaussianBlur(cv2.resize(fine, (640, 480), interpolation=cv2.INTER_AREA), (0, 0), 0.6)
    return image, lens.project(BOARD.corners @ R.T + t)


def test_edges_that_the_lens_bends_do_not_pull_corners_off():
    near = tilted(10, -15, 5)
    near = Pose(near.position - [0, 0, 0.2], near.quaternion)
    image, truth = photographed(near, PINHOLE)
    view = BoardDetector(BOARD).detect(image, "view")
    errors = view.pixels - truth[view.ids]
    assert len(view.ids) > 30
    assert rms(errors) < 0.02


def test_where_there_is_nothing_to_see_corners_stay():
    points = BOARD.corners[:, :2]
    pixels = 1000.0 * points + 100.0
    empty = np.full((480, 640), 120, np.uint8)
    np.testing.assert_allclose(refine_corners(empty, points, pixels, BOARD.size, MARGIN), pixels)
    one_row = points[:5]  # neighbours on a line do not say how the board is tilted
    noise = np.random.default_rng(0).integers(0, 255, (480, 640), np.uint8)
    assert (refine_corners(noise, one_row, pixels[:5], BOARD.size, MARGIN) == pixels[:5]).all()
