"""Intel RealSense cameras: their colour frames. Extra: `realsense`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.clock import WallClock
from robot_rl.errors import CameraError, PluginError

PATIENCE = 1000
"""How long a frame may take [ms]."""


def find_pyrealsense() -> Any:
    """Intel's library.

    Raises:
        PluginError: if it is not installed.
    """
    try:
        import pyrealsense2
    except ImportError as error:
        raise PluginError(
            f"RealSense cameras need pyrealsense2: pip install 'robot_rl[realsense]' ({error})"
        ) from error
    return pyrealsense2


def make_realsense(which: str, wanted: CaptureFormat) -> Callable[[], RealSenseSource]:
    """Return what opens `realsense:WHICH`; without a serial number, the only one.

    Raises:
        PluginError: if its library is not installed.
    """
    find_pyrealsense()
    return lambda: RealSenseSource(which, wanted)


class RealSenseSource:
    """The colour stream of a RealSense.

    Args:
        serial: Which one; an empty text takes the only one.
        wanted: What it is asked for.

    Raises:
        CameraError: if it is not there, or has no such format.
    """

    def __init__(self, serial: str, wanted: CaptureFormat) -> None:
        rs = self._rs = find_pyrealsense()
        self.serial = serial
        self._wall = WallClock()
        config = rs.config()
        if serial:
            config.enable_device(serial)
        config.enable_stream(rs.stream.color, wanted.width, wanted.height, rs.format.rgb8, round(wanted.rate))
        self._pipeline = rs.pipeline()
        try:
            profile = self._pipeline.start(config)
        except RuntimeError as error:
            raise CameraError(
                f"RealSense {serial or '(any)'} cannot be opened for {wanted.width} x {wanted.height} px at "
                f"{wanted.rate:g} Hz: {error}; here are: {', '.join(self._serials()) or 'none'}; check its cable "
                "(USB 3), and that no other program uses it"
            ) from error
        self.serial = profile.get_device().get_info(rs.camera_info.serial_number)

    def read(self) -> Frame:
        """Return the next frame."""
        try:
            color = self._pipeline.wait_for_frames(PATIENCE).get_color_frame()
        except RuntimeError as error:
            raise CameraError(
                f"RealSense {self.serial} gives no more frames: {error}; check its cable and its USB hub"
            ) from error
        return Frame(self._stamp(color), np.array(color.get_data()))

    def close(self) -> None:
        """Stop the stream."""
        if self._pipeline is not None:
            self._pipeline.stop()
            self._pipeline = None

    def _stamp(self, frame: Any) -> int:
        """Return the camera's time if it is synchronised to this machine (`global time`), else the time of arrival."""
        now = self._wall.now()
        if frame.get_frame_timestamp_domain() == self._rs.timestamp_domain.hardware_clock:
            return now
        delay = time.time_ns() - round(frame.get_timestamp() * 1e6)
        return now - max(delay, 0)

    def _serials(self) -> list[str]:
        rs = self._rs
        return [device.get_info(rs.camera_info.serial_number) for device in rs.context().query_devices()]
