"""Keeps one camera going: opens it, hands on its frames, notices when it freezes or goes, and opens it again.

It knows sources, frames and time; it does not know what frames are for, or where they go.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_rl.camera.source import Frame, FrameSource
from robot_rl.clock import NS_PER_S, Clock, WallClock
from robot_rl.errors import CameraError, RobotRLError

WINDOW = 2.0
"""Time over which the rate is counted [s]."""


@dataclass(frozen=True)
class FeedLimits:
    """When a camera counts as faulty.

    Attributes:
        rate: Frames per second that it should give.
        frozen_after: How long a picture may stay the same, bit for bit [s]; 0 lets it for ever. A real sensor's noise
            changes every frame.
        silent_after: How long it may give no frame [s].
        retry: Time between two attempts to open it [s].
    """

    rate: float = 30.0
    frozen_after: float = 1.0
    silent_after: float = 0.5
    retry: float = 1.0


@dataclass(frozen=True)
class FeedState:
    """How a camera does.

    Attributes:
        fault: What is wrong and how to cure it; None if nothing is.
        rate: Frames per second of the last two seconds.
        age: Time since the newest frame was captured [s]; infinite before the first.
        frames: How many were handed on.
        dropped: How many are missing between them, by their stamps.
        opened: How often the camera was opened.
    """

    fault: str | None
    rate: float
    age: float
    frames: int
    dropped: int
    opened: int


class CameraFeed:
    """A camera in a thread of its own.

    Frames of a frozen camera are not handed on: who reads them sees their age grow, as after an unplugging.

    Args:
        name: Of the camera.
        open_source: Opens it; called again after every fault.
        on_frame: Given each frame, in the feed's thread; what it raises counts as a fault.
        on_fault: Given the text of each new fault, in the feed's thread.
        limits: When it counts as faulty.
        clock: Whose time the stamps are.
    """

    def __init__(
        self,
        name: str,
        open_source: Callable[[], FrameSource],
        on_frame: Callable[[Frame], None],
        on_fault: Callable[[str], None],
        limits: FeedLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._name, self._open, self._on_frame, self._on_fault = name, open_source, on_frame, on_fault
        self._limits, self._clock = limits or FeedLimits(), clock or WallClock()
        self.serial = ""
        """Of the open camera, if it has one."""
        self._lock = threading.Lock()
        self._fault: str | None = f"camera {name} has not been opened yet"
        self._stamps: deque[int] = deque(maxlen=1000)
        self._frames = self._dropped = self._opened = 0
        self._picture: np.ndarray | None = None
        self._changed = 0  # when the picture changed last [ns]
        self._frozen = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"camera {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and let the camera go; waits no longer than a driver that hangs deserves."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def state(self) -> FeedState:
        """How it does now."""
        now = self._clock.now()
        with self._lock:
            newest = self._stamps[-1] if self._stamps else None
            recent = sum(stamp > now - WINDOW * NS_PER_S for stamp in self._stamps)
            fault = self._fault
            age = (now - newest) / NS_PER_S if newest is not None else float("inf")
            if fault is None and age > self._limits.silent_after:
                fault = f"camera {self._name} has given no frame for {age:.1f} s; check its cable and its USB hub"
            return FeedState(fault, recent / WINDOW, age, self._frames, self._dropped, self._opened)

    def _run(self) -> None:
        while not self._ended.is_set():
            source = None
            try:
                source = self._open()
                self._opened += 1
                self.serial = source.serial
                self._changed = self._clock.now()
                while not self._ended.is_set():
                    self._take(source.read())
            except RobotRLError as error:
                self._set_fault(str(error))
            except Exception as error:  # noqa: BLE001  (a driver's own, or of who takes the frames: it is opened again)
                self._set_fault(f"camera {self._name}: {type(error).__name__}: {error}")
            finally:
                if source is not None:
                    with contextlib.suppress(Exception):  # of an unplugged camera; it is opened anew
                        source.close()
            self._ended.wait(self._limits.retry)

    def _take(self, frame: Frame) -> None:
        same = self._picture is not None and np.array_equal(self._picture, frame.image)
        if not same:
            self._picture, self._changed, self._frozen = frame.image, frame.stamp, False
        elif 0 < self._limits.frozen_after < (frame.stamp - self._changed) / NS_PER_S:
            self._frozen = True
            raise CameraError(
                f"camera {self._name} is frozen: its picture has not changed for {self._limits.frozen_after:g} s; it "
                "is opened again. If that does not help: uncover its lens, unplug it and plug it in again"
            )
        if self._frozen:
            return
        self._on_frame(frame)
        self._set_fault(None)
        with self._lock:
            if self._stamps:
                missing = round((frame.stamp - self._stamps[-1]) / NS_PER_S * self._limits.rate) - 1
                self._dropped += max(missing, 0)
            self._stamps.append(frame.stamp)
            self._frames += 1

    def _set_fault(self, fault: str | None) -> None:
        with self._lock:
            new, self._fault = fault != self._fault, fault
        if fault is not None and new:
            self._on_fault(fault)
