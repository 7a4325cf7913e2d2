"""A snapshot for the pages: the state of the job, the newest state of the arm, and its camera frames as JPEG."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from robot_rl.console.job_state import JobState
from robot_rl.env.robot_io import RobotState
from robot_rl.env.supervision import Supervised

QUALITY = 80


def jpeg(frame: np.ndarray) -> bytes:
    """Return an RGB frame, uint8, shape (height, width, 3), as JPEG."""
    content = io.BytesIO()
    Image.fromarray(frame).save(content, "JPEG", quality=QUALITY)
    return content.getvalue()


class LivePictures:
    """The newest frames, encoded once for all pages."""

    def __init__(self) -> None:
        self._stamp = -1
        self._pictures: tuple[bytes, ...] = ()

    def encode(self, stamp: int, frames: Mapping[str, np.ndarray]) -> tuple[bytes, ...]:
        """Return one message per camera: its number in the order of `frames` (one byte), then the JPEG."""
        if stamp != self._stamp:
            self._pictures = tuple(bytes((number,)) + jpeg(frame) for number, frame in enumerate(frames.values()))
            self._stamp = stamp
        return self._pictures


MAX_AGE = 0.05
"""Age at which the state is composed anew [s]; all pages share it."""


class ConsoleSnapshot:
    """The present state of job and robot. Used by the console's threads only.

    Args:
        job: State of the job.
        supervision: Of the robot.
    """

    def __init__(self, job: JobState, supervision: Supervised) -> None:
        self._job, self._supervision, self._live = job, supervision, LivePictures()
        self._made, self._state = 0.0, dict[str, Any]()

    def job(self) -> dict[str, Any]:
        """Return the facts that do not change."""
        return self._job.job

    def state(self) -> dict[str, Any]:
        """Return everything that changes often."""
        now = time.monotonic()
        if now - self._made > MAX_AGE:
            holds = [{"name": hold.name, "reason": hold.reason} for hold in self._supervision.holds]
            self._state = {**self._job.state(), "holds": holds, "arm": self._arm()}
            self._state["question"] = self._supervision.question
            self._made = now
        return self._state

    def curves(self) -> dict[str, Any]:
        """Return the points of the curves."""
        return self._job.curves()

    def pictures(self) -> tuple[bytes, ...]:
        """Return the newest frames, each as one message."""
        latest = self._supervision.io.latest
        return self._live.encode(latest.stamp, latest.images) if latest is not None and latest.images else ()

    def _arm(self) -> dict[str, Any] | None:
        latest, start = self._supervision.io.latest, self._supervision.io.start
        if latest is None:
            return None
        return {
            "stamp": latest.stamp / 1e9,
            "position": np.round(latest.T_base_tcp.position, 5).tolist(),
            "offset": _offset(latest, start),
            "speed": float(np.linalg.norm(latest.twist[:3])),
            "force": np.round(latest.wrench[:3], 2).tolist(),
            "torque": np.round(latest.wrench[3:], 3).tolist(),
            "peak_force": latest.peak_force,
            "gripper": latest.gripper_width,
            "cameras": list(latest.images),
        }


def _offset(latest: RobotState, start: RobotState | None) -> list[float]:
    """Return the displacement of the tcp since the start of the episode, along the base's axes [m]."""
    if start is None:
        return [0.0, 0.0, 0.0]
    return np.round(latest.T_base_tcp.position - start.T_base_tcp.position, 5).tolist()
