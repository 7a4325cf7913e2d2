"""Do the cameras of a robot give frames at their rate, all at the same time?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from robot_rl.camera.feed import CameraFeed, FeedLimits, FeedState
from robot_rl.camera.source import Frame, FrameSource
from robot_rl.doctor.contract.result import CheckResult

RATE_SHARE = 0.8
"""Of the wanted rate that a camera has to reach."""
DELAY_NOTE = 0.1
"""From the capture to here, with the time until the next frame [s]."""


def watch_cameras(
    openers: Mapping[str, Callable[[], FrameSource]], rates: Mapping[str, float], seconds: float
) -> Iterator[CheckResult]:
    """Open all cameras at once, as a training does, and judge what they give.

    Args:
        openers: By name, what opens a camera.
        rates: Their wanted frames per second.
        seconds: How long they are watched, at least 2 [s].
    """
    feeds = {name: _feed(name, open_source, rates[name]) for name, open_source in openers.items()}
    for feed in feeds.values():
        feed.start()
    time.sleep(seconds)
    states = {name: feed.state() for name, feed in feeds.items()}
    for feed in feeds.values():
        feed.close()
    for name, state in states.items():
        yield _judged(name, state, rates[name])


def _feed(name: str, open_source: Callable[[], FrameSource], rate: float) -> CameraFeed:
    return CameraFeed(name, open_source, _dropped, lambda fault: None, FeedLimits(rate=rate))


def _dropped(frame: Frame) -> None:
    """Take a frame that nobody needs."""


def _judged(name: str, state: FeedState, rate: float) -> CheckResult:
    name, limit = f"camera {name}", f"at least {RATE_SHARE * rate:.0f} Hz"
    value = round(state.rate, 1)
    if state.fault is not None:
        return CheckResult(
            name,
            "fault",
            state.fault,
            value,
            "Hz",
            limit,
            "plug it in again, or correct its source in the robot's file",
        )
    age = f"{1e3 * state.age:.0f} ms"
    text = f"{state.rate:.0f} frames come in a second, {state.dropped} are missing; the newest is {age} old"
    if state.rate < RATE_SHARE * rate:
        cure = "give it more light (auto exposure lengthens), a USB bus of its own, or a lower capture_rate"
        return CheckResult(name, "note", text, value, "Hz", limit, cure)
    if state.age > DELAY_NOTE + 1.0 / rate:
        return CheckResult(name, "note", text, value, "Hz", limit, "end other programs; look at the load")
    return CheckResult(name, "ok", text, value, "Hz", limit)
