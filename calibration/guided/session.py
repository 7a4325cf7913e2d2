"""Session that calibrates a camera with the arm: its lens, unless that is known, and its hand-eye pose.

The session receives pictures with poses of the arm, returns advice, proposes poses, and computes both calibrations at
the end. It combines the two flows of `flow.py`. It neither moves the arm nor takes pictures.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.camera.board import Board
from calibration.camera.intrinsics import IntrinsicsFit
from calibration.guided.flow import Advice, HandEyeFlow, IntrinsicsFlow
from calibration.hand_eye.hand_eye import MIN_VIEWS, HandEyeFit
from calibration.hand_eye.planner import SafetyBox, initial_poses, plan_poses
from calibration.hand_eye.problem import Guess, Sighting
from calibration.report.camera_reports import hand_eye_report, intrinsics_report
from calibration.report.report import write_result_and_report
from calibration.result import CameraIntrinsics, load_intrinsics, write_camera_info
from calibration.result.lens import LENS_MODELS
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose


@dataclass(frozen=True, eq=False)
class SessionSetup:
    """Prior knowledge of a session.

    Attributes:
        board: The board in the pictures.
        camera: Name or serial number of the camera.
        mounting: `eye_in_hand` or `eye_to_hand`.
        robot: Name of the arm and tool.
        model: Lens model; a key of `calibration.result.lens.COEFFICIENTS`.
        lens: The calibrated lens; None calibrates it, too.
    """

    board: Board
    camera: str
    mounting: str
    robot: str
    model: str = "rational_polynomial"
    lens: CameraIntrinsics | None = None

    @classmethod
    def parse(cls, board: str, camera: str, mounting: str, robot: str, lens: str, intrinsics: str) -> SessionSetup:
        """Return the setup of settings as a user writes them.

        Args:
            board: See `Board.parse`.
            camera: Name or serial number of the camera.
            mounting: `eye_in_hand` or `eye_to_hand`.
            robot: Name of the arm and tool.
            lens: Kind of lens; a key of `calibration.result.lens.LENS_MODELS`.
            intrinsics: File of the calibrated lens; an empty text calibrates it, too.

        Raises:
            CalibrationError: if the board is none, or the file is of another camera or cannot be read.
        """
        known = load_intrinsics(Path(intrinsics).expanduser(), camera=camera) if intrinsics else None
        return cls(Board.parse(board), camera, mounting, robot, LENS_MODELS[lens], known)


class CameraSession:
    """Collection of pictures and poses of the arm, which proposes more of them.

    Args:
        setup: Prior knowledge.
    """

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup
        self._lens_flow = IntrinsicsFlow(setup.board, setup.camera, setup.model)
        self._flow = HandEyeFlow(setup.board, setup.lens, setup.mounting, setup.robot) if setup.lens else None
        self._sightings: list[Sighting] = []
        self._tried: list[Pose] = []
        self._finished: tuple[int, IntrinsicsFit | None, HandEyeFit] | None = None
        self.advice: Advice | None = None
        """Advice after the newest picture."""

    def add(self, image: np.ndarray, name: str, T_base_tcp: Pose) -> Advice:
        """Process a picture.

        Args:
            image: RGB, uint8, shape (height, width, 3).
            name: Name of the picture.
            T_base_tcp: Pose of the resting arm when the picture was taken.

        Raises:
            CalibrationError: if the lens is known and the size of the picture differs from that of the lens.
        """
        self._tried.append(T_base_tcp)
        if self._flow is not None:
            self.advice = self._flow.add(image, name, T_base_tcp)
            self._sightings = self._flow.sightings
        else:
            self.advice = self._lens_flow.add(image, name)
            if self.advice.accepted:
                self._sightings.append(Sighting(self._lens_flow.views[-1], T_base_tcp))
        return self.advice

    def is_new(self, T_base_tcp: Pose) -> bool:
        """Return whether a pose is 3 cm or 5 degrees away from the poses of all pictures so far."""
        changes = [(tried.inverse() @ T_base_tcp).vector() for tried in self._tried]
        return all(np.linalg.norm(c[:3]) > 0.03 or np.linalg.norm(c[3:]) > np.radians(5) for c in changes)

    @property
    def count(self) -> int:
        """Number of accepted pictures."""
        return len(self._sightings)

    def propose(self, box: SafetyBox, count: int, *, seed: int = 0) -> list[Pose]:
        """Propose poses to take pictures from.

        Until lens and hand-eye pose are roughly known, the poses are near the first one. Then they are those with the
        largest information gain.

        Args:
            box: Limits of the tcp.
            count: Number of poses, once lens and hand-eye pose are roughly known.
            seed: Seed of the random candidates.

        Raises:
            CalibrationError: if no picture was accepted yet, or there are too few such poses.
        """
        if not self._sightings:
            raise CalibrationError(f"no picture shows the board {self._setup.board} yet; bring it into view")
        known = self._known()
        if known is None:
            poses = initial_poses(self._sightings[0].T_base_tcp, box, phase=0.4 * seed)
            if len(poses) < MIN_VIEWS:
                raise CalibrationError(
                    f"around the pose that the arm is in, only {len(poses)} poses lie inside the safety box; enlarge "
                    "it or the turn that it allows, or begin further inside"
                )
            return poses
        lens, guess = known
        return plan_poses(lens, self._setup.board, guess, box, count, seed=seed)

    def complete(self, views: int) -> bool:
        """Return whether there are at least `views` accepted pictures, and both calibrations are good."""
        if self.count < views:
            return False
        try:
            lens, where = self.finish()
        except CalibrationError:
            return False
        return where.quality.good and (lens is None or lens.quality.good)

    def finish(self) -> tuple[IntrinsicsFit | None, HandEyeFit]:
        """Return both calibrations; the first is None if the lens was known.

        Raises:
            CalibrationError: if the pictures do not determine them.
        """
        if self._finished is None or self._finished[0] != self.count:
            if self._flow is not None:
                self._finished = self.count, None, self._flow.finish()
            else:
                lens = self._lens_flow.finish()
                self._finished = self.count, lens, self._hand_eye_flow(lens.result).finish()
        return self._finished[1:]

    def write_results(self, folder: Path) -> tuple[list[str], int]:
        """Write the results that are good enough, and both reports in any case.

        Args:
            folder: Folder of `<camera>_intrinsics.yaml`, `<camera>_camera_info.yaml`, `<camera>_hand_eye.yaml` and
                the reports.

        Returns:
            Lines of text for the operator, and the exit code.

        Raises:
            CalibrationError: if the pictures do not determine them.
        """
        lens, where = self.finish()
        name = self._setup.camera
        lines, good = list[str](), where.quality.good
        if lens is not None:
            out = folder / f"{name}_intrinsics.yaml"
            lines += write_result_and_report(
                lens.result, lens.quality, intrinsics_report(lens), out, out.with_suffix(".html")
            )
            good &= lens.quality.good
        out = folder / f"{name}_hand_eye.yaml"
        lines += write_result_and_report(
            where.result, where.quality, hand_eye_report(where), out, out.with_suffix(".html")
        )
        if good:
            info = folder / f"{name}_camera_info.yaml"
            write_camera_info(where.result.intrinsics, info)
            lines += [f"camera_info: {info}", f"use it: camera_node -p calibrations:=\"['{name}={out}']\""]
        return lines, int(not good)

    def _hand_eye_flow(self, lens: CameraIntrinsics) -> HandEyeFlow:
        """Make the hand-eye flow for the lens that the intrinsics flow found."""
        flow = HandEyeFlow(self._setup.board, lens, self._setup.mounting, self._setup.robot)
        flow.rejected.update(self._lens_flow.rejected)
        flow.sightings.extend(self._sightings)
        return flow

    def _known(self) -> tuple[CameraIntrinsics, Guess] | None:
        """Return lens, camera and board if the pictures so far determine them, else None."""
        if len(self._sightings) < MIN_VIEWS:
            return None
        try:
            fit = self.finish()[1]
        except CalibrationError:
            return None  # not enough yet
        return fit.result.intrinsics, Guess(fit.result.mounting, fit.result.T_parent_camera, fit.T_parent_board, ())
