"""Open a camera by its name: `uvc:DEVICE`, `realsense:SERIAL` or `file:PATH`; `camera.source` explains them."""

from __future__ import annotations

from collections.abc import Callable

from robot_rl.camera.source import CaptureFormat, FrameSource
from robot_rl.errors import ConfigError


def opener(text: str, wanted: CaptureFormat) -> Callable[[], FrameSource]:
    """What opens the source of this name, as often as is needed; the camera need not be there yet.

    Raises:
        ConfigError: if the text names no source.
        PluginError: if the package that it needs is not installed.
    """
    kind, _, which = text.partition(":")
    if kind == "uvc" and which:
        from robot_rl.camera.uvc import UvcSource, find_cv2

        find_cv2()
        return lambda: UvcSource(which, wanted)
    if kind == "realsense":
        from robot_rl.camera.realsense import RealSenseSource, find_pyrealsense

        find_pyrealsense()
        return lambda: RealSenseSource(which, wanted)
    if kind == "file" and which:
        from robot_rl.camera.file import FileSource

        return lambda: FileSource(which, wanted.rate)
    raise ConfigError(
        f"no camera is called {text!r}; valid: uvc:DEVICE (/dev/video0 or 0), realsense:SERIAL, file:PATH (a video or "
        "a folder of pictures)"
    )
