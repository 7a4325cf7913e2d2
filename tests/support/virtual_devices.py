"""Devices without hardware, at the seam where a library hands over what the kernel says; everything of ours is real."""

import errno
from collections import deque
from types import SimpleNamespace

from robot_rl.teleop.spacemouse import FULL_SCALE


class VirtualHid:
    """A SpaceMouse as the package hidapi shows it: reports come one by one, and an empty one when there is none."""

    def __init__(self):
        self.reports, self.plugged, self.opened = deque(), True, 0

    def connect(self):
        if not self.plugged:
            raise OSError("open failed")
        self.opened += 1
        return self

    def read(self, max_length):
        if not self.plugged:
            raise OSError("read error")
        return list(self.reports.popleft())[:max_length] if self.reports else []

    def close(self):
        pass

    def move(self, translation=(0, 0, 0), rotation=(0, 0, 0)):
        """Pushes the cap, in the device's own frame, as a share of full deflection."""
        for kind, values in ((1, translation), (2, rotation)):
            counts = [round(FULL_SCALE * value) for value in values]
            self.reports.append(bytes([kind]) + b"".join(count.to_bytes(2, "little", signed=True) for count in counts))

    def press(self, mask):
        self.reports.append(bytes([3, mask]))


STICK, TRIGGER = (-32768, 32767), (0, 255)
RANGES = {0: STICK, 1: STICK, 3: STICK, 4: STICK, 2: TRIGGER, 5: TRIGGER}
"""Of the axes of a common gamepad, by their codes."""


class VirtualPad:
    """A gamepad as the package evdev shows it."""

    def __init__(self):
        self.events, self.plugged = deque(), True
        self.values = {code: 0 for code in RANGES}
        self.written = []

    def connect(self):
        if not self.plugged:
            raise OSError(errno.ENODEV, "No such device")
        return self

    def absinfo(self, axis_num):
        low, high = RANGES[axis_num]
        return SimpleNamespace(value=self.values[axis_num], min=low, max=high)

    def read(self):
        if not self.plugged:
            raise OSError(errno.ENODEV, "No such device")
        if not self.events:
            raise BlockingIOError
        events = list(self.events)
        self.events.clear()
        return events

    def write(self, etype, code, value):
        if not self.plugged:
            raise OSError(errno.ENODEV, "No such device")
        self.written.append((etype, code, value))

    def close(self):
        pass

    def axis(self, code, value):
        self.values[code] = value
        self.events.append(SimpleNamespace(type=3, code=code, value=value))

    def button(self, code, down):
        self.events.append(SimpleNamespace(type=1, code=code, value=int(down)))
