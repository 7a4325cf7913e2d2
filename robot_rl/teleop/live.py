"""Shows live how a device is held and what its map makes of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from robot_rl.clock import SystemClock
from robot_rl.env.action_mapping import AXES
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.geometry import Pose
from robot_rl.teleop.device import Device, DeviceLostError, Reading
from robot_rl.teleop.listing import open_devices
from robot_rl.teleop.mapping import CommandMapper, default_map, load_map

PERIOD = 0.05
WIDTH = 20
_SPEC = TaskSpec("test", "", 1, 0.1, Workspace((-1.0,) * 3, (1.0,) * 3, 1.0, 1.0), gripper=True)


def show_live(kind: str, path: Path | None, *, until: float) -> dict[str, Any]:
    """Show the first device of a kind until Ctrl-C.

    Args:
        kind: Of the device.
        path: A map; None takes the default.
        until: When to end by itself, on `time.monotonic` [s].

    Returns:
        `rest`: the largest deflection of an axis while it seemed to be at rest; `dead_zone`: of the map.

    Raises:
        DeviceError: if it cannot be used.
    """
    (device,) = open_devices([kind])
    try:
        mapping = default_map(device.kind) if path is None else load_map(path)
        mapper, clock, rest = CommandMapper(mapping, device, _SPEC), SystemClock(), 0.0
        with Live(console=Console(stderr=True), auto_refresh=False) as live:
            try:
                while time.monotonic() < until:
                    try:
                        reading = device.read()
                        intent = mapper.intent(reading, Pose.identity(), clock.now())
                        if not intent.action.any():
                            rest = max(rest, float(np.abs(reading.axes).max(initial=0.0)))
                        live.update(_picture(device, reading, intent.action), refresh=True)
                    except DeviceLostError as error:
                        live.update(Text(f"{error}; waiting for it", style="bold red"), refresh=True)
                    time.sleep(PERIOD)
            except KeyboardInterrupt:
                pass  # which is how a live view is ended
        return {"device": device.name, "rest": rest, "dead_zone": mapping.dead_zone}
    finally:
        device.close()


def _picture(device: Device, reading: Reading, action: np.ndarray) -> Group:
    pressed = [name for name, down in zip(device.buttons, reading.buttons, strict=True) if down]
    lines = [Text(device.name, style="bold")]
    lines += [_bar(name, value) for name, value in zip(device.axes, reading.axes.tolist(), strict=True)]
    lines.append(Text(f"buttons  {' '.join(pressed) or '-'}"))
    lines.append(Text("commands", style="bold"))
    lines += [_bar(name, value) for name, value in zip((*AXES, "gripper"), action.tolist(), strict=True)]
    return Group(*lines)


def _bar(name: str, value: float) -> Text:
    filled = round(abs(value) * WIDTH)
    left = ("█" * filled if value < 0 else "").rjust(WIDTH)
    right = ("█" * filled if value > 0 else "").ljust(WIDTH)
    return Text(f"{name:<9}{left}│{right} {value:+.2f}")
