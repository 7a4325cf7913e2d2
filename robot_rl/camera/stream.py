"""Cameras in the network, by OpenCV: RTSP, MJPEG over HTTP, and pipelines of GStreamer. Extra: `cameras`.

A stream tells no time of capture that could be used, so the time of arrival counts: a frame is older than it says by
the delay of the camera and the network. `robot-rl calibrate` measures that delay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.camera.uvc import find_cv2
from robot_rl.clock import WallClock
from robot_rl.errors import CameraError, ConfigError, PluginError

PATIENCE = 3000
"""How long a stream may take to open, and how long a frame [ms]."""
EXAMPLES = {
    "rtsp": "rtsp://USER:PASSWORD@192.168.1.20/stream1",
    "http": "http://192.168.1.20/mjpeg",
    "https": "https://camera.lab/mjpeg",
    "gstreamer": "gstreamer:rtspsrc latency=0 location=rtsp://192.168.1.20/stream1 ! decodebin ! videoconvert ! "
    "appsink drop=true max-buffers=1",
}
_MISSING = {
    "FFMPEG": "install the wheel of PyPI, which has it: pip install 'robot_rl[cameras]'",
    "GStreamer": "the wheels of PyPI have none: install the OpenCV of your system (apt install python3-opencv) into an "
    "environment that sees it, or name the stream by rtsp:// or http://",
}


def make_stream(kind: str, which: str, wanted: CaptureFormat) -> Callable[[], StreamSource]:
    """Return what opens a stream.

    Args:
        kind: One of `EXAMPLES`.
        which: What follows the colon.
        wanted: Width and height that its frames have to have, if any; the rate is that of the stream.

    Raises:
        ConfigError: if it names no host, or no pipeline that ends in `appsink`, or one that holds frames back.
        PluginError: if OpenCV is not installed, or lacks what the stream needs.
    """
    if kind == "gstreamer" and not re.search(r"!\s*appsink\b", which):
        raise ConfigError(f"a pipeline of GStreamer has to end in `! appsink`, here: {which!r}; e.g. {EXAMPLES[kind]}")
    if kind == "gstreamer" and re.search(r"\brtspsrc\b(?![^!]*\slatency\s*=)", which):
        raise ConfigError(
            f"rtspsrc holds frames back by 2 s unless it is told otherwise, here: {which!r}; write `rtspsrc latency=0`"
        )
    if kind != "gstreamer" and not re.match(r"//[^/\s]+", which):
        raise ConfigError(f"no camera is called '{kind}:{which}': a stream needs a host, e.g. {EXAMPLES[kind]}")
    cv2 = find_cv2()
    backend = "GStreamer" if kind == "gstreamer" else "FFMPEG"
    number = cv2.CAP_GSTREAMER if kind == "gstreamer" else cv2.CAP_FFMPEG
    if not cv2.videoio_registry.hasBackend(number):
        raise PluginError(f"this OpenCV ({cv2.__version__}) is built without {backend}: {_MISSING[backend]}")
    address = which if kind == "gstreamer" else f"{kind}:{which}"
    return lambda: StreamSource(address, number, wanted)


# What entry points name: `rtsp:WHICH` and so on.
make_rtsp, make_http, make_https, make_gstreamer = (partial(make_stream, kind) for kind in EXAMPLES)


class StreamSource:
    """An open stream.

    Args:
        address: URL or pipeline.
        backend: OpenCV's number of what opens it.
        wanted: As for `make_stream`.

    Raises:
        CameraError: if it cannot be opened, or its frames have another size.
    """

    serial = ""

    def __init__(self, address: str, backend: int, wanted: CaptureFormat) -> None:
        self._cv2, self._wall = find_cv2(), WallClock()
        cv2, self._name = self._cv2, without_password(address)
        limits = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, PATIENCE, cv2.CAP_PROP_READ_TIMEOUT_MSEC, PATIENCE]
        if hasattr(cv2, "CAP_PROP_N_THREADS"):  # every further thread of the decoder delays by a frame
            limits += [cv2.CAP_PROP_N_THREADS, 1]
        self._capture: Any = cv2.VideoCapture(address, backend, limits if backend == cv2.CAP_FFMPEG else [])
        if not self._capture.isOpened():
            raise CameraError(
                f"stream {self._name} cannot be opened; check that the camera is on and its address, user and password "
                "are right (a player such as ffplay or vlc shows what it says)"
            )
        size = tuple(int(self._capture.get(p)) for p in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        if wanted.width and size != (wanted.width, wanted.height):
            self.close()
            raise CameraError(
                f"stream {self._name} gives frames of {size[0]} x {size[1]} px, not {wanted.width} x {wanted.height}; "
                "set width and height to that, or to 0 for whatever it gives"
            )

    def read(self) -> Frame:
        """Return the next frame."""
        good, image = self._capture.read()
        if not good:
            raise CameraError(
                f"stream {self._name} has ended, or gave no frame for {PATIENCE / 1e3:g} s; check the camera and the "
                "network"
            )
        return Frame(self._wall.now(), self._cv2.cvtColor(image, self._cv2.COLOR_BGR2RGB))

    def close(self) -> None:
        """Lets the stream go."""
        self._capture.release()


def without_password(address: str) -> str:
    """Return an address or pipeline as messages may show it."""
    return re.sub(r"(://[^/\s:@]*):[^/\s]*@", r"\1:...@", address)
