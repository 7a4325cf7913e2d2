"""Guided collection of frames: each frame is accepted or rejected, and advice on the next one is returned.

The command line passes recorded pictures, a node passes live ones. Only accepted frames are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from calibration.camera.board import Board
from calibration.camera.board_pose import board_pose
from calibration.camera.intrinsics import MIN_VIEWS, IntrinsicsFit, calibrate_intrinsics, coverage, tilt_spread
from calibration.camera.view import BadViewError, BoardDetector, BoardView
from calibration.hand_eye.hand_eye import MIN_VIEWS as MIN_POSES
from calibration.hand_eye.hand_eye import HandEyeFit, calibrate_hand_eye
from calibration.hand_eye.problem import Sighting
from calibration.hand_eye.rotation_spread import MIN_SECOND_TURN, rotation_spread
from calibration.result import CameraIntrinsics
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

_REFIT_EVERY = 5
"""Number of accepted frames between two fits: a compromise of early progress and computing time."""
_ENOUGH_VIEWS = 15
_COVERED = 0.7
"""Least share of the picture's cells that contain corners."""
_SAME_PIXELS = 0.02
"""Views whose corners differ by less than this share of the picture's width are similar."""


@dataclass(frozen=True, eq=False)
class Advice:
    """Result of one frame, and what to do next.

    Attributes:
        accepted: Whether the frame is in use.
        reason: Why it was rejected; empty if it was accepted.
        views: Number of accepted frames so far.
        coverage: Corners per cell of a grid over the picture, shape (rows, columns).
        rms: Reprojection error so far [px]; None before the first fit.
        enough: Whether the frames suffice.
        next: Instruction for the operator.
    """

    accepted: bool
    reason: str
    views: int
    coverage: np.ndarray
    rms: float | None
    enough: bool
    next: str

    def summary(self) -> str:
        """Return one line of text for the operator."""
        if not self.accepted:
            return f"left out: {self.reason}"
        rms = f", error {self.rms:.2f} px" if self.rms is not None else ""
        covered = f"{100 * (self.coverage > 0).mean():.0f} % of the picture covered"
        return f"view {self.views}, {covered}{rms}; next: {self.next}"


F = TypeVar("F", IntrinsicsFit, HandEyeFit)


class _Flow(ABC, Generic[F]):
    """Base class: record rejected frames by name, and refit after every few accepted frames."""

    least: ClassVar[int]
    """Least number of frames of a fit."""

    def __init__(self, board: Board) -> None:
        self._detector = BoardDetector(board)
        self.rejected: dict[str, str] = {}
        """Rejected frames, and why."""
        self._fit: F | None = None
        self._problem = ""

    @property
    def fit(self) -> F | None:
        """The newest fit; None before the first, or if it failed."""
        return self._fit

    @abstractmethod
    def finish(self) -> F:
        """Return the calibration from all accepted frames."""

    @abstractmethod
    def _advice(self, reason: str) -> Advice:
        """Return the advice after a frame; an empty `reason` means that it was accepted."""

    def _reject(self, name: str, reason: str) -> Advice:
        self.rejected[name] = reason
        return self._advice(reason)

    def _accept(self, count: int) -> Advice:
        """Register accepted frame number `count`, and refit when it is time."""
        if count >= self.least and count % _REFIT_EVERY == 0:
            try:
                self._fit, self._problem = self.finish(), ""
            except CalibrationError as error:
                self._fit, self._problem = None, str(error)
        return self._advice("")


class IntrinsicsFlow(_Flow[IntrinsicsFit]):
    """Collection of views for intrinsics.

    Args:
        board: The board in the pictures.
        camera: Name or serial number of the camera.
        model: Key of `calibration.result.lens.COEFFICIENTS`.
        skip_similar: Whether to reject a view that is similar to an accepted one, as for a live camera.
    """

    least = MIN_VIEWS

    def __init__(self, board: Board, camera: str, model: str, *, skip_similar: bool = False) -> None:
        super().__init__(board)
        self._camera, self._model, self._skip_similar = camera, model, skip_similar
        self.views: list[BoardView] = []

    def add(self, image: np.ndarray, name: str) -> Advice:
        """Process a frame.

        Args:
            image: RGB, uint8, shape (height, width, 3), or grey, shape (height, width).
            name: Name of the frame.
        """
        try:
            view = self._detector.detect(image, name)
            if self._skip_similar and any(_same(view, other) for other in self.views):
                raise BadViewError("shows the board where it was before; move it")
        except BadViewError as error:
            return self._reject(name, str(error))
        self.views.append(view)
        return self._accept(len(self.views))

    def finish(self) -> IntrinsicsFit:
        """Return the calibration from all accepted views.

        Raises:
            CalibrationError: see `calibrate_intrinsics`.
        """
        start = self._fit.result if self._fit is not None else None
        return calibrate_intrinsics(self.views, self._camera, self._model, rejected=self.rejected, start=start)

    def _advice(self, reason: str) -> Advice:
        cells = coverage(self.views) if self.views else np.zeros((6, 8), int)
        good = self._fit is not None and self._fit.quality.good
        enough = good and len(self.views) >= _ENOUGH_VIEWS and (cells > 0).mean() >= _COVERED
        rms = self._fit.result.rms if self._fit is not None else None
        return Advice(not reason, reason, len(self.views), cells, rms, enough, self._next(cells, enough))

    def _next(self, cells: np.ndarray, enough: bool) -> str:
        if enough:
            return "enough: finish, or go on for more certainty"
        if self._problem:
            return self._problem
        if self._fit is not None and tilt_spread(self._fit.boards) < np.radians(15.0):
            return "tilt the board by 20 to 40 deg, to the left, right, up and down"
        if len(self.views) >= MIN_VIEWS and (cells > 0).mean() < _COVERED:
            return f"bring the board to the {_empty_place(cells)} of the picture"
        if len(self.views) < _ENOUGH_VIEWS:
            return f"{_ENOUGH_VIEWS - len(self.views)} more views, tilted to all sides, near and far"
        return "more views: tilted, near, and at the edges of the picture"


class HandEyeFlow(_Flow[HandEyeFit]):
    """Collection of views and poses of the arm for a hand-eye calibration.

    Args:
        board: The board in the pictures.
        intrinsics: Camera and lens.
        mounting: `eye_in_hand` or `eye_to_hand`.
        robot: Name of the arm and tool.
    """

    least = MIN_POSES

    def __init__(self, board: Board, intrinsics: CameraIntrinsics, mounting: str, robot: str) -> None:
        super().__init__(board)
        self._intrinsics, self._mounting, self._robot = intrinsics, mounting, robot
        self.sightings: list[Sighting] = []

    def add(self, image: np.ndarray, name: str, T_base_tcp: Pose, stamp: int | None = None) -> Advice:
        """Process a frame, in order of time.

        Args:
            image: RGB, uint8, shape (height, width, 3).
            name: Name of the frame.
            T_base_tcp: Pose of the resting arm at that time.
            stamp: The time [ns], if it is known.

        Raises:
            CalibrationError: if the size of the picture differs from that of the intrinsics.
        """
        self._intrinsics.require(size=(image.shape[1], image.shape[0]))
        try:
            view = self._detector.detect(image, name)
            board_pose(self._intrinsics, view)
        except BadViewError as error:
            return self._reject(name, str(error))
        return self.add_sighting(Sighting(view, T_base_tcp, stamp))

    def add_sighting(self, sighting: Sighting) -> Advice:
        """Accept a view that was detected before, e.g. for the intrinsics."""
        self.sightings.append(sighting)
        return self._accept(len(self.sightings))

    def finish(self) -> HandEyeFit:
        """Return the calibration from all accepted views.

        Raises:
            CalibrationError: see `calibrate_hand_eye`.
        """
        return calibrate_hand_eye(self._intrinsics, self.sightings, self._mounting, self._robot, rejected=self.rejected)

    def _advice(self, reason: str) -> Advice:
        views = [sighting.view for sighting in self.sightings]
        cells = coverage(views) if views else np.zeros((6, 8), int)
        good = self._fit is not None and self._fit.quality.good
        rms = self._fit.quality.figures["reprojection_rms_px"] if self._fit is not None else None
        enough = good and len(views) >= _ENOUGH_VIEWS
        return Advice(not reason, reason, len(views), cells, rms, enough, self._next(enough))

    def _next(self, enough: bool) -> str:
        if enough:
            return "enough: finish, or go on for more certainty"
        _, second, _ = rotation_spread([sighting.T_base_tcp for sighting in self.sightings])
        if len(self.sightings) >= 3 and second < 2.0 * MIN_SECOND_TURN:
            return "turn and tilt the tool by 20 to 40 deg about all of its axes, the board in view"
        if self._problem:
            return self._problem
        if self._fit is not None and self._fit.slip is not None and self._fit.slip.found:
            return self._fit.slip.summary()
        if len(self.sightings) < _ENOUGH_VIEWS:
            return f"{_ENOUGH_VIEWS - len(self.sightings)} more poses, turned and tilted by 20 to 40 deg"
        return "more poses with larger tilts"


def _same(a: BoardView, b: BoardView) -> bool:
    """Return whether two views show the board in nearly the same place."""
    _, i, j = np.intersect1d(a.ids, b.ids, return_indices=True)
    if len(i) < 0.8 * max(len(a.ids), len(b.ids)):
        return False
    return bool(np.linalg.norm(a.pixels[i] - b.pixels[j], axis=1).mean() < _SAME_PIXELS * a.size[0])


def _empty_place(cells: np.ndarray) -> str:
    """Return the name of the part of the picture with the most empty cells."""
    rows, columns = cells.shape
    parts = {
        "left": cells[:, : columns // 3],
        "right": cells[:, -(columns // 3) :],
        "top": cells[: rows // 3],
        "bottom": cells[-(rows // 3) :],
    }
    return max(parts, key=lambda name: float((parts[name] == 0).mean()))
