"""The socket for cameras: a source is opened, and then returns stamped frames.

A source is named by a text, `KIND:WHICH`:

- `uvc:/dev/video0`, `uvc:0`: a USB camera (or any other that Video4Linux knows), by OpenCV.
- `realsense:0123456789`: an Intel RealSense by its serial number; `realsense:` takes the only one.
- `file:PATH`: a video, or a folder of pictures, shown over and over at the camera's rate. For tests, and for whoever
  has no camera.
- `rtsp://...`, `http://...`, `https://...`: a camera in the network (RTSP, MJPEG); `gstreamer:PIPELINE`, which ends in
  `! appsink`, where OpenCV is built with GStreamer.
- `pattern:`: colour bars with a line that crosses them once a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class CaptureFormat:
    """The wanted format of frames.

    Attributes:
        width: [px]; 0 leaves width and height to the camera.
        height: [px].
        rate: Frames per second.
    """

    width: int
    height: int
    rate: float


@dataclass(frozen=True, eq=False)
class Frame:
    """What a camera saw.

    Attributes:
        stamp: When [ns since 1970]: the time of capture where the driver reports it, else that of arrival.
        image: RGB, uint8, shape (height, width, 3).
    """

    stamp: int
    image: np.ndarray


class FrameSource(Protocol):
    """An open camera."""

    @property
    def serial(self) -> str:
        """The serial number that it has, or an empty text."""
        ...

    def read(self) -> Frame:
        """Return the next frame; waits for it.

        Raises:
            CameraError: if there will be none: unplugged, or the driver has given up.
        """
        ...

    def close(self) -> None:
        """Lets the camera go; doing it twice is fine."""
        ...
