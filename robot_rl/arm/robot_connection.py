"""What of a robot file connects its arm and its cameras, for programs that need no task: doctor and commissioning.

    arm: {driver: ur, host: 192.168.0.2}
    limits: {box_low: [0.3, -0.2, 0.05], box_high: [0.6, 0.2, 0.4], max_speed: 0.2}
    cameras: {wrist: {source: "realsense:0123456789"}}

Further sections, such as `task`, are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass

from robot_rl.arm.driver import ArmDriver, DriverHost, find_driver
from robot_rl.arm.set_point.set_point_path import InterpolationChoice
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.config.field_types import STRICT, NonNegative, PositiveReal
from robot_rl.config.load import component_from_dict
from robot_rl.config.yaml_file import read_yaml
from robot_rl.errors import ConfigError


@checked_dataclass(frozen=True, config=STRICT)
class CameraConnection:
    """A camera."""

    source: str = ""
    """`realsense:0123456789`, `uvc:/dev/v4l/by-id/...`, `rtsp://HOST/STREAM`, `http://HOST/MJPEG`, `file:PATH`."""
    width: NonNegative = 640
    """Of the captured frames [px]; 0 leaves it to the camera."""
    height: NonNegative = 480
    """Of the captured frames [px]."""
    rate: Annotated[float, Field(gt=0, le=240)] = 30.0
    """Frames per second [Hz]."""


@checked_dataclass(frozen=True, config=STRICT)
class StateAge:
    """What of the section `cell` concerns the arm alone."""

    max_age: PositiveReal = 0.2
    """Oldest state with which the arm may move [s]; `limits.max_age` counts, too."""


@checked_dataclass(frozen=True, config=STRICT)
class MotionConfig:
    """What of the section `arm` is the same for every driver."""

    interpolation: InterpolationChoice = "driver"
    """How the set-point gets from one command of the policy to the next: `none`, `linear` or `minimum_jerk`; `driver`:
    as is best for its arms by `robot-rl bench arm`."""


@dataclass(frozen=True, eq=False)
class RobotConnection:
    """A robot as its file describes it.

    Attributes:
        path: The file.
        driver: Name of the driver.
        driver_config: Its settings, of its own class `Config`.
        interpolation: How set-points get from one command to the next.
        make_driver: Makes it for a host.
        limits: Of commands.
        cap: The last cap on set-points.
        cameras: By name.
        max_age: Oldest state with which the arm may move [s]: the smaller one of `limits` and `cell`.
    """

    path: Path
    driver: str
    driver_config: Any
    interpolation: InterpolationChoice
    make_driver: Callable[[DriverHost], ArmDriver]
    limits: CommandLimits
    cap: ArmCap
    cameras: dict[str, CameraConnection]
    max_age: float

    def device_nodes(self) -> tuple[str, ...]:
        """Return the device nodes that it names, below `/dev`, and CAN buses."""
        texts = [value for value in asdict(self.driver_config).values() if isinstance(value, str)]
        texts += [camera.source.partition(":")[2] for camera in self.cameras.values()]
        return tuple(text for text in texts if text.startswith(("/dev/", "can", "vcan")))

    def host(self) -> str:
        """Return the address of the arm, from a setting `host`, `ip` or `address`; empty without one."""
        values: Mapping[str, Any] = asdict(self.driver_config)
        return next((str(values[name]) for name in ("host", "ip", "address") if values.get(name)), "")


def read_connection(path: Path) -> RobotConnection:
    """Read what connects a robot; nothing is opened.

    Raises:
        ConfigError: if it cannot be read, or a setting is unknown or wrong.
        UnknownNameError: if there is no such driver.
        PluginError: if the package of the driver cannot be imported.
    """
    tree = read_yaml(path, "robot file")
    if not isinstance(tree, dict) or not isinstance(tree.get("arm"), dict) or "driver" not in tree["arm"]:
        raise ConfigError(
            f"robot file {path}: needs a section `arm` with a `driver`, e.g. arm: {{driver: ur, host: 10.0.0.2}}"
        )
    common = {key: value for key, value in tree["arm"].items() if key == "interpolation"}
    of_arm = {key: value for key, value in tree["arm"].items() if key not in ("driver", *common)}
    name = str(tree["arm"]["driver"])
    kind = find_driver(name)
    config = component_from_dict(kind.Config, of_arm, f"{path}: arm (driver {name})")
    way = component_from_dict(MotionConfig, common, f"{path}: arm").interpolation
    limits = component_from_dict(CommandLimits, tree.get("limits", {}), f"{path}: limits")
    box = {"cap_box_low": list(limits.box_low), "cap_box_high": list(limits.box_high)}
    cap = component_from_dict(ArmCap, {**_mapping(tree, "cap", path), **box}, f"{path}: cap")
    cameras = {
        str(camera): component_from_dict(CameraConnection, _of_capture(settings), f"{path}: cameras: {camera}")
        for camera, settings in _mapping(tree, "cameras", path).items()
    }
    for camera, connection in cameras.items():
        if not connection.source:
            raise ConfigError(f"{path}: cameras: {camera}: source is missing, e.g. `source: realsense:0123456789`")
    of_cell = {key: value for key, value in _mapping(tree, "cell", path).items() if key == "max_age"}
    age = component_from_dict(StateAge, of_cell, f"{path}: cell")
    max_age = min(age.max_age, limits.max_age)
    return RobotConnection(path, name, config, way, lambda host: kind(config, host), limits, cap, cameras, max_age)


def _mapping(tree: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = tree.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {key}: has to be a mapping")
    return value


def _of_capture(settings: Any) -> Any:
    """Return the settings of a camera without those of what is done with its frames."""
    if not isinstance(settings, dict) or "source" not in settings:  # its error names what there is instead
        return settings
    known = {field.name for field in fields(CameraConnection)}
    return {key: value for key, value in settings.items() if key in known}
