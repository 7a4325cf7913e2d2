"""The device map: from a device's reading to an action, by axes, dead zone, response, smoothing, clutch and frame.

A map is a small YAML file. `maps/` holds one for every kind of device; `--map FILE` uses another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from robot_rl.clock import NS_PER_S
from robot_rl.config.yaml_file import read_yaml
from robot_rl.env.action_mapping import AXES
from robot_rl.env.supervision import NEXT_ARM
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_rotate
from robot_rl.teleop.device import Device, DeviceError, Reading

MAPS = Path(__file__).parent / "maps"
REQUEST_ROLES = ("start", "success", "failure", "discard", NEXT_ARM)
"""Roles of buttons that are requests to the job; the others are part of the motion."""
ROLES = ("take", "clutch", "slow", "gripper", "close", "open", *REQUEST_ROLES)
AT_REST = 1e-3
"""Smoothed motion below this share of full deflection counts as none."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class DeviceMap:
    """What the axes and buttons of a device mean."""

    axes: dict[str, str] = field(default_factory=dict)
    """Axis of the motion (`x y z roll pitch yaw`) to an axis of the device; a leading `-` turns its sign."""
    buttons: dict[str, str] = field(default_factory=dict)
    """Role to a button. `take`: lead while pressed. `clutch`: motion counts only while pressed. `slow`: a third of the
    speed while pressed. `gripper`: close or open, in turns. `close`, `open`: the gripper. `start`, `success`,
    `failure`, `discard`: requests to the job about the episode. `next_arm`: lead the next one of several arms."""
    frame: Literal["base", "tool"] = "base"
    """Whose axes the motion is along: the robot base's, or the tool's own."""
    view: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """In the frame `base`: where the operator stands, as a turn about the vertical [degrees]; 180 faces the robot."""
    engage: Literal["move", "hold"] = "move"
    """How control is taken: `move` by moving, `hold` only while the button `take` is pressed."""
    dead_zone: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Deflection that counts as none, of the three translations together and of the three rotations together."""
    exponent: Annotated[float, Field(ge=1, le=4)] = 1.5
    """Response: above 1, small deflections become finer."""
    scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the task's largest translation that full deflection commands."""
    rotation_scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The same of its largest rotation."""
    smoothing: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Time constant of a first-order low-pass filter [s]; 0 for none."""


_ADAPTER = TypeAdapter(DeviceMap)


def load_map(path: Path) -> DeviceMap:
    """Read a map.

    Raises:
        DeviceError: if the file cannot be read, or an entry is not valid.
    """
    try:
        tree = read_yaml(path, "device map")
    except ConfigError as error:
        raise DeviceError(f"cannot read the device map: {error}") from error
    try:
        return _ADAPTER.validate_python(tree)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in error.errors()]
        raise DeviceError(f"device map {path}: {'; '.join(problems)}") from error


def default_map(kind: str) -> DeviceMap:
    """Read the map for a kind of device: one of `maps/`, or a file where a device names its own.

    Raises:
        DeviceError: if there is none for this kind.
    """
    return find_map(kind)


def find_map(name: str) -> DeviceMap:
    """Read a map by its name in `maps/`, e.g. `joy`, or from a YAML file.

    Raises:
        DeviceError: if there is no such map.
    """
    path = Path(name).expanduser()
    if name in (known := sorted(path.stem for path in MAPS.glob("*.yaml"))):
        return load_map(MAPS / f"{name}.yaml")
    if not path.is_file():
        raise DeviceError(f"no device map is called {name!r}, and there is no such file; valid: {', '.join(known)}")
    return load_map(path)


class Intent(NamedTuple):
    """The operator's action at one time.

    Attributes:
        action: In the task's action space, shape (n,); all zeros where nothing is wanted. Its wrench is always zero.
        take: Whether the button `take` is pressed.
        pressed: Roles whose button was pressed since the last time.
    """

    action: np.ndarray
    take: bool
    pressed: frozenset[str]


class CommandMapper:
    """Map the readings of one device to actions of one task.

    Args:
        mapping: The map.
        device: The device whose axes and buttons it names.
        spec: The task.

    Raises:
        DeviceError: if the map names an axis, a role or a button that does not exist.
    """

    def __init__(self, mapping: DeviceMap, device: Device, spec: TaskSpec) -> None:
        self.mapping, self._spec = mapping, spec
        _check(device.name, "axis of motion", mapping.axes, AXES)
        _check(device.name, "axis", [name.lstrip("-") for name in mapping.axes.values()], device.axes)
        _check(device.name, "role", mapping.buttons, ROLES)
        _check(device.name, "button", mapping.buttons.values(), device.buttons)
        if mapping.engage == "hold" and "take" not in mapping.buttons:
            raise DeviceError(
                f"{device.name}: engage is `hold`, but no button has the role `take`; name one in `buttons`"
            )
        self._to_motion = np.zeros((6, len(device.axes)))
        for axis, name in mapping.axes.items():
            column = device.axes.index(name.lstrip("-"))
            self._to_motion[AXES.index(axis), column] = -1.0 if name.startswith("-") else 1.0
        self._buttons = {role: device.buttons.index(name) for role, name in mapping.buttons.items()}
        self._free = np.array([AXES.index(axis) for axis in spec.action_axes], dtype=int)
        self._turn = quat_from_rotvec(np.array([0.0, 0.0, math.radians(mapping.view)]))
        self.reset()

    def reset(self) -> None:
        """Forget the past motion."""
        self._smooth, self._stamp = np.zeros(6), 0
        self._before: dict[str, bool] = {}
        self._closing = False

    def intent(self, reading: Reading, T_base_tcp: Pose, now: int) -> Intent:
        """Map a reading.

        Args:
            reading: Of the device; its axes count with the precision of float32.
            T_base_tcp: Pose of the tool.
            now: Time [ns].
        """
        held = {role: reading.buttons[index] for role, index in self._buttons.items()}
        pressed = frozenset(role for role, down in held.items() if down and not self._before.get(role, down))
        self._before = held
        axes = np.asarray(reading.axes, np.float32)  # the precision of `sensor_msgs/Joy`: the same by topic or not
        wanted = self._respond(self._to_motion @ axes)
        if "clutch" in held and not held["clutch"]:
            wanted[:] = 0.0
        if held.get("slow"):
            wanted /= 3.0
        motion = self._in_tool_frame(self._smoothed(wanted, now), T_base_tcp)
        action = np.clip(motion[self._free], -1.0, 1.0).astype(np.float32)
        action = np.append(action, np.zeros(len(self._spec.wrench_axes), np.float32))  # no device commands a wrench
        if self._spec.gripper:
            action = np.append(action, np.float32(self._gripper(held, pressed)))
        return Intent(action, bool(held.get("take")), pressed)

    def _respond(self, raw: np.ndarray) -> np.ndarray:
        """Apply dead zone and response to translation and rotation, each as a whole to keep directions. Shape (6,)."""
        wanted = np.zeros(6)
        for part, scale in ((slice(0, 3), self.mapping.scale), (slice(3, 6), self.mapping.rotation_scale)):
            length = float(np.linalg.norm(raw[part]))
            beyond = (length - self.mapping.dead_zone) / (1.0 - self.mapping.dead_zone)
            if beyond > 0.0:
                wanted[part] = raw[part] / length * (scale * min(beyond, 1.0) ** self.mapping.exponent)
        return wanted

    def _smoothed(self, wanted: np.ndarray, now: int) -> np.ndarray:
        elapsed, self._stamp = (now - self._stamp) / NS_PER_S, now
        tau = self.mapping.smoothing
        share = 1.0 if tau == 0.0 else 1.0 - math.exp(-max(elapsed, 0.0) / tau)
        self._smooth = self._smooth + share * (wanted - self._smooth)
        if not wanted.any() and np.abs(self._smooth).max() < AT_REST:
            self._smooth = np.zeros(6)
        return self._smooth

    def _in_tool_frame(self, motion: np.ndarray, T_base_tcp: Pose) -> np.ndarray:
        if self.mapping.frame == "tool":
            return motion
        to_tool = quat_conjugate(T_base_tcp.quaternion)
        turned = [quat_rotate(to_tool, quat_rotate(self._turn, motion[part])) for part in (slice(0, 3), slice(3, 6))]
        return np.concatenate(turned)

    def _gripper(self, held: Mapping[str, bool], pressed: frozenset[str]) -> float:
        """Return -1 to close, +1 to open, 0 to leave it as it is."""
        if held.get("close") or held.get("open"):
            return float(bool(held.get("open"))) - float(bool(held.get("close")))
        if "gripper" in pressed:
            self._closing = not self._closing
        moves = held.get("gripper") if self._spec.gripper_step else "gripper" in pressed
        return (-1.0 if self._closing else 1.0) if moves else 0.0


def _check(device: str, what: str, names: Any, valid: tuple[str, ...]) -> None:
    if unknown := sorted(set(names) - set(valid)):
        raise DeviceError(f"{device}: the map names {what} {', '.join(unknown)}; valid: {', '.join(valid) or 'none'}")
