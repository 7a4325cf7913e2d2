"""The file of a robot: which arm, how its driver is set, its limits, and its cameras.

    arm: {driver: ur, host: 192.168.0.2}
    limits: {box_low: [0.3, -0.2, 0.05], box_high: [0.6, 0.2, 0.4], max_speed: 0.2}
    cameras: {wrist: "realsense:0123456789"}

Programs without ROS read it; `robot-rl init` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass

from robot_rl.arm.driver import ArmDriver, DriverHost, find_driver
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.config.field_types import STRICT, NonNegative
from robot_rl.config.load import component_from_dict
from robot_rl.config.yaml_file import read_yaml
from robot_rl.errors import ConfigError


@checked_dataclass(frozen=True, config=STRICT)
class CaptureSettings:
    """What the cameras are requested to give."""

    width: NonNegative = 640
    """[px]; 0 leaves the size to them."""
    height: NonNegative = 480
    """[px]."""
    rate: Annotated[float, Field(gt=0, le=240)] = 30.0
    """Frames of each camera per second [Hz]."""


@checked_dataclass(frozen=True, config=STRICT)
class RobotSettings:
    """The settings of a robot beside those of its driver."""

    limits: CommandLimits = field(default_factory=CommandLimits)
    """Limits on every command."""
    cap: ArmCap = field(default_factory=ArmCap)
    """Last cap where the arm is driven; without this section, it follows from the limits."""
    cameras: dict[str, str] = field(default_factory=dict)
    """By name, the source of each camera: `realsense:0123456789`, `uvc:/dev/v4l/by-id/...`, `file:PATH`."""
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    """Format of their frames."""


@dataclass(frozen=True, eq=False)
class RobotFile:
    """A robot as its file describes it.

    Attributes:
        path: The file.
        driver: Name of the driver.
        driver_config: Its settings, of its own class `Config`.
        make_driver: Makes it for a host.
        settings: Everything else.
    """

    path: Path
    driver: str
    driver_config: Any
    make_driver: Callable[[DriverHost], ArmDriver]
    settings: RobotSettings

    def device_nodes(self) -> tuple[str, ...]:
        """Return the device nodes that it names, below `/dev`, and CAN buses."""
        texts = [value for value in asdict(self.driver_config).values() if isinstance(value, str)]
        texts += [source.partition(":")[2] for source in self.settings.cameras.values()]
        return tuple(text for text in texts if text.startswith(("/dev/", "can", "vcan")))

    def host(self) -> str:
        """Return the address of the arm, from a setting `host`, `ip` or `address`; empty without one."""
        values: Mapping[str, Any] = asdict(self.driver_config)
        return next((str(values[name]) for name in ("host", "ip", "address") if values.get(name)), "")


def read_robot_file(path: Path) -> RobotFile:
    """Read the file of a robot; nothing is connected.

    Raises:
        ConfigError: if it cannot be read, or a setting is unknown or wrong.
        UnknownNameError: if there is no such driver.
        PluginError: if the package of the driver cannot be imported.
    """
    tree = read_yaml(path, "file of a robot")
    if not isinstance(tree, dict) or not isinstance(tree.get("arm"), dict) or "driver" not in tree["arm"]:
        raise ConfigError(
            f"file of a robot {path}: needs a section `arm` with a `driver`, e.g. arm: {{driver: ur, host: 10.0.0.2}}; "
            "`robot-rl init` writes one"
        )
    of_arm = {key: value for key, value in tree["arm"].items() if key != "driver"}
    name = str(tree["arm"]["driver"])
    kind = find_driver(name)
    config = component_from_dict(kind.Config, of_arm, f"{path}, arm")
    rest = {key: value for key, value in tree.items() if key != "arm"}
    settings = component_from_dict(RobotSettings, rest, str(path))
    if "cap" not in rest:
        settings = replace(settings, cap=cap_around(settings.limits))
    return RobotFile(path, name, config, lambda host: kind(config, host), settings)


def cap_around(limits: CommandLimits) -> ArmCap:
    """Return the cap that just lets the limits through."""
    cap = ArmCap()
    return replace(
        cap,
        cap_box_low=limits.box_low,
        cap_box_high=limits.box_high,
        cap_lead=max(cap.cap_lead, limits.max_speed * limits.reaction_time),
        cap_turn=max(cap.cap_turn, limits.max_turn_rate * limits.reaction_time),
        cap_speed=max(cap.cap_speed, limits.max_speed),
        cap_turn_rate=max(cap.cap_turn_rate, limits.max_turn_rate),
    )
