"""A suite of tasks: which, with which settings, and which of them settings may be chosen on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_rl.bench.suite.names import SUITES, check_once, suite_names
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_from_dict
from robot_rl.config.yaml_file import parse_yaml, read_yaml
from robot_rl.errors import ConfigError, UnknownNameError

_KEYS = {"title", "tasks", "tuning_tasks", "best_return", "notes", "settings"}


@dataclass(frozen=True)
class Suite:
    """A suite.

    Attributes:
        name: Its name, that of its file.
        title: For people.
        tasks: Names of the tasks that count.
        tuning_tasks: Names of those on which settings are chosen; its own, on other seeds, where the file names none.
        best_return: The return that scores 1; None where the success rate is the score.
        notes: What is not alike in published results, and other remarks for the report.
        settings: Nested settings of `TrainConfig`, the same for all tasks.
    """

    name: str
    title: str
    tasks: tuple[str, ...]
    tuning_tasks: tuple[str, ...] = ()
    best_return: float | None = None
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self, task: str, seed: int, python: str = "") -> TrainConfig:
        """Return the configuration of one run.

        Args:
            task: One of the tasks.
            seed: Of the run.
            python: Interpreter in which the environments live; empty leaves the suite's.

        Raises:
            ConfigError: if a setting of the suite is wrong.
        """
        tree = {**self.settings, "task": task, "seed": seed}
        if python:
            tree["environment"] = {**tree.get("environment", {}), "python": python}
        return config_from_dict(tree)


def read_suite(name: str) -> Suite:
    """Read a suite of ours by its name, or another one from its YAML file.

    Raises:
        UnknownNameError: if there is no such suite, and no such file.
        ConfigError: if the file is no suite.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return _checked(path.stem, read_yaml(path, "suite"), str(path))
    if name not in suite_names():
        raise UnknownNameError("suite", name, suite_names())
    text = (SUITES / f"{name}.yaml").read_text(encoding="utf-8")
    return _checked(name, parse_yaml(text, f"suite {name}"), name)


def _checked(name: str, tree: Any, where: str) -> Suite:
    if not isinstance(tree, dict) or not tree.get("tasks"):
        raise ConfigError(f"suite {where}: expected `key: value` lines with `tasks`; valid keys: {_listed(_KEYS)}")
    if unknown := set(tree) - _KEYS:
        raise ConfigError(f"suite {where}: unknown keys {_listed(unknown)}; valid: {_listed(_KEYS)}")
    lists = {key: tree.get(key) or [] for key in ("tasks", "tuning_tasks", "notes")}
    for key, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise ConfigError(f"suite {where}: {key} must be a list of texts, got {value!r}")
        check_once(f"suite {where}: {key}", value)
    best, settings = tree.get("best_return"), tree.get("settings") or {}
    if best is not None and not (isinstance(best, int | float) and best > 0):
        raise ConfigError(f"suite {where}: best_return must be a number above 0, got {best!r}")
    if not isinstance(settings, dict):
        raise ConfigError(f"suite {where}: settings must be a section of settings, got {settings!r}")
    suite = Suite(
        name=name,
        title=str(tree.get("title", name)),
        tasks=tuple(lists["tasks"]),
        tuning_tasks=tuple(lists["tuning_tasks"] or lists["tasks"]),
        best_return=best,
        notes=tuple(lists["notes"]),
        settings=settings,
    )
    try:  # now, and not in each run
        suite.config(suite.tasks[0], 0)
    except ConfigError as error:
        raise ConfigError(f"suite {where}: settings: {error}") from error
    return suite


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
