"""Boards: their text, their picture, their PDF, and what is found in pictures of them."""

import re
import zlib

import cv2
import numpy as np
import pytest

from calibration.camera.board import Board
from calibration.camera.board_pdf import write_board_pdf
from calibration.camera.view import BadViewError, BoardDetector
from robot_rl.errors import CalibrationError, UnknownNameError

SPECS = ("charuco:11x8:20mm:15mm", "charuco:8x11:12.5mm:9mm:4X4_50", "apriltag:7x5:24mm:8mm")


@pytest.mark.parametrize("spec", SPECS)
def test_every_corner_of_the_printed_board_is_found_where_it_is(spec):
    board = Board.parse(spec)
    assert Board.parse(str(board)) == board
    image = board.image(pixels_per_meter=4000)
    view = BoardDetector(board).detect(image, "print")
    assert view.ids.tolist() == list(range(len(board.corners)))
    expected = 4000 * (board.corners[:, :2] + board.margin) - 0.5
    np.testing.assert_allclose(view.pixels, expected, atol=0.02)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("chess", "cannot read board"),
        ("chess:3x3:1mm:1mm", "valid: charuco, apriltag"),
        ("charuco:2x2:20mm:15mm", "at least 3 x 3"),
        ("charuco:11x8:20mm:25mm", "smaller than its square"),
        ("charuco:11x8:20mm:15mm:7Z", "unknown dictionary '7Z'; valid: 4X4_100"),
        ("charuco:11x12:20mm:15mm:4X4_50", "needs 66 markers, 4X4_50 has 50"),
        ("apriltag:7x5:24mm:0mm", "above 0"),
        ("charuco:11x8:2.0.0mm:15mm", "cannot read board"),
    ],
)
def test_what_is_no_board_is_refused(spec, message):
    with pytest.raises(CalibrationError, match=re.escape(message)):
        Board.parse(spec)


def test_the_pdf_is_to_scale(tmp_path):
    board = Board.parse(SPECS[0])
    write_board_pdf(board, tmp_path / "board.pdf")
    pdf = (tmp_path / "board.pdf").read_bytes()
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    drawing = max((zlib.decompress(s) for s in streams if s[:1] == b"x"), key=len).decode("latin-1")
    xy = np.array(re.findall(r"^([\d.]+) ([\d.]+) [ml]$", drawing, re.MULTILINE), dtype=float) / 72 * 25.4  # [mm]
    page, black = xy[:4], xy[4 : 4 + 4 * len(board.black_rectangles())]
    assert np.ptp(page, axis=0) == pytest.approx((297.0, 210.0), abs=0.01)  # it fits in landscape
    assert np.ptp(black, axis=0) == pytest.approx((220.0, 160.0), abs=0.01)


def test_a_board_larger_than_the_page_is_refused(tmp_path):
    with pytest.raises(CalibrationError, match="take fewer or smaller squares, or a larger page"):
        write_board_pdf(Board.parse("charuco:14x10:30mm:20mm"), tmp_path / "board.pdf")
    with pytest.raises(UnknownNameError, match="valid: a3, a4, letter"):
        write_board_pdf(Board.parse(SPECS[0]), tmp_path / "board.pdf", "a9")
    assert list(tmp_path.iterdir()) == []


def bad_pictures():
    good = Board.parse(SPECS[0]).image(3000)
    noise = np.random.default_rng(0).integers(0, 255, (480, 640), np.uint8)
    return {
        "shows no board": noise,
        "is mirrored": np.ascontiguousarray(good[:, ::-1]),
        "is blurred": cv2.GaussianBlur(good, (0, 0), 3.5),
        "corners of the board, needed are": good[:200, :220].copy(),
        "no 8-bit": good.astype(np.float32),
    }


@pytest.mark.parametrize(("reason", "picture"), bad_pictures().items())
def test_a_bad_picture_is_refused_with_the_reason(reason, picture):
    with pytest.raises(BadViewError, match=reason):
        BoardDetector(Board.parse(SPECS[0])).detect(picture, "bad")


def test_another_board_is_not_taken_for_this_one():
    with pytest.raises(BadViewError, match="shows no board"):
        BoardDetector(Board.parse(SPECS[0])).detect(Board.parse(SPECS[2]).image(3000), "other")
