"""A snapshot for the pages: the state of the job, the newest state of the arm, and its camera frames as JPEG."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from robot_rl.clock import NS_PER_S
from robot_rl.console.camera_views import CameraViews
from robot_rl.console.job_state import JobState
from robot_rl.console.scene import Geometry, SceneFacts
from robot_rl.env.robot_io import RobotState
from robot_rl.env.supervision import Supervised

QUALITY = 80


def jpeg(frame: np.ndarray) -> bytes:
    """Return an RGB frame, uint8, shape (height, width, 3), as JPEG."""
    content = io.BytesIO()
    Image.fromarray(frame).save(content, "JPEG", quality=QUALITY)
    return content.getvalue()


class Pictures(NamedTuple):
    """The frames of one time.

    Attributes:
        read_at: When they were read [ns], by `time.monotonic_ns`.
        jpegs: One for each camera, in their order.
    """

    read_at: int
    jpegs: tuple[bytes, ...]

    @property
    def age(self) -> float:
        """Time since they were read [s]."""
        return (time.monotonic_ns() - self.read_at) / NS_PER_S


class LivePictures:
    """The newest frames, encoded once for all pages."""

    def __init__(self) -> None:
        self._stamp = -1
        self._pictures = Pictures(0, ())

    def encode(self, stamp: int, read_at: int, frames: Mapping[str, np.ndarray]) -> Pictures:
        """Return the frames as JPEG; the same object as long as there are no new ones."""
        if stamp != self._stamp:
            self._pictures = Pictures(read_at, tuple(jpeg(frame) for frame in frames.values()))
            self._stamp = stamp
        return self._pictures


MAX_AGE = 0.05
"""Age at which the state is composed anew [s]; all pages share it."""


class ConsoleSnapshot:
    """The present state of job and robot. Used by the console's threads only.

    Args:
        job: State of the job.
        supervision: Of the robot.
        geometry: Of the robot.
    """

    def __init__(self, job: JobState, supervision: Supervised, geometry: Geometry) -> None:
        self._job, self._supervision, self._live = job, supervision, LivePictures()
        self.views = CameraViews(geometry.mounts, supervision)
        """How the cameras see the robot."""
        self._scene = SceneFacts(geometry, supervision)
        self._made, self._state = 0.0, dict[str, Any]()

    def job(self) -> dict[str, Any]:
        """Return the facts that do not change while one task is done."""
        return self._job.job

    def state(self) -> dict[str, Any]:
        """Return everything that changes often."""
        now = time.monotonic()
        if now - self._made > MAX_AGE:
            holds = [{"name": hold.name, "reason": hold.reason} for hold in self._supervision.holds]
            self._state = {**self._job.state(), "holds": holds, "arm": self._arm(), "other": self._other()}
            self._state["question"] = self._supervision.question
            self._made = now
        return self._state

    def episodes(self) -> list[dict[str, Any]]:
        """Return the points of all online episodes, in their order."""
        return self._job.episodes()

    def curves(self) -> dict[str, Any]:
        """Return the points of the curves."""
        return self._job.curves()

    def pictures(self) -> Pictures | None:
        """Return the newest frames; None before there are any."""
        read_at, latest = self._supervision.io.read_at, self._supervision.io.latest
        return self._live.encode(latest.stamp, read_at, latest.images) if latest is not None and latest.images else None

    def _arm(self) -> dict[str, Any] | None:
        whole, start = self._supervision.io.latest, self._supervision.io.start
        if whole is None:
            return None
        latest, chosen = whole, self._job.chosen
        if chosen is not None:
            latest, start = whole.arms[chosen], None if start is None else start.arms[chosen]
        return {
            "stamp": latest.stamp / 1e9,
            "position": np.round(latest.T_base_tcp.position, 5).tolist(),
            "quaternion": np.round(latest.T_base_tcp.quaternion, 5).tolist(),
            "offset": _offset(latest, start),
            "speed": float(np.linalg.norm(latest.twist[:3])),
            "force": None if latest.wrench is None else np.round(latest.wrench[:3], 2).tolist(),
            "torque": None if latest.wrench is None else np.round(latest.wrench[3:], 3).tolist(),
            "peak_force": latest.peak_force,
            "gripper": latest.gripper_width,
            "cameras": list(whole.images),
            "views": self.views.facts(),
            **self._scene.at(whole, chosen),
        }

    def _other(self) -> dict[str, Any] | None:
        """Return what a second hand has to know of the arm that it leads."""
        whole, beside = self._supervision.io.latest, self._job.beside
        if whole is None or beside is None:
            return None
        tool = whole.arms[beside.name].T_base_tcp
        return {
            "name": beside.name,
            "heading": round(beside.heading, 4),
            "position": np.round(tool.position, 5).tolist(),
            "quaternion": np.round(tool.quaternion, 5).tolist(),
        }


def _offset(latest: RobotState, start: RobotState | None) -> list[float]:
    """Return the displacement of the tcp since the start of the episode, along the base's axes [m]."""
    if start is None:
        return [0.0, 0.0, 0.0]
    return np.round(latest.T_base_tcp.position - start.T_base_tcp.position, 5).tolist()
