"""A real arm's cell with a board, to calibrate a camera in: controller and camera stand in for real ones."""

import os
import threading

import cv2
import numpy as np
from cartesian_controller import Controller

from calibration.board import Board
from robot_rl.geometry import Pose
from sim.calibration_cell import FAULTS, draw_truth
from sim.calibration_rig import CalibrationRig, Plate

BOARD = "charuco:11x8:20mm:15mm"


class BoardCell:
    """An arm that starts where its camera sees the board, and that camera.

    The camera is a folder with one picture, for `camera_node`, of where the arm is. It is taken anew as often as this
    machine can.

    Attributes:
        truth: Where everything is.
        controller: The arm's.
    """

    def __init__(self, graph, folder, mounting, seed=0):
        board = Board.parse(BOARD)
        self.truth = draw_truth(mounting, "wrist", seed)
        lens = self.truth.lens
        start = self.truth.facing(board.extent, 1.5 * max(board.extent) * lens.fx / lens.width)
        self.controller = graph.add(
            lambda **options: Controller(quaternion=start.quaternion, position=start.position, **options)
        )
        self._plate, self._folder = Plate(board.black(), board.extent, board.margin), folder
        self._done, self._ready = threading.Event(), threading.Event()
        self._thread = graph.thread(self._show)
        assert self._ready.wait(60.0)

    def close(self):
        self._done.set()
        self._thread.join(10)

    def _show(self):
        truth, rng = self.truth, np.random.default_rng(0)
        rig = CalibrationRig(
            self._plate, truth.lens, truth.mounting, truth.T_parent_camera, truth.T_parent_board
        )  # in this thread, to which rendering is bound
        newest, shown = self._folder / "newest.png", self._folder / "being_written.part"
        while not self._done.is_set():
            pose = Pose(self.controller.position, self.controller.quaternion)
            _, data = cv2.imencode(".png", rig.photograph(pose, FAULTS, rng)[:, :, ::-1])
            shown.write_bytes(data)
            os.replace(shown, newest)
            self._ready.set()
        rig.close()
