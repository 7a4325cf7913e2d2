"""The plan of a fleet: its robots, what each of them contributes, and the training that they share."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass as checked_dataclass

from robot_rl.config.components import TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.field_types import STRICT, NonNegative, PositiveReal
from robot_rl.config.load import component_from_dict, config_to_dict, flat_settings, load_config
from robot_rl.config.resuming import with_saved_cameras
from robot_rl.config.yaml_file import dump_yaml, read_yaml
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.overview.robot_address import RobotAddress
from robot_rl.system.atomic_file import write_atomically

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_KEYS = ("robots", "train")

SHARED = ("task", "observations", "algorithm", "offline", "base", "sac", "replay", "encoder", "reward")
"""Settings that all robots and their learner must have alike: what the policy is, and what its steps are worth."""
FILED = ("chunk", "clone")
"""Kinds of bases that are a file, which all machines of a fleet can have."""
OWN = ("simulation", "randomization", "world", "environment", "intervention", "realtime", "reaction_time", "robot")
"""Settings that a robot may have of its own, under `set`."""


@checked_dataclass(frozen=True, config=STRICT)
class FleetRobot:
    """One robot of a fleet."""

    share: PositiveReal = 1.0
    """Its weight in what is sampled for learning, relative to the others."""
    env_steps: NonNegative | None = None
    """Online steps that it plays; null: its share of those of `train`."""
    demonstrations: NonNegative | None = None
    """Demonstrations that it records; null: its share of those of `train`."""
    cell: str = ""
    """Robot file of its workcell, as for `robot-rl train --robot`; empty: simulated."""
    console: str = ""
    """Address of its operator console, as that prints it, for `robot-rl fleet console`; empty: it has none."""


@dataclass(frozen=True)
class FleetPlan:
    """A fleet.

    Attributes:
        train: The training that they share; its `env_steps`, `demonstrations` and `warmup_steps` are those of all
            robots together.
        robots: The robots by name.
        own: Settings of `OWN` that a robot has otherwise, nested, by its name.
    """

    train: TrainConfig
    robots: Mapping[str, FleetRobot]
    own: Mapping[str, Mapping[str, Any]]

    @property
    def shares(self) -> dict[str, float]:
        """Weight of each robot, by name."""
        return {name: robot.share for name, robot in self.robots.items()}

    def config_of(self, name: str) -> TrainConfig:
        """Return the configuration of the run of one robot.

        Its steps and demonstrations are its part of the whole, its seed is its own.

        Raises:
            UnknownNameError: if there is no such robot.
            ConfigError: if its settings are wrong.
        """
        if name not in self.robots:
            raise UnknownNameError("robot", name, self.robots)
        robot, train = self.robots[name], self.train
        seed = int(np.random.SeedSequence((train.seed, zlib.crc32(name.encode()))).generate_state(1)[0] >> 1)
        config = replace(
            train,
            seed=seed,
            env_steps=self._part(train.env_steps, name) if robot.env_steps is None else robot.env_steps,
            demonstrations=(
                self._part(train.demonstrations, name) if robot.demonstrations is None else robot.demonstrations
            ),
            warmup_steps=self._part(train.warmup_steps, name),
        )
        own = [f"{key}={dump_yaml(value)}" for key, value in flat_settings(self.own.get(name, {})).items()]
        return _overridden(config, own) if own else config

    def whole(self) -> TrainConfig:
        """Return the configuration of the learner: steps and demonstrations are the sums over all robots."""
        each = [self.config_of(name) for name in self.robots]
        return replace(
            self.train,
            env_steps=sum(config.env_steps for config in each),
            demonstrations=sum(config.demonstrations for config in each),
        )

    def write(self, path: Path) -> None:
        """Write the plan as a file that `read_plan` reads.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        robots = {
            name: {**{k: v for k, v in asdict(robot).items() if v is not None}, "set": dict(self.own.get(name, {}))}
            for name, robot in self.robots.items()
        }
        write_atomically(path, dump_yaml({"train": config_to_dict(self.train), "robots": robots}))

    def _part(self, total: int, name: str) -> int:
        """Return one robot's part of a number; the parts add up to it, and the first ones get what is left over."""
        names = list(self.robots)
        each, left = divmod(total, len(names))
        return each + (names.index(name) < left)


def simulated_plan(config: TrainConfig, robots: int) -> FleetPlan:
    """Return the plan of so many simulated robots, `robot1` and so on, that are alike."""
    names = [f"robot{number + 1}" for number in range(robots)]
    return checked_plan(FleetPlan(config, {name: FleetRobot() for name in names}, {}), "--robots")


def read_plan(path: Path, overrides: Sequence[str] = ()) -> FleetPlan:
    """Read the plan of a fleet from a YAML file.

    Args:
        path: The file: `train`, settings as of `robot-rl train`, and `robots`, by name.
        overrides: `key=value` settings of `train`, which win over the file.

    Raises:
        ConfigError: naming the key and what is valid.
    """
    tree = read_yaml(path, "fleet file")
    if not isinstance(tree, dict) or not isinstance(tree.get("robots"), dict) or not tree["robots"]:
        raise ConfigError(f"fleet file {path}: expected `robots`, a mapping of names to settings, and `train`")
    if unknown := set(map(str, tree)) - set(_KEYS):
        raise ConfigError(f"fleet file {path}: unknown keys {', '.join(sorted(unknown))}; valid: {', '.join(_KEYS)}")
    train = tree.get("train") or {}
    if not isinstance(train, dict):
        raise ConfigError(f"fleet file {path}: train must be a section of settings, got {train!r}")
    settings = [f"{key}={dump_yaml(value)}" for key, value in flat_settings(train).items()]
    try:
        config = load_config(None, [*settings, *overrides])
    except ConfigError as error:
        raise ConfigError(f"fleet file {path}: {error}") from error
    robots, own = {}, {}
    for name, entry in tree["robots"].items():
        entry = {} if entry is None else entry
        if not isinstance(entry, dict):
            raise ConfigError(f"fleet file {path}: robot {name}: expected a mapping of settings, got {entry!r}")
        robots[str(name)] = component_from_dict(
            FleetRobot, {key: value for key, value in entry.items() if key != "set"}, f"fleet file {path}: robot {name}"
        )
        own[str(name)] = entry.get("set") or {}
        _check_console(str(name), robots[str(name)].console, path)
    return checked_plan(FleetPlan(config, robots, own), f"fleet file {path}")


def _check_console(name: str, console: str, path: Path) -> None:
    """Refuse an address at which no console can be, before anything is started."""
    try:
        if console:
            RobotAddress.parse(name, console)
    except ConfigError as error:
        raise ConfigError(f"fleet file {path}: console of robot {error}") from error


def checked_plan(plan: FleetPlan, where: str) -> FleetPlan:
    """Return the plan, if it can be carried out.

    Raises:
        ConfigError: naming what cannot.
    """
    for name in plan.robots:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{where}: {name!r} is no name of a robot; up to 32 letters, digits, - and _ are valid, e.g. arm1"
            )
        if name == "learner":
            raise ConfigError(f"{where}: a robot cannot have the name of the learner; call it otherwise, e.g. arm1")
        own = plan.own.get(name, {})
        if not isinstance(own, dict) or set(own) - set(OWN):
            raise ConfigError(
                f"{where}: robot {name}: under `set` are valid {', '.join(OWN)}, got {own!r}; the other settings are "
                "of all robots, under `train`"
            )
    train = plan.train
    if train.env_steps < len(plan.robots):
        raise ConfigError(
            f"{where}: env_steps={train.env_steps} for {len(plan.robots)} robots; each needs at least one"
        )
    for name in plan.robots:
        try:
            config = plan.config_of(name)
            check_consistent(config)
        except ConfigError as error:
            raise ConfigError(f"{where}: robot {name}: {error}") from error
        if (rule := config.intervention.call.rule) not in ("none", "time"):
            raise ConfigError(
                f"{where}: robot {name}: intervention.call.rule={rule} asks the critics while an episode runs, and "
                "those of a fleet get it when it has ended; set it to time or none"
            )
    if train.replay.hindsight_goals:
        raise ConfigError(f"{where}: replay.hindsight_goals is not for fleets yet; set it to 0")
    if train.has_base and train.base.kind not in FILED:
        raise ConfigError(
            f"{where}: base.kind={train.base.kind}: robots of a fleet correct a base from a file: {' or '.join(FILED)}"
        )
    if train.steers:
        raise ConfigError(f"{where}: base.correction=noise is not for fleets yet; set base.correction=residual")
    if train.has_base and not train.base.path:
        raise ConfigError(
            f"{where}: base.kind={train.base.kind} without base.path: each robot would train a base of its own; make "
            "one with `robot-rl base train`, and set base.path to its file"
        )
    if train.observations == "pixels" and not train.encoder.cameras:
        raise ConfigError(
            f"{where}: observations=pixels without encoder.cameras: all robots see the same; name their cameras"
        )
    check_consistent(plan.whole())
    return plan


def differences(mine: TrainConfig, other: TrainConfig) -> list[str]:
    """Return the settings of `SHARED` that differ, by dotted name; who names no cameras agrees with all."""
    mine, other = with_saved_cameras(other, mine), with_saved_cameras(mine, other)
    return [key for key in changed_settings(mine, other) if key.partition(".")[0] in SHARED]


def changed_settings(mine: TrainConfig, other: TrainConfig) -> list[str]:
    """Return all settings that differ, by dotted name."""
    before, after = flat_settings(config_to_dict(mine)), flat_settings(config_to_dict(other))
    return sorted(key for key in {**before, **after} if before.get(key) != after.get(key))


def _overridden(config: TrainConfig, overrides: Sequence[str]) -> TrainConfig:
    settings = [f"{key}={dump_yaml(value)}" for key, value in flat_settings(config_to_dict(config)).items()]
    return load_config(None, [*settings, *overrides])
