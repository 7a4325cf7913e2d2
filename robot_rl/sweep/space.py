"""The space of a sweep: which settings vary, and between what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import flat_settings, load_config
from robot_rl.config.yaml_file import dump_yaml, read_yaml
from robot_rl.errors import ConfigError

_KEYS = ("space", "settings")
_RANGE = ("low", "high", "log", "step")
_GIVEN = ("task", "seed", "env_steps")
"""Settings that belong to the sweep itself."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; whole ones if both are whole.

    Attributes:
        low: The least.
        high: The largest.
        log: Whether their logarithm is drawn uniformly.
        step: Between two of them; None: any.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are drawn."""
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True)
class ValueList:
    """Values to choose from; each may be anything that YAML can hold.

    Attributes:
        values: As JSON texts, so that lists can be compared and stored.
    """

    values: tuple[str, ...]


@dataclass(frozen=True)
class Space:
    """A space of settings.

    Attributes:
        axes: What varies, by dotted key.
        settings: What is the same for all trials, as `key=value`.
    """

    axes: Mapping[str, Range | ValueList]
    settings: tuple[str, ...] = ()

    def overrides(self, chosen: Mapping[str, Any]) -> list[str]:
        """Return the settings of a trial as `key=value`.

        Args:
            chosen: A number for each range, a JSON text for each choice, by key.
        """
        values = {
            key: json.loads(value) if isinstance(self.axes[key], ValueList) else value for key, value in chosen.items()
        }
        return [*self.settings, *(f"{key}={_text(value)}" for key, value in values.items())]

    def config(self, task: str, seed: int, env_steps: int, chosen: Mapping[str, Any]) -> TrainConfig:
        """Return the configuration of one run.

        Raises:
            ConfigError: if the settings contradict each other.
        """
        own = [f"task={task}", f"seed={seed}", f"env_steps={env_steps}"]
        return load_config(None, [*self.overrides(chosen), *own])


def read_space(path: Path, task: str) -> Space:
    """Read a space from a YAML file: `space`, ranges and choices by key, and `settings` of all trials.

    Raises:
        ConfigError: naming the key, what was given and what is valid, before anything is run.
    """
    where = f"space {path}"
    tree = read_yaml(path, "space")
    if not isinstance(tree, dict) or not isinstance(tree.get("space"), dict) or not tree["space"]:
        raise ConfigError(f"{where}: expected `space`, a mapping of settings to ranges or lists")
    if unknown := set(map(str, tree)) - set(_KEYS):
        raise ConfigError(f"{where}: unknown keys {', '.join(sorted(unknown))}; valid: {', '.join(_KEYS)}")
    settings = tree.get("settings") or {}
    if not isinstance(settings, dict):
        raise ConfigError(f"{where}: settings must be a mapping of dotted keys to values, got {settings!r}")
    if taken := sorted((set(settings) | set(tree["space"])) & set(_GIVEN)):
        raise ConfigError(f"{where}: {', '.join(taken)} cannot be set here: the sweep gives task, seeds and steps")
    if twice := sorted(({*map(str, settings)} | flat_settings(settings).keys()) & set(map(str, tree["space"]))):
        raise ConfigError(f"{where}: {', '.join(twice)} is under `space` and under `settings`; give it once")
    fixed = tuple(f"{key}={_text(value)}" for key, value in settings.items())
    axes = {str(key): _axis(where, str(key), value) for key, value in tree["space"].items()}
    space = Space(axes, fixed)
    for key, axis in axes.items():
        ends = axis.values if isinstance(axis, ValueList) else (axis.low, axis.high)
        for end in ends:
            others = {other: _any_of(one) for other, one in axes.items() if other != key}
            try:
                space.config(task, 0, 1, {**others, key: end})
            except ConfigError as error:
                raise ConfigError(f"{where}: {key}: {' '.join(str(error).split())}") from error
    return space


def _axis(where: str, key: str, value: Any) -> Range | ValueList:
    if isinstance(value, list):
        values = tuple(json.dumps(one) for one in value)
        if len(values) < 2 or len(set(values)) < len(values):
            valid = "at least two values to choose from, each once"
            raise ConfigError(f"{where}: {key}: a list needs {valid}, got {value!r}")
        return ValueList(values)
    if not isinstance(value, dict) or not {"low", "high"} <= set(value) or set(value) - set(_RANGE):
        raise ConfigError(
            f"{where}: {key}: expected a list of values, or low and high with log or step, got {value!r}; a value that "
            "does not vary belongs under `settings`"
        )
    low, high, log, step = value["low"], value["high"], value.get("log", False), value.get("step")
    numbers = [low, high, *([] if step is None else [step])]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers) or not isinstance(log, bool):
        raise ConfigError(f"{where}: {key}: low, high and step must be numbers and log true or false, got {value!r}")
    if not low < high:
        raise ConfigError(f"{where}: {key}: low must be less than high, got {low} and {high}")
    if log and low <= 0:
        raise ConfigError(f"{where}: {key}: a logarithmic range needs low above 0, got {low}")
    if step is not None and (log or step <= 0):
        raise ConfigError(f"{where}: {key}: step must be above 0 and goes without log, got {value!r}")
    if step is not None and step > high - low:
        raise ConfigError(f"{where}: {key}: a step above the whole range leaves one value, got {value!r}")
    return Range(low, high, log, step)


def _any_of(axis: Range | ValueList) -> Any:
    return axis.values[0] if isinstance(axis, ValueList) else axis.low


def _text(value: Any) -> str:
    return dump_yaml(value).removesuffix("...\n").strip()
