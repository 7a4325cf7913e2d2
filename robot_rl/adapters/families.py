"""Families of environments: names with a prefix, e.g. `gym:Pendulum-v1`, made by the entry points of this file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from robot_rl.adapters.guest import EXPERT_GROUP, make_guest
from robot_rl.adapters.guest_messages import GuestError
from robot_rl.adapters.guest_process import GuestProcess
from robot_rl.adapters.gymnasium_environment import GuestPort, GymnasiumEnvironment
from robot_rl.adapters.observation_layout import RENDERED
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.config.yaml_file import parse_yaml
from robot_rl.env.registry import source_of
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, EnvironmentFailedError


def make_environment_of(family: str, name: str, options: WorkcellOptions) -> GymnasiumEnvironment:
    """Make the environment of that name in a family.

    Raises:
        EnvironmentFailedError: if it cannot be made, or its interpreter cannot be started.
        ConfigError: if its settings are wrong.
        SpecError: if its observations or actions are of a kind that is not supported.
    """
    config = options.environment
    request: dict[str, Any] = {
        "family": family,
        "name": name,
        "options": keyword_arguments(config),
        "success": config.success,
        "repeat": config.action_repeat,
        "expert": (config.python and source_of(EXPERT_GROUP, config.expert)) or config.expert,  # unknown by name there
        "frames": RENDERED in options.cameras,
        "shadows": config.shadows,
    }
    try:
        guest: GuestPort = (
            GuestProcess(Path(config.python).expanduser(), request) if config.python else make_guest(**request)
        )
    except GuestError as error:
        package = "".join(name.rpartition(":")[:2])  # of gym:PACKAGE:ID
        near = f"; near: {', '.join(f'{family}:{package}{one}' for one in error.near)}" if error.near else ""
        raise EnvironmentFailedError(f"{error.text}{near}") from error
    try:
        return GymnasiumEnvironment(
            guest, f"{family}:{name}", config, cameras=options.cameras, image_size=options.image_size
        )
    except BaseException:
        guest.close()
        raise


def keyword_arguments(config: EnvironmentConfig) -> dict[str, Any]:
    """Return the keyword arguments of the environment.

    Raises:
        ConfigError: if one is not `key=value`.
    """
    arguments = {}
    for option in config.options:
        key, equals, text = option.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"environment.options: {option!r}: expected key=value")
        arguments[key] = parse_yaml(text, f"environment.options {option!r}")
    return arguments


Maker = Callable[[str, WorkcellOptions], GymnasiumEnvironment]

make_gym: Maker = partial(make_environment_of, "gym")
make_dm_control: Maker = partial(make_environment_of, "dm_control")
make_metaworld: Maker = partial(make_environment_of, "metaworld")
