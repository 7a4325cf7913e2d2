"""Tasks, environments, benchmarks and further commands by name, from the entry points of installed packages.

So nothing here imports a simulator or ROS, and another package can add its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from robot_rl.config import FAMILY_MARK
from robot_rl.errors import ConfigError, PluginError, UnknownNameError
from robot_rl.system.sister_packages import check_sister

if TYPE_CHECKING:
    from robot_rl.env.environment import Environment
    from robot_rl.env.task import Workcell, WorkcellOptions

TASK_GROUP = "robot_rl.tasks"
ENVIRONMENT_GROUP = "robot_rl.environments"
FAMILY_GROUP = "robot_rl.environment_families"
BENCHMARK_GROUP = "robot_rl.benchmarks"


def task_names() -> list[str]:
    """Return the names of all registered tasks."""
    return names(TASK_GROUP)


def environment_names() -> list[str]:
    """Return the names of all registered environments that are no tasks of a robot arm."""
    return names(ENVIRONMENT_GROUP)


def family_names() -> list[str]:
    """Return the families of environments, e.g. `gym`; `gym:<name>` is an environment of that family."""
    return names(FAMILY_GROUP)


def is_environment(name: str) -> bool:
    """Return whether a name is that of an environment, registered or of a family, and not of a task."""
    return FAMILY_MARK in name or name in environment_names()


def check_task(name: str) -> None:
    """Raise if no task or environment of that name is registered, without loading it.

    Raises:
        UnknownNameError: if it is not, or there is no such family of environments.
    """
    family, mark, _ = name.partition(FAMILY_MARK)
    if mark:
        _find("family of environments", FAMILY_GROUP, family)
    elif name not in environment_names():
        _find("task", TASK_GROUP, name)


def benchmark_names() -> list[str]:
    """Return the names of all registered benchmarks."""
    return names(BENCHMARK_GROUP)


def make_environment(name: str, options: WorkcellOptions | None = None) -> Environment:
    """Make the environment of that name: one that is registered or of a family, or `RobotEnv` over a task's workcell.

    Raises:
        UnknownNameError: if no environment, task or camera of that name exists.
        PluginError: if the package behind it cannot be imported.
        RenderError: if cameras are wanted and this machine cannot render.
    """
    from robot_rl.env.robot_env import RobotEnv  # here, as gymnasium comes with it and `--help` should not wait
    from robot_rl.env.task import WorkcellOptions

    options = options or WorkcellOptions()
    if not is_environment(name):
        return RobotEnv(make_workcell(name, options), options=options)
    family, mark, rest = name.partition(FAMILY_MARK)
    if mark:
        of_family = load("family of environments", FAMILY_GROUP, family)
        return cast("Callable[[str, WorkcellOptions], Environment]", of_family)(rest, options)
    make = cast("Callable[[WorkcellOptions], Environment]", load("environment", ENVIRONMENT_GROUP, name))
    return make(options)


def make_workcell(task: str, options: WorkcellOptions | None = None) -> Workcell:
    """Make the workcell in which a task is done.

    Raises:
        UnknownNameError: if no task, or no camera, of that name exists.
        ConfigError: if it is an environment without a robot.
        PluginError: if the package behind it cannot be imported.
        RenderError: if cameras are wanted and this machine cannot render.
    """
    from robot_rl.env.task import WorkcellOptions  # here, as gymnasium comes with it and `--help` should not wait

    if is_environment(task):
        raise ConfigError(
            f"{task} is an environment without a robot: no console, device or classifier serves it; use it without "
            f"them: `robot-rl train {task} --set demonstrations=0`"
        )
    make = cast("Callable[[WorkcellOptions], Workcell]", load("task", TASK_GROUP, task))
    return make(options or WorkcellOptions())


def run_benchmark(name: str) -> dict[str, Any]:
    """Run a benchmark and return its figures.

    Raises:
        UnknownNameError: if no benchmark of that name exists.
        PluginError: if the package behind it cannot be imported.
    """
    run = cast("Callable[[], dict[str, Any]]", load("benchmark", BENCHMARK_GROUP, name))
    return run()


@cache
def _installed(path: tuple[str, ...]) -> Any:
    """Return the entry points of all that is installed on this path; Python 3.11 and 3.12 have a class each for them.

    To ask for one group would read the metadata of every package too, and a command asks for a dozen groups.
    """
    del path  # `sys.path`, which may change
    return entry_points()


@cache
def _registered(group: str, path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of a group in what is installed on this path; a command asks for them two dozen times."""
    points: EntryPoints = _installed(path).select(group=group)
    return points


def _points(group: str) -> EntryPoints:
    return _registered(group, tuple(sys.path))


def names(group: str) -> list[str]:
    """Return the names of all that is registered in a group of entry points."""
    return sorted({point.name for point in _points(group)})


def source_of(group: str, name: str) -> str | None:
    """Return `FILE:FUNCTION` of what is registered under a name, without running it; None where nothing is."""
    for point in _points(group).select(name=name):
        spec = find_spec(point.module)
        if spec is not None and spec.origin is not None:
            return f"{spec.origin}:{point.attr}"
    return None


def _find(kind: str, group: str, name: str) -> EntryPoint:
    found = {point.value: point for point in _points(group).select(name=name)}
    if not found:
        raise UnknownNameError(kind, name, names(group))
    if len(found) > 1:
        raise PluginError(f"{kind} {name} is registered more than once: {', '.join(sorted(found))}; uninstall one")
    return next(iter(found.values()))


def load(kind: str, group: str, name: str) -> object:
    """Load what is registered under a name.

    Args:
        kind: Of it, for messages, e.g. `task`.
        group: Of entry points.
        name: In this group.

    Raises:
        UnknownNameError: if nothing of that name exists.
        PluginError: if the package behind it cannot be imported, or two claim the name.
    """
    point = _find(kind, group, name)
    check_sister(point.value)
    try:
        return point.load()
    except (ImportError, AttributeError) as error:  # the latter: the module lacks the name, or OpenGL its library
        cure = "; install it: pip install 'robot_rl[sim]'" if getattr(error, "name", None) == "mujoco" else ""
        raise PluginError(
            f"{kind} {name} is registered as {point.value} but cannot be imported: {error}{cure}"
        ) from error
