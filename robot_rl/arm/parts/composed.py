"""The driver `composed`: an arm of any driver, with a gripper and a force sensor of other makers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost, find_driver
from robot_rl.arm.parts.composed_arm import ComposedArm
from robot_rl.arm.parts.part import find_gripper, find_wrench_sensor
from robot_rl.arm.parts.payload import Payload, PayloadConfig
from robot_rl.config.field_types import STRICT
from robot_rl.config.load import load_component
from robot_rl.errors import ConfigError


@dataclass(frozen=True, config=STRICT)
class ComposedConfig(PayloadConfig):
    """An arm and its parts; the settings of each are a list of `NAME=VALUE`."""

    arm: str = ""
    """Driver of the arm, e.g. `ur`."""
    arm_settings: tuple[str, ...] = ()
    """Its settings, e.g. `host=192.168.0.2`."""
    gripper: str = ""
    """Kind of gripper, e.g. `robotiq`; empty keeps the arm's own."""
    gripper_settings: tuple[str, ...] = ()
    """Its settings, e.g. `port=/dev/ttyUSB0`."""
    wrench: str = ""
    """Kind of force sensor, e.g. `net_ft`; empty keeps what the arm measures."""
    wrench_settings: tuple[str, ...] = ()
    """Its settings, e.g. `address=192.168.1.1`."""


class Composed(ComposedArm):
    """An arm with its parts.

    Args:
        config: Which, and their settings.
        host: The program that runs it.

    Raises:
        ConfigError: if a setting is not valid.
        UnknownNameError: if there is no such driver or part.
        PluginError: if the package of one cannot be imported.
        RobotLostError: if one of them is not there; the others are released.
    """

    Config = ComposedConfig

    def __init__(self, config: ComposedConfig, host: DriverHost) -> None:
        if config.arm in ("", "composed"):
            raise ConfigError(f"arm: {config.arm or 'not set'}; name the driver of the arm itself, e.g. arm: ur")
        makers = [
            _maker("arm_settings", find_driver, config.arm, config.arm_settings),
            _maker("gripper_settings", find_gripper, config.gripper, config.gripper_settings),
            _maker("wrench_settings", find_wrench_sensor, config.wrench, config.wrench_settings),
        ]
        with contextlib.ExitStack() as on_error:
            made: list[Any] = []
            for make in makers:
                made.append(make(host) if make is not None else None)
                if made[-1] is not None:
                    on_error.callback(made[-1].close)
            on_error.pop_all()
        arm, gripper, wrench = made
        super().__init__(arm, gripper, wrench, Payload(config))


def _maker(
    where: str, find: Callable[[str], Any], name: str, settings: Sequence[str]
) -> Callable[[DriverHost], Any] | None:
    """Return what makes an arm or a part, once its settings are checked; None without a name."""
    if not name:
        if settings:
            raise ConfigError(f"{where} are given, but not whose they are: name its kind, too")
        return None
    kind = find(name)
    try:
        config = load_component(kind.Config, overrides=settings)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    return lambda host: kind(config, host)
