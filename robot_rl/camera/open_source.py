"""Open a camera by its name, `KIND:WHICH`; `camera.source` explains the names.

Kinds are found by their entry points in the group `robot_rl.cameras`, so that other packages can add theirs.
`docs/add/camera.md` shows how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from robot_rl.camera.source import CaptureFormat, FrameSource
from robot_rl.env.registry import load, names
from robot_rl.errors import ConfigError

CAMERA_GROUP = "robot_rl.cameras"

MakeOpener = Callable[[str, CaptureFormat], Callable[[], FrameSource]]
"""What an entry point names: from the text after `KIND:` and the wanted format to a function that opens the camera."""


def opener(text: str, wanted: CaptureFormat) -> Callable[[], FrameSource]:
    """Return what opens the source of this name, as often as is needed; the camera need not be there yet.

    Raises:
        ConfigError: if the text names no source.
        PluginError: if a package that it needs is not installed.
    """
    kind, _, which = text.partition(":")
    if kind not in (known := names(CAMERA_GROUP)):
        raise ConfigError(
            f"no camera is called {text!r}; valid: uvc:DEVICE (/dev/video0 or 0), realsense:SERIAL, rtsp://..., "
            "http://... (MJPEG), gstreamer:PIPELINE, file:PATH (a video or a folder of pictures), pattern:, in "
            "camera_node topic:TOPIC, or KIND:... of another package; "
            f"installed kinds: {', '.join(known)}"
        )
    make = cast("MakeOpener", load("camera", CAMERA_GROUP, kind))
    return make(which, wanted)
