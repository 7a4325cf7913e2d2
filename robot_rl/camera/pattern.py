"""A test pattern that moves, for whoever rehearses without a camera, and to measure delays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.clock import NS_PER_S, Clock, Rate, WallClock
from robot_rl.errors import ConfigError

SIZE = (640, 480)
"""Width and height if none is wanted [px]."""
BARS = np.array(
    ((255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 255), (255, 0, 0), (0, 0, 255)), np.uint8
)


def make_pattern(which: str, wanted: CaptureFormat) -> Callable[[], PatternSource]:
    """Return what opens `pattern:`.

    Raises:
        ConfigError: if something follows the colon.
    """
    if which:
        raise ConfigError(f"no camera is called 'pattern:{which}'; valid: pattern:, nothing after the colon")
    return lambda: PatternSource(wanted)


class PatternSource:
    """Colour bars; a black line crosses them once a second, so that a frame shows when it was made.

    Args:
        wanted: The format of frames.
        clock: Whose time the stamps are.
    """

    serial = ""

    def __init__(self, wanted: CaptureFormat, clock: Clock | None = None) -> None:
        self._clock = clock or WallClock()
        self._rate = Rate(self._clock, 1.0 / wanted.rate)
        width, height = (wanted.width, wanted.height) if wanted.width else SIZE
        columns = np.arange(width) * len(BARS) // width
        self._bars = np.broadcast_to(BARS[columns], (height, width, 3))

    def read(self) -> Frame:
        """Return the next frame, when it is due."""
        self._rate.sleep()
        stamp, image = self._clock.now(), self._bars.copy()
        width = image.shape[1]
        line = stamp % NS_PER_S * width // NS_PER_S
        image[:, line : line + max(1, width // 64)] = 0
        return Frame(stamp, image)

    def close(self) -> None:
        """Nothing is held."""
