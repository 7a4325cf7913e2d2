"""Error of the tcp in pictures of the simulated arm after a live calibration.

    python benchmarks/live_calibration.py --rigs 5

The session and the motions of `calibrate_node`, without topics: the arm moves to the first poses, then to the proposed
ones, and lens and hand-eye pose are calibrated. Then the tcp is projected into the pictures, with the result and with
the truth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import numpy as np

from calibration.camera.board import Board
from calibration.guided.session import CameraSession, SessionSetup
from calibration.hand_eye.planner import SafetyBox
from robot_rl.env.move_arm import Travel
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose
from sim.calibration.cell import NOMINAL, RigTruth, calibration_workcell, draw_truth
from sim.calibration.rig import Plate

BOARD = Board.parse("charuco:11x8:20mm:15mm")
LOW, HIGH, MAX_TURN = np.array([0.3, -0.25, 0.1]), np.array([0.7, 0.25, 0.5]), 0.7


class Blind:
    """Arm that takes no pictures on its way."""

    def __init__(self, io: object) -> None:
        self._io = io
        self.command, self.stop = io.command, io.stop

    def read(self) -> RobotState:
        """Return the newest state."""
        return self._io.read(images=False)


def pixel(truth: RigTruth, X: Pose, lens: object, T_base_tcp: Pose) -> np.ndarray:
    """Project the tcp into the picture [px]."""
    seen = X.inverse() if truth.mounting == "eye_in_hand" else X.inverse() @ T_base_tcp
    return lens.project(seen.position[None])[0]


def measure(mounting: str, seed: int, views: int) -> Mapping[str, float]:
    """Measure one rig."""
    truth = draw_truth(mounting, "camera", seed)
    cell = calibration_workcell(Plate(BOARD.black_rectangles(), BOARD.extent, BOARD.margin), truth, WorkcellOptions())
    cell.task.reset(seed)
    travel = Travel(Blind(cell.io), cell.clock, 0.25, 1.0)
    session = CameraSession(SessionSetup(BOARD, "camera", mounting, "fr3"))
    began, start, visited = time.perf_counter(), travel.rest(), []
    session.add(cell.io.frames()[1]["camera"], "start", start.T_base_tcp)
    box = SafetyBox(LOW, HIGH, start.T_base_tcp.quaternion, MAX_TURN)
    while not session.complete(views) and len(visited) < 3 * views:
        for pose in session.propose(box, max(4, views - session.count), seed=len(visited)):
            rest = travel.go(pose)
            visited.append(rest.T_base_tcp)
            session.add(cell.io.frames()[1]["camera"], f"{len(visited)}", rest.T_base_tcp)
    _, fit = session.finish()
    cell.close()
    found = fit.result
    change = (truth.T_parent_camera.inverse() @ found.T_parent_camera).vector()
    true = [pixel(truth, truth.T_parent_camera, truth.lens, T) for T in visited]
    found_pixels = [pixel(truth, found.T_parent_camera, found.intrinsics, T) for T in visited]
    size = np.array([truth.lens.width, truth.lens.height])
    off = [np.linalg.norm(a - b) for a, b in zip(true, found_pixels, strict=True) if ((a >= 0) & (a < size)).all()]
    return {
        "tcp off [px]": float(np.max(off)),
        "pictures with the tcp": float(len(off)),
        "position [mm]": 1e3 * float(np.linalg.norm(change[:3])),
        "rotation [deg]": float(np.degrees(np.linalg.norm(change[3:]))),
        "views": float(session.count),
        "robot [s]": cell.clock.now() / 1e9,
        "wall [s]": time.perf_counter() - began,
    }


def main() -> None:
    """Print a line for each rig."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rigs", type=int, default=5, help="how many of each mounting")
    parser.add_argument("--views", type=int, default=20, help="pictures of each")
    arguments = parser.parse_args()
    for mounting in NOMINAL:
        for seed in range(arguments.rigs):
            figures = measure(mounting, seed, arguments.views)
            print(mounting, seed, ", ".join(f"{key} {value:.3g}" for key, value in figures.items()), flush=True)


if __name__ == "__main__":
    main()
