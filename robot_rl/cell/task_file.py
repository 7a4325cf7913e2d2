"""The facts of a task on a real robot, from a YAML file with the fields of `TaskSpec`.

Of a task of several arms, the fields that each arm has for itself stand below its name in `arms`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from robot_rl.config.yaml_file import read_yaml
from robot_rl.env.action_mapping import AXES, check_wrench_axes
from robot_rl.env.task import ArmSpec, TaskSpec
from robot_rl.errors import ConfigError

EACH_ARM = tuple(ArmSpec.__dataclass_fields__)
"""Fields that each of several arms has for itself."""
_OURS = ("name", "stages")
"""Fields that no file has: the name stands elsewhere, and only a task that knows the truth judges stages by itself."""
_SHARED = [field for field in EACH_ARM if field in TaskSpec.__dataclass_fields__]


def load_task(path: Path, name: str) -> TaskSpec:
    """Return the facts of a task, but for its name, from a YAML file with the fields of `TaskSpec`.

    Raises:
        ConfigError: naming the file, and what is wrong in it.
    """
    try:
        content = read_yaml(path, "task file")
    except ConfigError as error:
        raise ConfigError(
            f"{path}: cannot be read as a task: {error}; launch/config/task.yaml is an example"
        ) from error
    return task_from(content, name, str(path))


def task_from(content: Any, name: str, where: str) -> TaskSpec:
    """Return the facts of a task from plain values.

    Args:
        content: Mapping with the fields of `TaskSpec` but for the name.
        name: Of the task.
        where: Where the values come from, for messages.

    Raises:
        ConfigError: naming where, and what is wrong.
    """
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: has to be a mapping with the fields of a task, e.g. `max_steps: 100`")
    fields = [field for field in TaskSpec.__dataclass_fields__ if field not in _OURS]
    if unknown := sorted(map(str, content.keys() - set(fields))):
        valid = ", ".join(fields)
        raise ConfigError(f"{where}: unknown {', '.join(unknown)}; valid: {valid}")
    arms = _arms_in(content, where)
    first = {field: value for field, value in next(iter(arms.values()), {}).items() if field in _SHARED}
    try:
        spec = TypeAdapter(TaskSpec).validate_python({**content, **first, "name": name})
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{where}: {wrong}") from error
    if not 0.0 < spec.control_period < math.inf:
        raise ConfigError(
            f"{where}: control_period is {spec.control_period:g} s; it has to be above 0, e.g. 0.05 for 20 Hz"
        )
    if not arms:
        _check_axes(content, spec, where)
    for arm, own in arms.items():
        _check_axes(own, spec.of_arm(arm), f"{where}: arms.{arm}")
    return spec


def task_content(spec: TaskSpec) -> dict[str, Any]:
    """Return the facts of a task as plain values, from which `task_from` makes them again, but for name and stages."""
    content: dict[str, Any] = TypeAdapter(TaskSpec).dump_python(spec, mode="json")
    own = EACH_ARM if spec.arms else ()
    return {field: value for field, value in content.items() if field not in (*_OURS, *own)}


def _arms_in(content: Mapping[str, Any], where: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of each of several arms, by its name; none of one arm.

    Raises:
        ConfigError: if they are not below the names of arms, or are unknown.
    """
    arms, fields = content.get("arms") or {}, ", ".join(EACH_ARM)
    if not isinstance(arms, dict) or not all(isinstance(arm, dict) for arm in arms.values()):
        raise ConfigError(f"{where}: arms has to name each arm, with its fields below: {fields}")
    if misplaced := [field for field in EACH_ARM if arms and field in content]:
        raise ConfigError(f"{where}: {', '.join(misplaced)}: with several arms, these stand below each of them in arms")
    for name, arm in arms.items():
        if unknown := sorted(map(str, arm.keys() - set(EACH_ARM))):
            raise ConfigError(f"{where}: arms.{name}: unknown {', '.join(unknown)}; valid: {fields}")
    return arms


def _check_axes(fields: Mapping[str, Any], spec: TaskSpec, where: str) -> None:
    """Check that the axes that the policy moves are named, and exist, and those of a feed-forward wrench, too."""
    valid, axes = ", ".join(AXES), spec.action_axes
    if "action_axes" not in fields:
        raise ConfigError(f"{where}: action_axes is missing; list the axes that the policy moves, of {valid}")
    if wrong := [axis for axis in axes if axes.count(axis) > 1 or axis not in AXES]:
        raise ConfigError(f"{where}: action_axes: {', '.join(wrong)}; valid: {valid}, each once")
    try:
        check_wrench_axes(spec)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
