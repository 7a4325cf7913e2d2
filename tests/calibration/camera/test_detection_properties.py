"""Detection of boards: changes of a picture that neither lose nor move a corner, and mirrors that are refused."""

import cv2
import numpy as np
import pytest
from synthetic import random_view

from calibration.camera.blur import edge_width
from calibration.camera.board import Board
from calibration.camera.view import BadViewError, BoardDetector
from calibration.result.reasons import reasons

SPECS = ("charuco:7x5:20mm:15mm", "apriltag:4x3:24mm:8mm")
DENSITY = 3000.0  # [px/m]
boards = pytest.mark.parametrize("board", [Board.parse(spec) for spec in SPECS], ids=lambda board: board.kind)


def found(board, image):
    return BoardDetector(board).detect(image, "picture")


def printed(board, sigma=0.7):
    """The printed board, blurred as a camera does, and where its corners are."""
    picture = cv2.copyMakeBorder(board.image(DENSITY), 15, 15, 15, 15, cv2.BORDER_CONSTANT, value=200)
    pixels = DENSITY * (board.corners[:, :2] + board.margin) + 15 - 0.5
    return cv2.GaussianBlur(picture, (0, 0), sigma), pixels


@boards
@pytest.mark.parametrize("quarters", range(4))
def test_a_board_is_found_at_any_quarter_turn_with_the_same_ids(board, quarters):
    image, pixels = printed(board)
    for _ in range(quarters):  # anticlockwise: (x, y) goes to (y, width - 1 - x)
        pixels = np.stack((pixels[:, 1], image.shape[1] - 1 - pixels[:, 0]), axis=1)
        image = np.ascontiguousarray(np.rot90(image))
    view = found(board, image)
    assert view.ids.tolist() == list(range(len(board.corners)))
    np.testing.assert_allclose(view.pixels, pixels, atol=0.05)
    np.testing.assert_array_equal(view.points, board.corners)
    assert view.size == (image.shape[1], image.shape[0])


@boards
@pytest.mark.parametrize("quarters", range(4))
@pytest.mark.parametrize("axis", [0, 1])
def test_a_mirrored_board_is_refused_at_any_quarter_turn(board, quarters, axis):
    image = np.ascontiguousarray(np.rot90(np.flip(printed(board)[0], axis), quarters))
    with pytest.raises(BadViewError, match="is mirrored"):
        found(board, image)


@boards
def test_two_mirrors_are_a_half_turn(board):
    image, _ = printed(board)
    twice = found(board, np.ascontiguousarray(image[::-1, ::-1]))
    turned = found(board, np.ascontiguousarray(np.rot90(image, 2)))
    np.testing.assert_array_equal(twice.pixels, turned.pixels)


@boards
@pytest.mark.parametrize("shift", [(7, 0), (0, 11), (20, 33)])
def test_corners_move_with_the_picture(board, shift):
    image, _ = printed(board)
    before = found(board, image)
    x, y = shift
    after = found(board, cv2.copyMakeBorder(image, y, 0, x, 0, cv2.BORDER_CONSTANT, value=200))
    np.testing.assert_array_equal(after.ids, before.ids)
    np.testing.assert_allclose(after.pixels, before.pixels + shift, atol=0.02)


@boards
@pytest.mark.parametrize(("contrast", "offset"), [(0.5, 0), (0.5, 120), (0.25, 60)])
def test_light_does_not_move_corners(board, contrast, offset):
    image, pixels = printed(board)
    dim = np.rint(contrast * image + offset).astype(np.uint8)
    view = found(board, dim)
    assert view.ids.tolist() == list(range(len(board.corners)))
    np.testing.assert_allclose(view.pixels, pixels, atol=0.05)


@boards
def test_grey_and_colour_are_the_same_picture(board):
    image, _ = printed(board)
    grey, colour = found(board, image), found(board, np.repeat(image[:, :, None], 3, axis=2))
    np.testing.assert_allclose(colour.pixels, grey.pixels, atol=1e-6)


@boards
def test_what_is_covered_is_missing_and_the_rest_stays_where_it_is(board):
    image, pixels = printed(board)
    covered = image.copy()
    covered[:, : image.shape[1] // 3] = 128
    view = found(board, covered)
    assert 8 <= len(view.ids) < len(board.corners)
    assert (view.pixels[:, 0] >= image.shape[1] // 3 - 1).all()
    np.testing.assert_allclose(view.pixels, pixels[view.ids], atol=0.05)


@boards
def test_two_boards_in_a_picture_are_never_mixed(board):
    """A marker that appears twice counts for none of its places."""
    image, pixels = printed(board)
    both = np.hstack((image, image))
    try:
        view = found(board, both)
    except BadViewError:
        return
    width = image.shape[1]
    apart = np.minimum(
        np.linalg.norm(view.pixels - pixels[view.ids], axis=1),
        np.linalg.norm(view.pixels - pixels[view.ids] - [width, 0], axis=1),
    )
    assert apart.max() < 0.1
    assert len(set(view.ids.tolist())) == len(view.ids)


def test_the_width_of_edges_grows_with_blur_until_the_picture_is_refused():
    board = Board.parse(SPECS[0])
    widths = []
    for sigma in (0.5, 1.0, 1.5, 2.0, 3.0):
        image, pixels = printed(board, sigma)
        widths.append(edge_width(image, pixels))
    assert widths == sorted(widths)
    assert widths[0] < 3.0
    assert edge_width(np.full((50, 50), 90, np.uint8), np.array([[20.0, 20.0]])) == np.inf
    with pytest.raises(BadViewError, match=r"is blurred: .* hold still, focus, add light"):
        found(board, printed(board, 6.0)[0])


@pytest.mark.parametrize("degrees", [0, 20, 45, 90])
@pytest.mark.parametrize("length", [10, 16, 25])
def test_a_picture_taken_in_motion_is_named_so(length, degrees):
    """Light of a moving camera is spread along a line; the edges along the line stay sharp."""
    board = Board.parse(SPECS[0])
    image, _ = printed(board, 0.7)
    spread = np.zeros((41, 41), np.float32)
    reach = 0.5 * length * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    for x, y in 20.0 + np.linspace(-1.0, 1.0, 200)[:, None] * reach:
        spread[round(y), round(x)] += 1.0
    moved = cv2.filter2D(image, -1, spread / spread.sum(), borderType=cv2.BORDER_REPLICATE)
    with pytest.raises(BadViewError, match=r"is blurred by motion: .* let the arm come to rest"):
        found(board, moved)


def test_a_scene_of_lines_is_no_picture_in_motion():
    lines = np.full((480, 640), 200, np.uint8)
    lines[100:140] = lines[300:310] = 30
    with pytest.raises(BadViewError, match="shows no board"):
        BoardDetector(Board.parse(SPECS[0])).detect(lines, "lines")


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((0, 0), np.uint8),
        np.zeros((10, 10, 4), np.uint8),
        np.zeros((10, 10), np.uint16),
        np.zeros(10, np.uint8),
    ],
    ids=["empty", "rgba", "16 bit", "a row"],
)
def test_what_is_no_picture_is_refused(image):
    with pytest.raises(BadViewError):
        found(Board.parse(SPECS[0]), image)


def test_a_view_of_some_corners_keeps_what_belongs_together():
    view, _ = random_view(np.random.default_rng(0))
    keep = view.ids % 3 == 0
    part = view.only(keep)
    assert (part.name, part.size) == (view.name, view.size)
    for name in ("ids", "pixels", "points"):
        np.testing.assert_array_equal(getattr(part, name), getattr(view, name)[keep])


def test_a_reason_is_stated_once_with_the_names_that_it_holds_for():
    assert reasons({"a.png": "is blurred", "b.png": "shows no board"}) == ["a.png: is blurred", "b.png: shows no board"]
    assert reasons({}) == []
    off = {f"view {i}": f"the arm's pose is off by {i}.5 mm" for i in range(9)}
    assert reasons({**off, "b": "shows no board"}) == [
        "view 0 and 8 more (view 1, view 2, view 3, view 4, view 5, ...): the arm's pose is off by 0.5 mm",
        "b: shows no board",
    ]


# ------------------------------------------------------------------ geometry of boards


@boards
def test_corners_lie_inside_the_pattern_on_a_plane(board):
    width, height = board.extent
    assert (board.corners[:, 2] == 0.0).all()
    assert (board.corners[:, :2] >= 0.0).all()
    assert (board.corners[:, :2] <= [width + 1e-12, height + 1e-12]).all()
    assert len(np.unique(board.corners, axis=0)) == len(board.corners)
    x, y, w, h = board.black_rectangles().T
    assert min(x.min(), y.min()) >= 0.0
    assert (x + w).max() <= width + 1e-12
    assert (y + h).max() <= height + 1e-12
    assert min(w.min(), h.min()) > 0.0


@boards
def test_the_picture_has_the_blacks_of_the_rectangles(board):
    area = (board.black_rectangles()[:, 2:]).prod(axis=1).sum()  # they do not overlap
    picture = board.image(6000.0)
    assert (picture == 0).sum() / 6000.0**2 == pytest.approx(area, rel=0.02)
    rim = round(6000.0 * board.margin) - 2
    assert (picture[:rim] == 255).all()
    assert (picture[:, -rim:] == 255).all()


@boards
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_boards_scale(board, factor):
    other = Board(board.kind, board.columns, board.rows, factor * board.size, factor * board.inner, board.dictionary)
    np.testing.assert_allclose(other.corners, factor * board.corners)
    np.testing.assert_allclose(other.black_rectangles(), factor * board.black_rectangles())
    np.testing.assert_array_equal(other.image(DENSITY / factor), board.image(DENSITY))
    assert Board.parse(str(other)).size == pytest.approx(other.size)
