"""The facts of a task on a real robot, from a YAML file with the fields of `TaskSpec`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from robot_rl.config.yaml_file import read_yaml
from robot_rl.env.action_mapping import AXES
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError


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
    if unknown := sorted(map(str, content.keys() - set(TaskSpec.__dataclass_fields__))):
        valid = ", ".join(field for field in TaskSpec.__dataclass_fields__ if field != "name")
        raise ConfigError(f"{where}: unknown {', '.join(unknown)}; valid: {valid}")
    try:
        spec = TypeAdapter(TaskSpec).validate_python({**content, "name": name})
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{where}: {wrong}") from error
    if "action_axes" not in content:
        raise ConfigError(f"{where}: action_axes is missing; list the axes that the policy moves, of {', '.join(AXES)}")
    if wrong_axes := [axis for axis in spec.action_axes if spec.action_axes.count(axis) > 1 or axis not in AXES]:
        raise ConfigError(f"{where}: action_axes: {', '.join(wrong_axes)}; valid: {', '.join(AXES)}, each once")
    return spec
