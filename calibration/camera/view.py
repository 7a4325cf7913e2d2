"""Detection of a board in a picture: ids and places of its corners, or the reason why the picture is rejected."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.camera.blur import corner_blur, picture_blur
from calibration.camera.board import Board
from calibration.camera.corner_refinement import refine_corners
from robot_rl.errors import CalibrationError

MIN_CORNERS = 8
"""Least corners of a view: a pose has six unknowns, and the redundancy is needed to detect outliers."""


class BadViewError(CalibrationError):
    """Error for a picture that cannot be used; the message is the reason."""


@dataclass(frozen=True, eq=False)
class BoardView:
    """Corners of a board in a picture.

    Attributes:
        name: Name of the picture, e.g. its file.
        size: Width and height of the picture [px].
        ids: Ids of the detected corners of the board, shape (n,).
        pixels: Their places in the picture [px], shape (n, 2).
        points: The same corners in the board's frame [m], shape (n, 3).
    """

    name: str
    size: tuple[int, int]
    ids: np.ndarray
    pixels: np.ndarray
    points: np.ndarray

    def only(self, keep: np.ndarray) -> BoardView:
        """Return the view with some of its corners."""
        return BoardView(self.name, self.size, self.ids[keep], self.pixels[keep], self.points[keep])


class BoardDetector:
    """Detector of a board in pictures.

    Args:
        board: The board.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, f"DICT_{board.dictionary}"))
        parameters = cv2.aruco.DetectorParameters()
        shape = (board.columns, board.rows)
        if board.kind == "charuco":
            charuco = cv2.aruco.CharucoBoard(shape, board.size, board.inner, dictionary)
            self._charuco = cv2.aruco.CharucoDetector(charuco, detectorParams=parameters)
        else:
            # Lines fitted to the four edges; the search for corners is biased by the tag's own pattern.
            parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_APRILTAG
            self._markers = cv2.aruco.ArucoDetector(dictionary, parameters)

    def detect(self, image: np.ndarray, name: str) -> BoardView:
        """Detect the corners of the board.

        Args:
            image: uint8, shape (height, width) or (height, width, 3) in RGB.
            name: Name of the picture.

        Raises:
            BadViewError: if the board or too much of it is missing, or the picture is mirrored or blurred.
        """
        flat = image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)
        if image.dtype != np.uint8 or not flat or image.size == 0:
            raise BadViewError(f"is no 8-bit grey or RGB picture: {image.dtype}, shape {image.shape}")
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
        ids, pixels = self._find(grey)
        if len(ids) < MIN_CORNERS:
            if len(self._find(np.ascontiguousarray(grey[:, ::-1]))[0]) >= MIN_CORNERS:
                raise BadViewError("is mirrored: its mirror image shows the board; switch off the flip of the camera")
            if blur := picture_blur(grey):
                raise BadViewError(blur)
            if len(ids) == 0:
                raise BadViewError(f"shows no board {self.board}")
            raise BadViewError(f"shows {len(ids)} corners of the board, needed are {MIN_CORNERS}")
        if blur := corner_blur(grey, pixels):
            raise BadViewError(blur)
        return BoardView(name, (grey.shape[1], grey.shape[0]), ids, pixels, self.board.corners[ids])

    def _find(self, grey: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ids, shape (n,), and pixels, shape (n, 2), of the corners, sorted by id."""
        if self.board.kind == "charuco":
            corners, found, _, _ = self._charuco.detectBoard(grey)
            if found is None or len(found) == 0:
                return np.zeros(0, int), np.zeros((0, 2))
            ids, board = found.ravel().astype(int), self.board
            pixels = refine_corners(
                grey, board.corners[ids, :2], corners.reshape(-1, 2), board.size, 0.5 * (board.size - board.inner)
            )
        else:
            quads, found, _ = self._markers.detectMarkers(grey)
            on_board = (
                [] if found is None else [i for i, tag in enumerate(found.ravel()) if 4 * tag < len(self.board.corners)]
            )
            if not on_board:
                return np.zeros(0, int), np.zeros((0, 2))
            ids = np.concatenate([4 * int(found.ravel()[i]) + np.arange(4) for i in on_board])
            # This refinement measures from the corner of the first pixel, everything else from its centre.
            pixels = np.concatenate([quads[i].reshape(4, 2).astype(float) for i in on_board]) - 0.5
        # The refinement may push a corner out of the picture, and reflections may show a marker twice.
        inside = ((pixels >= 0) & (pixels <= [grey.shape[1] - 1, grey.shape[0] - 1])).all(axis=1)
        unique, counts = np.unique(ids, return_counts=True)
        inside &= ~np.isin(ids, unique[counts > 1])
        order = np.argsort(ids[inside])
        return ids[inside][order], pixels[inside][order]
