"""A real arm's cell with a board, to calibrate a camera in: controller and camera stand in for real ones."""

import contextlib
import os
import threading
import time

import cv2
import numpy as np
from cartesian_controller import Controller

from calibration.camera.board import Board
from robot_rl.geometry import Pose
from sim.calibration.cell import FAULTS, draw_truth
from sim.calibration.rig import CalibrationRig, Plate

BOARD = "charuco:11x8:20mm:15mm"
STILL = 1e-4
"""By how much the arm may move while it is photographed, per axis [m, rad]."""


class BoardCell:
    """An arm that starts where its camera sees the board, and that camera.

    The camera is a folder for `camera_node`, in which a named pipe stands for a picture: whoever reads it gets one of
    where the arm is, and waits where rendering took so long that the arm has moved on meanwhile.

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
        self._plate, self._folder = Plate(board.black_rectangles(), board.extent, board.margin), folder
        self._offer()
        self._done = threading.Event()
        self._thread = graph.thread(self._show)

    def close(self):
        self._done.set()
        self._thread.join(10)

    def _show(self):
        truth, rng = self.truth, np.random.default_rng(0)
        rig = CalibrationRig(
            self._plate, truth.lens, truth.mounting, truth.T_parent_camera, truth.T_parent_board
        )  # in this thread, to which rendering is bound
        while not self._done.is_set():
            try:
                reader = os.open(self._folder / "newest.png", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads
                time.sleep(0.01)
                continue
            self._offer()  # to the next one; this one would else read on into the next picture
            os.set_blocking(reader, True)
            with contextlib.suppress(BrokenPipeError), open(reader, "wb") as pipe:
                pipe.write(self._picture(rig, rng))
        rig.close()

    def _offer(self):
        os.mkfifo(self._folder / "next.pipe")
        os.replace(self._folder / "next.pipe", self._folder / "newest.png")

    def _picture(self, rig, rng):
        while True:
            pose = self._pose()
            _, data = cv2.imencode(".png", rig.render(pose, FAULTS, rng)[:, :, ::-1])
            moved = np.abs((pose.inverse() @ self._pose()).vector()).max()
            if moved < STILL or self._done.is_set():
                return data.tobytes()

    def _pose(self):
        return Pose(self.controller.position, self.controller.quaternion)
