"""USB cameras, and whatever else Video4Linux knows, by OpenCV. Extra: `cameras`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.clock import NS_PER_S, WallClock
from robot_rl.errors import CameraError, ConfigError, PluginError

MAX_DELAY = NS_PER_S // 2
"""A driver's time of capture counts if it lies no further back than this [ns]; else it is on another clock."""


def find_cv2() -> Any:
    """OpenCV, which no longer prints what our errors say with a cure.

    Raises:
        PluginError: if it is not installed.
    """
    try:
        import cv2
    except ImportError as error:
        raise PluginError(f"USB cameras need OpenCV: pip install 'robot_rl[cameras]' ({error})") from error
    # The first is that of Debian's builds, the second that of PyPI's.
    set_level = cv2.setLogLevel if hasattr(cv2, "setLogLevel") else cv2.utils.logging.setLogLevel
    set_level(0)
    return cv2


def make_uvc(which: str, wanted: CaptureFormat) -> Callable[[], UvcSource]:
    """Return what opens `uvc:WHICH`.

    Raises:
        ConfigError: if no device is named.
        PluginError: if OpenCV is not installed.
    """
    if not which:
        raise ConfigError("no camera is called 'uvc:'; valid: uvc:DEVICE, e.g. uvc:/dev/video0 or uvc:0")
    find_cv2()
    return lambda: UvcSource(which, wanted)


class UvcSource:
    """A camera behind OpenCV.

    Args:
        device: `/dev/video0`, a stable name below `/dev/v4l/by-id/`, or a number.
        wanted: What it is asked for.

    Raises:
        CameraError: if it cannot be opened, or has no such format.
    """

    serial = ""

    def __init__(self, device: str, wanted: CaptureFormat) -> None:
        self._cv2, self._device, self._wall = find_cv2(), device, WallClock()
        cv2 = self._cv2
        linux = sys.platform.startswith("linux")
        index: int | str = int(device) if device.isdecimal() else device
        self._capture = cv2.VideoCapture(index, cv2.CAP_V4L2 if linux else cv2.CAP_ANY)
        if not self._capture.isOpened():
            raise CameraError(f"camera {device} cannot be opened: unplugged, or used by another program{_there()}")
        self._capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*"MJPG"))  # raw frames fill a USB 2 bus
        if wanted.width:
            self._capture.set(cv2.CAP_PROP_FRAME_WIDTH, wanted.width)
            self._capture.set(cv2.CAP_PROP_FRAME_HEIGHT, wanted.height)
        self._capture.set(cv2.CAP_PROP_FPS, wanted.rate)
        self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # the newest frame, not the oldest that waits
        size = tuple(int(self._capture.get(p)) for p in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        if wanted.width and size != (wanted.width, wanted.height):
            self.close()
            raise CameraError(
                f"camera {device} was asked for {wanted.width} x {wanted.height} px and gives {size[0]} x {size[1]}; "
                "set capture_width and capture_height to what it has (v4l2-ctl --list-formats-ext)"
            )

    def read(self) -> Frame:
        """Return the next frame."""
        if not self._capture.grab():
            raise CameraError(f"camera {self._device} gives no more frames; check its cable and its USB hub{_there()}")
        stamp = self._stamp()
        good, image = self._capture.retrieve()
        if not good:
            raise CameraError(f"camera {self._device} gave a frame that cannot be decoded; check its cable")
        return Frame(stamp, self._cv2.cvtColor(image, self._cv2.COLOR_BGR2RGB))

    def close(self) -> None:
        """Lets the camera go."""
        self._capture.release()

    def _stamp(self) -> int:
        """Video4Linux counts the time of capture on the monotonic clock; other drivers tell none that can be used."""
        now = time.monotonic_ns()
        captured = round(self._capture.get(self._cv2.CAP_PROP_POS_MSEC) * 1e6)
        delay = now - captured
        return self._wall.now() - (delay if 0 <= delay <= MAX_DELAY else 0)


def _there() -> str:
    """Which cameras there are, where the system tells."""
    names = sorted(str(path) for path in Path("/dev").glob("video*"))
    return f"; here are: {', '.join(names) or 'none'}" if sys.platform.startswith("linux") else ""
